package edge_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/penstock-io/penstock/edge"
)

func TestFramesAreKeptUntilTheyAreAnswered(t *testing.T) {
	t.Parallel()
	b := serve(t, edge.Config{})
	c := b.dial()
	r := b.give(robot("m", "c"))
	f := c.read()
	id := f.Headers["messageId"]

	b.eventually(func() bool { return b.srv.Frames()[0].State == "written" })
	conns := b.srv.Connections()
	require.Len(t, conns, 1)
	require.Equal(t, f.Headers["connectionId"], conns[0].ID)
	require.Equal(t, "one", conns[0].Consumer)
	require.Equal(t, "test/1", conns[0].Agent)
	require.Equal(t, 1, conns[0].Owed)
	require.Equal(t, 1, conns[0].Kept)
	require.Greater(t, conns[0].Bytes, len(f.Data))
	frames := b.srv.Frames()
	require.WithinDuration(t, time.Now(), frames[0].Sent, time.Minute)
	frames[0].Sent = time.Time{}
	require.Equal(t, []string{"*", "/v1.0/card/instances/callback", topicRobot}, conns[0].Topics)
	require.Equal(t, []edge.Frame{{
		ID: id, Consumer: "one", Connection: conns[0].ID,
		Installation: "bot", Message: "m", State: "written", Waiting: true,
	}}, frames)

	require.NoError(t, b.srv.Resend(id))
	require.Equal(t, f, c.read(), "byte for byte the same")
	c.ok(f)
	_, err := r.wait()
	require.NoError(t, err)
	require.Empty(t, b.srv.Frames())
	require.Zero(t, b.srv.Connections()[0].Kept)
	require.ErrorIs(t, b.srv.Resend(id), edge.ErrNoFrame)
	c.ok(f)
	b.counts(1, func(s edge.Stats) int64 { return s.Strays["late"] })
	require.EqualValues(t, 1, b.srv.Stats().Frames.Resent)
}

func TestABadAnswerEndsItsFrameOnly(t *testing.T) {
	t.Parallel()
	b := serve(t, edge.Config{})
	c := b.dial()
	r := b.give(robot("m", "c"))
	f := c.read()
	c.answer(f.Headers["messageId"], 500, "")
	_, err := r.wait()
	require.Error(t, err)
	require.Equal(t, "acked", b.srv.Frames()[0].State)
	require.False(t, b.srv.Frames()[0].Waiting)
	require.ErrorContains(t, b.srv.Resend(f.Headers["messageId"]), "acked")
	require.Zero(t, b.srv.Connections()[0].Kept)
}

func TestOneFrameTooManyGivesWayAndMayStillBeAnswered(t *testing.T) {
	t.Parallel()
	const many = 4096 + 10
	b := serve(t, edge.Config{})
	c := b.dial()
	var runs []*run
	var frames []frame
	for i := range many {
		runs = append(runs, b.give(robot(fmt.Sprint(i), fmt.Sprint(i))))
		frames = append(frames, c.read())
	}
	b.counts(10, func(s edge.Stats) int64 { return s.Frames.Evicted })
	require.Equal(t, 4096, b.srv.Connections()[0].Kept)
	require.ErrorContains(t, b.srv.Resend(frames[0].Headers["messageId"]), "evicted")
	for i, f := range frames {
		c.ok(f)
		_, err := runs[i].wait()
		require.NoError(t, err)
	}
	require.Zero(t, b.srv.Connections()[0].Kept)
}
