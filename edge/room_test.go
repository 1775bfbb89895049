package edge_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/penstock-io/penstock/edge"
	"github.com/penstock-io/penstock/message"
	"github.com/penstock-io/penstock/router"
)

func oneAtATime() edge.Config {
	list := consumers()
	list[0].MaxInFlight = 1
	return edge.Config{Consumers: list}
}

func TestAConnectionIsGivenNoMoreThanItMayHave(t *testing.T) {
	t.Parallel()
	b := serve(t, oneAtATime())
	c1, c2 := b.dial(), b.dial()
	frames := make(chan func(), 100)
	for _, c := range []*client{c1, c2} {
		go func() {
			for f, err := c.next(); err == nil; f, err = c.next() {
				frames <- func() { c.ok(f) }
			}
		}()
	}
	var runs []*run
	for i := range 20 {
		runs = append(runs, b.give(robot(fmt.Sprint(i), fmt.Sprint(i))))
	}
	for range 10 {
		one, other := <-frames, <-frames
		for _, c := range b.srv.Connections() {
			require.Equal(t, 1, c.Owed)
		}
		require.Empty(t, frames, "both are full")
		one()
		other()
	}
	for _, r := range runs {
		_, err := r.wait()
		require.NoError(t, err)
	}
}

func TestWhatThePlatformWaitsForIsNotHeldUp(t *testing.T) {
	t.Parallel()
	b := serve(t, oneAtATime())
	c := b.dial()
	chat := b.give(robot("m", "c"))
	first := c.read()
	card := robot("k", "c")
	card.Kind, card.Topic = message.KindCard, "/v1.0/card/instances/callback"
	pressed := b.give(card)
	c.ok(c.read())
	_, err := pressed.wait()
	require.NoError(t, err)
	c.ok(first)
	_, err = chat.wait()
	require.NoError(t, err)
}

func TestThoseInLineLearnThatTheConnectionHasGone(t *testing.T) {
	t.Parallel()
	b := serve(t, oneAtATime())
	c := b.dial()
	first := b.give(robot("0", "0"))
	c.read()
	ctx, cancel := context.WithCancel(t.Context())
	gone := b.giveTo(ctx, "one", robot("1", "1"))
	cancel()
	_, err := gone.wait()
	require.ErrorIs(t, err, context.Canceled)
	waits := b.give(robot("2", "2"))
	_ = c.ws.Close()
	_, err = waits.wait()
	require.True(t, router.IsUnreached(err))
	require.True(t, first.pending(), "it may be answered on the next one")
	next := b.dial()
	next.obey()
	_, err = b.give(robot("2", "2")).wait()
	require.NoError(t, err)
}

// Each of those in line keeps a worker, and other consumers need some too.
func TestTheLineIsShort(t *testing.T) {
	t.Parallel()
	b := serve(t, oneAtATime())
	c := b.dial()
	b.give(robot("0", "0"))
	f := c.read()
	ended := make(chan *run, 1000)
	for i := range 100 {
		r := b.give(robot(fmt.Sprint("m", i), fmt.Sprint(i)))
		go func() {
			<-r.done
			ended <- r
		}()
	}
	for range 100 - 64 {
		_, err := (<-ended).wait()
		require.True(t, router.IsUnreached(err))
	}
	select {
	case <-ended:
		require.Fail(t, "64 wait")
	case <-time.After(100 * time.Millisecond):
	}
	c.ok(f)
	c.obey()
	b.eventually(func() bool { return b.again.Load() > 0 })
	for range 64 {
		_, err := (<-ended).wait()
		require.NoError(t, err)
	}
}
