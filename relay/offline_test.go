package relay_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/penstock-io/penstock/message"
	"github.com/penstock-io/penstock/relay"
	"github.com/penstock-io/penstock/router"
	"github.com/penstock-io/penstock/store"
	"github.com/penstock-io/penstock/store/memory"
)

// stopped is the store of a relay that does not run, with one message pending and
// one that was given up.
type stopped struct {
	*relay.Offline
	store  *memory.Store
	routes map[string]router.Handler
}

func newStopped(t *testing.T) *stopped {
	t.Helper()
	f := &stopped{store: openMemory(t), routes: map[string]router.Handler{"echo": router.Echo{}}}
	t.Cleanup(func() { require.NoError(t, f.store.Close()) })
	for _, id := range []string{"m1", "m2"} {
		m := text(id, "a")
		m.Installation = installation
		f.commit(t, &store.Append{Message: m})
	}
	f.commit(t, &store.Bury{Seq: 2, Attempts: 8, Reason: "attempts: no"})
	var err error
	f.Offline, err = relay.NewOffline(relay.OfflineConfig{
		Store:   f.store,
		Senders: map[message.InstallationID]relay.Sender{installation: &sender{parts: 2}},
		Route:   func(name string) router.Handler { return f.routes[name] },
		Timeout: time.Minute,
	})
	require.NoError(t, err)
	return f
}

func (f *stopped) commit(t *testing.T, op store.Op) {
	t.Helper()
	require.NoError(t, f.store.Commit(t.Context(), []store.Op{op}))
	require.NoError(t, op.Result())
}

func (f *stopped) counts(t *testing.T) (in, out, dead int64) {
	t.Helper()
	c, err := f.store.Counts(t.Context())
	require.NoError(t, err)
	return c.Inbox, c.Outbox, c.DeadInbox
}

func TestOfflineChangesWhatIsStored(t *testing.T) {
	f := newStopped(t)
	seq, err := f.Requeue(t.Context(), store.BoxDeadIn, 2)
	require.NoError(t, err)
	p, err := f.store.LoadInbox(t.Context(), seq)
	require.NoError(t, err)
	require.Len(t, p, 1)
	require.Equal(t, message.ID("m2"), p[0].Message.ID)
	_, err = f.Requeue(t.Context(), store.BoxDeadIn, 2)
	require.ErrorIs(t, err, store.ErrNotFound)
	require.NoError(t, f.Purge(t.Context(), store.BoxInbox, 1))
	require.ErrorIs(t, f.Purge(t.Context(), store.BoxInbox, 1), store.ErrNotFound)
	in, _, dead := f.counts(t)
	require.Equal(t, [2]int64{1, 0}, [2]int64{in, dead})
}

func TestOfflineReplay(t *testing.T) {
	for _, box := range []store.Box{store.BoxInbox, store.BoxDeadIn} {
		t.Run(box.String(), func(t *testing.T) {
			f := newStopped(t)
			seq := store.Seq(1)
			if box.Dead() {
				seq = 2
			}
			r, err := f.Replay(t.Context(), box, seq, "echo")
			require.NoError(t, err)
			require.True(t, r.Done)
			require.Equal(t, 2, r.Replies)
			o, err := f.store.LoadOutbox(t.Context(), 1)
			require.NoError(t, err)
			require.Len(t, o, 1)
			require.Equal(t, message.ID(fmt.Sprintf("m%d/1#1", seq)), o[0].Reply.ID)
			require.Equal(t, "to a", string(o[0].Reply.Target))
			in, out, dead := f.counts(t)
			require.Equal(t, int64(1), in+dead, "the other one")
			require.Equal(t, int64(2), out)
		})
	}
}

func TestOfflineReplayThatFailsChangesNothing(t *testing.T) {
	f := newStopped(t)
	cause := errors.New("no")
	var attempt int
	f.routes["bad"] = router.HandlerFunc(func(_ context.Context, m *message.Inbound) (router.Result, error) {
		attempt = m.Attempt
		return router.Result{}, cause
	})
	f.routes["panics"] = router.HandlerFunc(func(context.Context, *message.Inbound) (router.Result, error) {
		panic("no")
	})
	var he *relay.HandlerError
	_, err := f.Replay(t.Context(), store.BoxDeadIn, 2, "bad")
	require.ErrorAs(t, err, &he)
	require.ErrorIs(t, err, cause)
	require.Equal(t, 9, attempt)
	_, err = f.Replay(t.Context(), store.BoxInbox, 1, "panics")
	require.ErrorAs(t, err, &he)
	_, err = f.Replay(t.Context(), store.BoxInbox, 1, "none")
	require.ErrorIs(t, err, relay.ErrNoRoute)
	_, err = f.Replay(t.Context(), store.BoxDeadOut, 1, "echo")
	require.ErrorIs(t, err, store.ErrInvalid)
	_, err = f.Replay(t.Context(), store.BoxInbox, 2, "echo")
	require.ErrorIs(t, err, store.ErrNotFound)
	in, out, dead := f.counts(t)
	require.Equal(t, [3]int64{1, 0, 1}, [3]int64{in, out, dead})

	stranger := text("m9", "a")
	stranger.Installation = "gone"
	f.commit(t, &store.Append{Message: stranger})
	_, err = f.Replay(t.Context(), store.BoxInbox, 3, "echo")
	require.ErrorIs(t, err, relay.ErrNoInstallation)
}

func TestOfflineSendIsQueued(t *testing.T) {
	f := newStopped(t)
	o := outbound("s1", "a")
	_, err := f.Send(t.Context(), o)
	require.ErrorIs(t, err, relay.ErrNoInstallation)
	o.Installation = installation
	s, err := f.Send(t.Context(), o)
	require.NoError(t, err)
	require.Equal(t, message.ID("s1"), s.ID())
	_, err = s.Wait(t.Context())
	require.ErrorIs(t, err, relay.ErrClosed)
	_, out, _ := f.counts(t)
	require.Equal(t, int64(2), out, "its parts")
	_, err = f.Send(t.Context(), o)
	require.ErrorIs(t, err, relay.ErrKnown)
}

func TestOfflineNeedsAStoreWithAnAdministration(t *testing.T) {
	_, err := relay.NewOffline(relay.OfflineConfig{})
	require.Error(t, err)
	type bare struct{ store.Store }
	_, err = relay.NewOffline(relay.OfflineConfig{Store: bare{openMemory(t)}})
	require.ErrorIs(t, err, relay.ErrNoAdmin)
}
