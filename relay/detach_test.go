package relay_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/penstock-io/penstock/message"
	"github.com/penstock-io/penstock/relay"
	"github.com/penstock-io/penstock/router"
)

// detach ends the lane within a second and tells whether its queue was empty then.
func (k *kit) detach() bool {
	k.t.Helper()
	ctx, cancel := context.WithTimeout(k.t.Context(), time.Second)
	defer cancel()
	return k.lane.Detach(ctx)
}

func (k *kit) attach() {
	k.t.Helper()
	var err error
	k.lane, err = k.relay.Attach(installation, k.sender)
	require.NoError(k.t, err)
}

// An installation that is removed with work left finds it again: what was running,
// what was queued, and what had no room in the queue, before anything new.
func TestAttachTakesUpWhatDetachCutOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var slow atomic.Bool
		slow.Store(true)
		h := &recorder{handle: func(ctx context.Context, _ *message.Inbound) (router.Result, error) {
			if slow.Load() {
				<-ctx.Done()
				return router.Result{}, ctx.Err()
			}
			return router.Result{}, nil
		}}
		k := newKit(t, relay.Config{
			Handler: h, Attempts: 1, Inbound: relay.Queue{PerKey: 2, Workers: 1},
		})
		var want []string
		for i := range 5 {
			id := fmt.Sprint("m", i)
			want = append(want, id)
			k.offer(id, "a")
		}
		pass(time.Second)
		require.False(t, k.detach())
		pass(time.Second)
		require.Equal(t, []string{"m0"}, h.got())

		slow.Store(false)
		k.attach()
		k.offer("m5", "a")
		pass(time.Second)
		require.Equal(t, append(append([]string{"m0"}, want...), "m5"), h.got())
		require.Zero(t, k.lane.Waiting())
		rep := k.stop(time.Second)
		require.Zero(t, rep.Inbox)
		require.Empty(t, rep.Unfinished, "what ran later was not cut off by the stop")
	})
}

// A commit that is slower than the end of its lane.
func TestAttachTakesUpWhatIsCommittedAfterDetach(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &recorder{}
		k := newKit(t, relay.Config{Handler: h})
		hold := make(chan struct{})
		k.store.mu.Lock()
		k.store.hold = hold
		k.store.mu.Unlock()
		k.offer("m1", "a")
		k.offer("m2", "b")
		synctest.Wait()
		require.True(t, k.detach())
		k.store.mu.Lock()
		k.store.hold = nil
		k.store.mu.Unlock()
		close(hold)
		synctest.Wait()
		require.Empty(t, h.got())
		k.attach()
		pass(time.Second)
		require.ElementsMatch(t, []string{"m1", "m2"}, h.got())
		require.Zero(t, k.stop(time.Second).Inbox)
	})
}

// Replies wait while their installation is gone, and go as soon as it is back.
func TestAttachSendsWhatWaited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKit(t, relay.Config{Handler: answering})
		k.sender.fails = []error{sendError(message.NextAgain, 0, message.LandedNo)}
		k.offer("a1", "a")
		k.offer("a2", "a")
		synctest.Wait()
		require.True(t, k.detach())
		pass(10 * time.Second) // the next try finds nobody
		require.Empty(t, k.sender.texts())
		k.attach()
		synctest.Wait()
		require.Equal(t, []string{"a1#1", "a2#1"}, k.sender.texts())
		k.stop(time.Second)
	})
}

// Replies that a refused sender has parked go as soon as there is another one.
func TestSetSenderSendsWhatWasParked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKit(t, relay.Config{Handler: answering})
		k.sender.fails = []error{sendError(message.NextPark, time.Hour, message.LandedNo)}
		k.offer("a1", "a")
		k.offer("b1", "b")
		pass(time.Second)
		k.offer("c1", "c")
		pass(time.Second)
		require.NotContains(t, k.sender.texts(), "c1#1")
		fresh := &sender{}
		k.lane.SetSender(fresh)
		synctest.Wait()
		require.Contains(t, fresh.texts(), "c1#1")
		k.stop(time.Second)
	})
}
