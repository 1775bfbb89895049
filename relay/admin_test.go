package relay_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/penstock-io/penstock/message"
	"github.com/penstock-io/penstock/relay"
	"github.com/penstock-io/penstock/router"
	"github.com/penstock-io/penstock/store"
	"github.com/penstock-io/penstock/store/memory"
)

// newAdminKit is a kit whose store an operator can look into.
func newAdminKit(t *testing.T, cfg relay.Config) (*kit, *memory.Store) {
	t.Helper()
	s := openMemory(t)
	cfg.Admin = s
	return newKitOn(t, cfg, s), s
}

func permanent(text string) error {
	return &router.Error{Permanent: true, Err: errors.New(text)}
}

// failsFirst is a recorder that fails for good until it is told to work.
func failsFirst() (r *recorder, work func()) {
	var mu sync.Mutex
	fails := true
	r = &recorder{}
	r.handle = func(_ context.Context, m *message.Inbound) (router.Result, error) {
		mu.Lock()
		defer mu.Unlock()
		if fails {
			return router.Result{}, permanent("not today")
		}
		return router.Result{Replies: []message.Reply{{Text: "re " + m.Text}}}, nil
	}
	return r, func() {
		mu.Lock()
		defer mu.Unlock()
		fails = false
	}
}

func seqs(t *testing.T, a store.Admin, box store.Box) (list []store.Seq) {
	t.Helper()
	entries, err := a.List(context.Background(), store.Query{Box: box, Limit: 1000})
	require.NoError(t, err)
	for _, e := range entries {
		list = append(list, e.Seq)
	}
	return list
}

func TestRequeueRunsAtOnceAndInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, work := failsFirst()
		k, s := newAdminKit(t, relay.Config{Handler: h})
		for _, id := range []string{"m1", "m2", "m3"} {
			k.offer(id, "a")
		}
		pass(time.Second)
		letters := seqs(t, s, store.BoxDeadIn)
		require.Len(t, letters, 3)
		work()
		for _, seq := range letters {
			fresh, err := k.relay.Requeue(t.Context(), store.BoxDeadIn, seq)
			require.NoError(t, err)
			require.Greater(t, fresh, letters[2])
		}
		pass(time.Second)
		require.Equal(t, []string{"m1", "m2", "m3", "m1", "m2", "m3"}, h.got())
		require.Equal(t, 1, h.attempts[5], "it begins again")
		require.Equal(t, []string{"re m1#1", "re m2#1", "re m3#1"}, k.sender.texts())
		require.Empty(t, seqs(t, s, store.BoxDeadIn))
		st := k.relay.Stats()
		require.Equal(t, st.Accepted+st.Requeued, st.Done+st.Dead["permanent"])

		_, err := k.relay.Requeue(t.Context(), store.BoxDeadIn, letters[0])
		require.ErrorIs(t, err, store.ErrNotFound)
		_, err = k.relay.Requeue(t.Context(), store.BoxInbox, 1)
		require.ErrorIs(t, err, store.ErrInvalid)
		k.offer("m1", "a") // still the same message
		pass(time.Second)
		require.Len(t, h.got(), 6)
		k.stop(time.Second)
	})
}

func TestRequeueOfAReplyCountsItsAgeAfresh(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k, s := newAdminKit(t, relay.Config{Handler: router.Echo{}, SendTTL: time.Minute})
		k.sender.fails = []error{sendError(message.NextNever, 0, message.LandedNo)}
		k.offer("m1", "a")
		pass(2 * time.Minute)
		letters := seqs(t, s, store.BoxDeadOut)
		require.Len(t, letters, 1)
		_, err := k.relay.Requeue(t.Context(), store.BoxDeadOut, letters[0])
		require.NoError(t, err)
		pass(time.Second)
		require.Equal(t, []string{"m1#1"}, k.sender.texts())

		// A reply that is added after it takes its turn, and a copy is known.
		_, err = k.lane.Send(t.Context(), outbound("s1", "a"))
		require.NoError(t, err)
		_, err = k.relay.Send(t.Context(), message.Outbound{Installation: "none"})
		require.ErrorIs(t, err, relay.ErrNoInstallation)
		pass(time.Second)
		require.Equal(t, []string{"m1#1", "s1#1"}, k.sender.texts())
		require.Equal(t, int64(1), k.relay.Stats().RequeuedReplies)
		k.stop(time.Second)
	})
}

