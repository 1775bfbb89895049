package ops_test

import (
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/penstock-io/penstock/internal/ops"
	"github.com/penstock-io/penstock/message"
)

// gateway is an edge with two consumers and a frame in each state.
type gateway struct {
	mu     sync.Mutex // guards the following fields
	resent []string
	// change is called in place of Resend.
	change func(frame string) error
	frames []ops.Frame
}

func newGateway() *gateway {
	frame := func(id, consumer, state string) ops.Frame {
		return ops.Frame{
			ID: id, Consumer: consumer, Connection: "c1", Installation: "bot", Message: message.ID("m-" + id),
			State: state, Waiting: state == "written",
		}
	}
	return &gateway{frames: []ops.Frame{
		frame("f1", "one", "written"), frame("f2", "one", "acked"), frame("f3", "one", "evicted"),
		frame("f4", "gone", "written"),
	}}
}

func (*gateway) Consumers() []ops.Consumer {
	return []ops.Consumer{
		{Name: "one", MaxConnections: 16, Connections: []ops.Connection{{
			ID: "c1", State: "open", Agent: "a/1", Remote: "127.0.0.1:1",
			Since: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), SilentMS: 1500,
			Unanswered: 1, Frames: 2, Bytes: 300,
		}}},
		{Name: "two", MaxConnections: 1, Connections: []ops.Connection{}},
	}
}

func (g *gateway) Frames() []ops.Frame {
	g.mu.Lock()
	defer g.mu.Unlock()
	return append([]ops.Frame(nil), g.frames...)
}

func (g *gateway) Resend(frame string) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.change != nil {
		return g.change(frame)
	}
	if frame != "f1" {
		return errors.New("edge: it is not to be had")
	}
	g.resent = append(g.resent, frame)
	return nil
}

// onEdge runs a test on the verbs themselves and through a socket.
func onEdge(t *testing.T, test func(t *testing.T, api ops.API, g *gateway)) {
	for _, how := range []string{"local", "socket"} {
		t.Run(how, func(t *testing.T) {
			g := newGateway()
			s := offline(t, stored(t))
			s.Edge = g
			if how == "local" {
				test(t, s, g)
			} else {
				test(t, serve(t, s), g)
			}
		})
	}
}

func TestConsumersAndFrames(t *testing.T) {
	onEdge(t, func(t *testing.T, api ops.API, g *gateway) {
		list, err := api.Consumers(t.Context(), "")
		require.NoError(t, err)
		require.Equal(t, g.Consumers(), list)
		list, err = api.Consumers(t.Context(), "two")
		require.NoError(t, err)
		require.Equal(t, g.Consumers()[1:], list)
		_, err = api.Consumers(t.Context(), "three")
		require.ErrorIs(t, err, ops.ErrNoConsumer)
		require.EqualError(t, err, `there is no consumer "three"; there are: one, two`)

		for consumer, want := range map[string][]ops.Frame{
			"": g.frames, "one": g.frames[:3], "gone": g.frames[3:],
		} {
			frames, err := api.Frames(t.Context(), consumer)
			require.NoError(t, err)
			require.Equal(t, want, frames)
		}
		frames, err := api.Frames(t.Context(), "two")
		require.NoError(t, err)
		require.Empty(t, frames)
		_, err = api.Frames(t.Context(), "three")
		require.ErrorIs(t, err, ops.ErrNoConsumer)
	})
}

func TestResend(t *testing.T) {
	onEdge(t, func(t *testing.T, api ops.API, g *gateway) {
		f, err := api.Resend(t.Context(), "f1")
		require.NoError(t, err)
		require.Equal(t, g.frames[0], f)
		require.Equal(t, []string{"f1"}, g.resent)
		for _, tt := range []struct {
			frame string
			is    error
			text  string
		}{
			{"f9", ops.ErrNoFrame, "frame f9 is not known: it never was, has been answered"},
			{"", ops.ErrNoFrame, "is not known"},
			{"f2", ops.ErrAnswered, "frame f2 has been answered, though not well"},
			{"f3", ops.ErrNotKept, "frame f3 is not kept any more"},
		} {
			_, err := api.Resend(t.Context(), tt.frame)
			require.ErrorIs(t, err, tt.is)
			require.ErrorContains(t, err, tt.text)
		}
		_, err = api.Resend(t.Context(), "f4")
		require.EqualError(t, err, "frame f4 was not written: edge: it is not to be had")
		require.NotErrorIs(t, err, ops.ErrNoFrame)

		g.change = func(string) error { // it is answered at that moment
			g.frames = nil
			return errors.New("edge: it is over")
		}
		_, err = api.Resend(t.Context(), "f1")
		require.ErrorIs(t, err, ops.ErrNoFrame)
	})
}

func TestThereIsNoEdgeWithoutAService(t *testing.T) {
	both(t, func(t *testing.T, api ops.API, _ kept) {
		_, err := api.Consumers(t.Context(), "")
		require.ErrorIs(t, err, ops.ErrNoEdge)
		_, err = api.Frames(t.Context(), "")
		require.ErrorIs(t, err, ops.ErrNoEdge)
		_, err = api.Resend(t.Context(), "f1")
		require.ErrorIs(t, err, ops.ErrNoEdge)
		require.EqualError(t, err, "there is no edge without a running service")
	})
}
