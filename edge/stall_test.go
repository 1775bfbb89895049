package edge_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/penstock-io/penstock/edge"
	"github.com/penstock-io/penstock/router"
)

// states are those of the connections, the oldest first.
func (b *bench) states() (all []string) {
	for _, c := range b.srv.Connections() {
		all = append(all, c.State)
	}
	return all
}

// obey answers everything.
func (c *client) obey() {
	go func() {
		for f, err := c.next(); err == nil; f, err = c.next() {
			c.ok(f)
		}
	}()
}

func TestAConnectionThatDoesNotReadIsPassedOverAndCut(t *testing.T) {
	t.Parallel()
	const within = 4 * time.Second
	b := serve(t, edge.Config{WriteTimeout: within, RejoinWithin: time.Hour})
	stalled := b.dial()
	r := b.give(robot("0", "c"))
	stalled.ok(stalled.read())
	_, err := r.wait()
	require.NoError(t, err, "the conversation's connection is the one that stalls")
	other := b.dial()
	other.obey()

	left := b.give(robot("1", "c"))
	b.counts(2, func(s edge.Stats) int64 { return s.Pushes })
	began := time.Now()
	b.eventually(func() bool { return b.states()[0] == edge.StateStalled })
	r = b.give(robot("2", "c"))
	_, err = r.wait()
	require.NoError(t, err, "the other connection has taken the conversation over")
	b.counts(1, func(s edge.Stats) int64 { return s.Stalls })

	_, err = left.wait()
	require.Equal(t, router.ReasonNetwork, router.ReasonOf(err), "it comes again")
	require.Less(t, time.Since(began), within+3*time.Second)
	b.counts(1, func(s edge.Stats) int64 { return s.Closed["slow"] })
	require.Equal(t, []string{edge.StateOpen}, b.states())
}

// The only connection of its kind is left alone, too.
func TestAnotherProgramIsNoReplacement(t *testing.T) {
	t.Parallel()
	b := serve(t, edge.Config{WriteTimeout: 100 * time.Millisecond})
	chat := b.dial(topicRobot)
	cards := b.dial("/v1.0/card/instances/callback")
	cards.obey()
	r := b.give(robot("1", "c"))
	f := chat.read()
	b.eventually(func() bool { return b.states()[0] == edge.StateStalled })
	<-time.After(1500 * time.Millisecond) // connections are looked after each second
	require.Len(t, b.states(), 2)
	chat.ok(f)
	_, err := r.wait()
	require.NoError(t, err)
}

// A bot may be busy without reading, and has only one connection: it would be given
// again what it works on.
func TestTheOnlyConnectionIsWaitedFor(t *testing.T) {
	t.Parallel()
	b := serve(t, edge.Config{WriteTimeout: 100 * time.Millisecond, AckWithin: time.Minute})
	busy := b.dial()
	r := b.give(robot("1", "one"))
	f := busy.read()
	b.eventually(func() bool { return b.states()[0] == edge.StateStalled })
	for i := range 3 {
		_, err := b.give(robot(fmt.Sprint("m", i), "two")).wait()
		require.True(t, router.IsUnreached(err), "it waits and no try is used up")
	}
	require.True(t, r.pending())
	require.Empty(t, b.connected)

	busy.ok(f)
	_, err := r.wait()
	require.NoError(t, err)
	<-b.connected
	busy.obey()
	_, err = b.give(robot("m0", "two")).wait()
	require.NoError(t, err)
	require.Equal(t, []string{edge.StateOpen}, b.states())
	require.Zero(t, b.srv.Stats().Closed["slow"])
}

// A handler may take long: its client answers pings meanwhile.
func TestABusyConnectionThatReadsIsGivenMore(t *testing.T) {
	t.Parallel()
	b := serve(t, edge.Config{WriteTimeout: 300 * time.Millisecond, RejoinWithin: time.Millisecond})
	c := b.dial()
	frames := make(chan frame, 10)
	go func() {
		defer close(frames)
		for f, err := c.next(); err == nil; f, err = c.next() {
			frames <- f
		}
	}()
	b.dial() // there is another one
	var runs []*run
	for i := range 4 {
		runs = append(runs, b.give(robot(fmt.Sprint(i), fmt.Sprint(i))))
	}
	first := <-frames
	b.counts(1, func(s edge.Stats) int64 { return s.Closed["slow"] })
	require.Equal(t, first.Headers["connectionId"], b.srv.Connections()[0].ID,
		"only the one that does not read has gone, though both were silent")
	require.Equal(t, []string{edge.StateOpen}, b.states())
	c.ok(first)
	c.ok(<-frames)
	lost := 0
	for _, r := range runs {
		if _, err := r.wait(); err != nil {
			lost++
		}
	}
	require.Equal(t, 2, lost, "they come again")
}