func TestRequeueWaitsForItsInstallation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, work := failsFirst()
		k, s := newAdminKit(t, relay.Config{Handler: h})
		k.offer("m1", "a")
		pass(time.Second)
		work()
		require.True(t, k.lane.Detach(t.Context()))
		_, err := k.relay.Requeue(t.Context(), store.BoxDeadIn, seqs(t, s, store.BoxDeadIn)[0])
		require.NoError(t, err)
		pass(time.Second)
		require.Len(t, h.got(), 1)
		_, err = k.relay.Attach(installation, k.sender)
		require.NoError(t, err)
		pass(time.Second)
		require.Equal(t, []string{"m1", "m1"}, h.got())
		k.stop(time.Second)
	})
}

func TestPurgeOfTheHeadLetsTheConversationGoOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &recorder{handle: func(_ context.Context, m *message.Inbound) (router.Result, error) {
			if m.Text == "poison" || m.Text == "slow" {
				return router.Result{}, errors.New("it does not go")
			}
			return router.Result{}, nil
		}}
		k, s := newAdminKit(t, relay.Config{
			Handler: h, RetryBase: time.Hour, RetryMax: time.Hour, Attempts: 100,
		})
		k.offer("poison", "a")
		k.offer("good", "a")
		k.offer("slow", "b")
		pass(time.Second)
		require.ElementsMatch(t, []string{"poison", "slow"}, h.got())
		head := seqs(t, s, store.BoxInbox)[0]
		require.NoError(t, k.relay.Purge(t.Context(), store.BoxInbox, head))
		pass(time.Second)
		require.Len(t, h.got(), 3, "the others wait on")
		require.Equal(t, "good", h.got()[2])
		require.ErrorIs(t, k.relay.Purge(t.Context(), store.BoxInbox, head), store.ErrNotFound)
		require.Equal(t, int64(1), k.relay.Stats().Purged)
		k.stop(time.Second)
	})
}

func TestPurgeEndsTheHandler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &recorder{handle: func(ctx context.Context, m *message.Inbound) (router.Result, error) {
			if m.Text == "next" {
				return router.Result{}, nil
			}
			<-ctx.Done()
			return router.Result{}, context.Cause(ctx)
		}}
		k, s := newAdminKit(t, relay.Config{Handler: h, SyncWithin: time.Second})
		began := time.Now()
		k.offer("stuck", "a")
		k.offer("next", "a")
		k.offerMessage(card("pressed", "b"))
		pass(time.Second)
		running := k.relay.Running()
		require.Len(t, running, 2)
		all := seqs(t, s, store.BoxInbox)
		require.True(t, running[all[0]].Equal(began))
		for _, seq := range []store.Seq{all[0], all[2]} {
			require.NoError(t, k.relay.Purge(t.Context(), store.BoxInbox, seq))
		}
		synctest.Wait()
		require.ElementsMatch(t, []string{"stuck", "pressed"}, h.got()[:2])
		require.Equal(t, []string{"next"}, h.got()[2:], "at once")
		require.Empty(t, k.relay.Running())
		pass(time.Hour)
		require.Len(t, h.got(), 3, "nothing is tried again")
		require.Zero(t, k.relay.Stats().Retries)
		k.stop(time.Second)
	})
}

func TestPurgeOfWhatWaitsAndOfWhatRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		h := &recorder{handle: func(context.Context, *message.Inbound) (router.Result, error) {
			<-release
			return router.Result{Replies: []message.Reply{{Text: "late"}}}, nil
		}}
		k, s := newAdminKit(t, relay.Config{Handler: h})
		for _, id := range []string{"m1", "m2", "m3"} {
			k.offer(id, "a")
		}
		pass(time.Second)
		for _, seq := range seqs(t, s, store.BoxInbox)[:2] {
			require.NoError(t, k.relay.Purge(t.Context(), store.BoxInbox, seq))
		}
		close(release)
		pass(time.Second)
		require.Equal(t, []string{"m1", "m3"}, h.got(), "m2 had not begun")
		require.Equal(t, []string{"late#1"}, k.sender.texts(), "of m3 alone")
		k.stop(time.Second)
	})
}

func TestPurgeTellsWhoWaitsForAReply(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k, s := newAdminKit(t, relay.Config{Handler: router.Echo{}, SendWaits: []time.Duration{time.Hour}})
		k.sender.fails = []error{sendError(message.NextAgain, 0, message.LandedNo)}
		sending, err := k.lane.Send(t.Context(), outbound("s1", "a"))
		require.NoError(t, err)
		_, err = k.lane.Send(t.Context(), outbound("s2", "a"))
		require.NoError(t, err)
		pass(time.Second)
		require.Empty(t, k.sender.texts())
		require.NoError(t, k.relay.Purge(t.Context(), store.BoxOutbox, seqs(t, s, store.BoxOutbox)[0]))
		_, err = sending.Wait(t.Context())
		var dead *relay.DeadError
		require.ErrorAs(t, err, &dead)
		require.Equal(t, store.ReasonPurged, dead.Reason)
		pass(time.Second)
		require.Equal(t, []string{"s2#1"}, k.sender.texts())
		k.stop(time.Second)
	})
}

func TestReplayByARouteOfItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &recorder{handle: func(context.Context, *message.Inbound) (router.Result, error) {
			return router.Result{}, errors.New("not by this one")
		}}
		other := &recorder{}
		var gone atomic.Bool
		k, s := newAdminKit(t, relay.Config{
			Handler: h, RetryBase: time.Hour, RetryMax: time.Hour, Attempts: 2,
			Route: func(name string) router.Handler {
				if name != "other" || gone.Load() {
					return nil
				}
				return other
			},
		})
		k.offer("m1", "a")
		k.offer("m2", "b")
		pass(time.Second)
		pending := seqs(t, s, store.BoxInbox)
		_, err := k.relay.Replay(t.Context(), store.BoxInbox, pending[0], "none")
		require.ErrorIs(t, err, relay.ErrNoRoute)
		r, err := k.relay.Replay(t.Context(), store.BoxInbox, pending[0], "other")
		require.NoError(t, err)
		require.Equal(t, relay.Replayed{Seq: pending[0]}, r)
		pass(2 * time.Hour)
		require.Equal(t, []string{"m1"}, other.got())
		letters := seqs(t, s, store.BoxDeadIn)
		require.Len(t, letters, 1)

		_, err = k.relay.Replay(t.Context(), store.BoxDeadIn, letters[0], "other")
		require.NoError(t, err)
		pass(time.Second)
		require.Equal(t, []string{"m1", "m2"}, other.got())
		require.Empty(t, seqs(t, s, store.BoxDeadIn))

		_, err = k.relay.Replay(t.Context(), store.BoxInbox, pending[0], "other")
		require.ErrorIs(t, err, store.ErrNotFound)
		_, err = k.relay.Replay(t.Context(), store.BoxOutbox, 1, "other")
		require.ErrorIs(t, err, store.ErrInvalid)

		// A route that goes before the message's turn is no reason to try for ever.
		k.offer("m3", "c")
		pass(time.Second)
		_, err = k.relay.Replay(t.Context(), store.BoxInbox, seqs(t, s, store.BoxInbox)[0], "other")
		require.NoError(t, err)
		gone.Store(true)
		pass(2 * time.Hour)
		require.Equal(t, int64(1), k.relay.Stats().Dead["permanent"])
		k.stop(time.Second)
	})
}

func TestCommandsNeedAnAdministration(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		type bare struct{ store.Store }
		k := newKitOn(t, relay.Config{Handler: router.Echo{}}, bare{openMemory(t)})
		require.ErrorIs(t, k.relay.Purge(t.Context(), store.BoxInbox, 1), relay.ErrNoAdmin)
		_, err := k.relay.Requeue(t.Context(), store.BoxDeadIn, 1)
		require.ErrorIs(t, err, relay.ErrNoAdmin)
		k.stop(time.Second)
	})
}

func TestAFailedCommitChangesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, work := failsFirst()
		k, s := newAdminKit(t, relay.Config{Handler: h})
		k.offer("m1", "a")
		k.offer("m2", "a")
		pass(time.Second)
		letters := seqs(t, s, store.BoxDeadIn)
		letter := letters[0]
		work()
		k.store.failOn(func(op store.Op) bool {
			switch op.(type) {
			case *store.Requeue, *store.Purge:
				return true
			}
			return false
		})
		_, err := k.relay.Requeue(t.Context(), store.BoxDeadIn, letter)
		require.ErrorIs(t, err, errDisk)
		require.ErrorIs(t, k.relay.Purge(t.Context(), store.BoxDeadIn, letter), errDisk)
		require.Equal(t, letters, seqs(t, s, store.BoxDeadIn))
		require.Zero(t, k.relay.Stats().Requeued)

		k.store.failOn(nil)
		release := k.store.stall()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err = k.relay.Requeue(ctx, store.BoxDeadIn, letter)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		release()
		pass(time.Second)
		require.Equal(t, []string{"m1", "m2", "m1"}, h.got(), "it held all the same")
		k.stop(time.Second)
		_, err = k.relay.Requeue(t.Context(), store.BoxDeadIn, letters[1])
		require.ErrorIs(t, err, relay.ErrClosed)
	})
}
