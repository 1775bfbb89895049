package relay_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/penstock-io/penstock/message"
	"github.com/penstock-io/penstock/relay"
	"github.com/penstock-io/penstock/router"
	"github.com/penstock-io/penstock/store"
)

// absent is a handler that can be away.
type absent struct {
	recorder
	away   atomic.Bool
	broken atomic.Bool // it is there and fails
}

func newAbsent() *absent {
	a := &absent{}
	a.away.Store(true)
	a.handle = func(context.Context, *message.Inbound) (router.Result, error) {
		if a.broken.Load() {
			return router.Result{}, errors.New("broken")
		}
		if a.away.Load() {
			return router.Result{}, &router.Error{Unreached: true, Err: errors.New("nobody is there")}
		}
		return router.Result{}, nil
	}
	return a
}

func TestTriesThatReachNobodyDoNotCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newAbsent()
		commits := 0
		k := newKit(t, relay.Config{Handler: h, Attempts: 2})
		k.store.failOn(func(op store.Op) bool {
			if _, ok := op.(*store.Postpone); ok {
				commits++
			}
			return false
		})
		k.offer("m1", "a")
		k.offer("m2", "a")
		pass(61 * time.Second)
		require.Len(t, h.got(), 13, "one try, and one each five seconds")
		require.Equal(t, 1, commits, "only the first try is written down")
		require.EqualValues(t, 13, k.relay.Stats().Unreached)
		require.Zero(t, k.relay.Stats().Retries)
		h.away.Store(false)
		pass(5 * time.Second)
		require.Equal(t, []string{"m1", "m2"}, h.got()[13:])
		for _, n := range h.attempts {
			require.Equal(t, 1, n)
		}
		require.EqualValues(t, 2, k.relay.Stats().Done)
		k.stop(time.Second)
	})
}

func TestNudgeSomeWakesThoseOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newAbsent()
		k := newKit(t, relay.Config{Handler: h, RetryBase: time.Hour, RetryMax: time.Hour})
		h.broken.Store(true)
		for i := range 5 {
			k.offer(fmt.Sprint("failed", i), fmt.Sprint("f", i))
		}
		synctest.Wait()
		h.broken.Store(false)
		for i := range 5 {
			k.offer(fmt.Sprint("waits", i), fmt.Sprint("w", i))
		}
		synctest.Wait()
		require.Len(t, h.got(), 10)
		h.away.Store(false)
		k.relay.NudgeSome(3)
		synctest.Wait()
		require.Len(t, h.got(), 13)
		require.EqualValues(t, 3, k.relay.Stats().Done, "of those that found nobody")
		k.relay.NudgeSome(100)
		synctest.Wait()
		require.EqualValues(t, 5, k.relay.Stats().Done)
		require.Len(t, h.got(), 15, "those that failed wait on")
		k.stop(time.Second)
	})
}

func TestNudgeEndsTheWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newAbsent()
		k := newKit(t, relay.Config{Handler: h})
		k.offer("m1", "a")
		synctest.Wait()
		h.away.Store(false)
		k.relay.Nudge()
		synctest.Wait()
		require.Equal(t, []string{"m1", "m1"}, h.got())
		require.EqualValues(t, 1, k.relay.Stats().Done)
		k.stop(time.Second)
	})
}

func TestFailuresCountAfterAbsence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newAbsent()
		k := newKit(t, relay.Config{Handler: h, Attempts: 3})
		k.offer("m1", "a")
		pass(20 * time.Second)
		before := len(h.got())
		h.broken.Store(true)
		pass(time.Minute)
		require.Len(t, h.got(), before+3)
		require.EqualValues(t, 1, k.relay.Stats().Dead["attempts"])
		k.stop(time.Second)
	})
}

func TestStopWhileNobodyIsThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKit(t, relay.Config{Handler: newAbsent(), Durable: true})
		k.offer("m1", "a")
		pass(7 * time.Second)
		rep := k.stop(time.Second)
		require.True(t, rep.Drained)
		require.Less(t, rep.Took, time.Second)
		require.EqualValues(t, 1, rep.Inbox)
	})
}

func TestAHandlerMaySendWhileAStopWaitsForIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var k *kit
		k = newKit(t, relay.Config{Handler: router.HandlerFunc(
			func(ctx context.Context, m *message.Inbound) (router.Result, error) {
				<-time.After(time.Second)
				_, err := k.lane.Send(ctx, outbound("late", string(m.Conversation.ID)))
				return router.Result{}, err
			})})
		k.offer("m1", "a")
		pass(10 * time.Millisecond) // what was gathered is committed
		require.True(t, k.stop(5*time.Second).Drained)
		require.Equal(t, []string{"late#1"}, k.sender.texts())
		_, err := k.lane.Send(t.Context(), outbound("later", "a"))
		require.ErrorIs(t, err, relay.ErrClosed)
	})
}
