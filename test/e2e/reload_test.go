package e2e_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/penstock-io/penstock/internal/app"
	"github.com/penstock-io/penstock/internal/config"
	"github.com/penstock-io/penstock/test/system"
)

// A reload adds, changes and removes installations; one that stays as it is keeps
// its socket.
func TestReload(t *testing.T) {
	t.Parallel()
	g := gateway(t, "same", "changed", "removed", "added")
	s := connected(t, g, configure(g, "same", "changed", "removed"), system.Options{})
	before := g.App(cred("same").ClientID).Sessions()[0]

	next := configure(g, "same", "changed", "added")
	next.Installations[1].AppSilence = next.Installations[1].Silence
	require.NoError(t, s.App.Reload(within(t), next))
	added := g.App(cred("added").ClientID)
	require.NoError(t, added.AwaitSessions(within(t), 1))
	require.NoError(t, g.App(cred("removed").ClientID).AwaitSessions(within(t), 0))
	changed := g.App(cred("changed").ClientID)
	require.Eventually(t, func() bool { return changed.Stats().Dials == 2 }, waitFor, tick)
	require.NoError(t, changed.AwaitSessions(within(t), 1))

	for _, in := range next.Installations {
		push(t, g.App(in.ClientID), "to "+in.ID)
		require.NoError(t, s.Record.AwaitEnded(within(t), "to "+in.ID))
	}
	require.Equal(t, 1, g.App(cred("same").ClientID).Stats().Dials)
	require.Equal(t, before.Info().ID, g.App(cred("same").ClientID).Sessions()[0].Info().ID)
	require.Len(t, s.App.Health(), 3)
	require.NoError(t, s.Stop())
	require.ErrorIs(t, s.App.Reload(within(t), next), app.ErrStopping)
}

// New credentials of a running installation open the new session before the old
// one is left, and lose nothing that is under way.
func TestCredentialChange(t *testing.T) {
	t.Parallel()
	g := gateway(t, "old", "new")
	c := configure(g, "old")
	store := &system.Store{}
	s := connected(t, g, c, system.Options{Store: store})
	old, young := g.App(cred("old").ClientID), g.App(cred("new").ClientID)
	release := store.Hold()
	owed, err := old.Push(text("under way"))
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		n, _ := s.Metric("penstock_deliveries_total")
		return n == 1
	}, waitFor, tick)

	next := configure(g, "old")
	next.Installations[0].ClientID = cred("new").ClientID
	next.Installations[0].ClientSecret = config.Secret(cred("new").Secret)
	require.NoError(t, s.App.Reload(within(t), next))
	require.NoError(t, young.AwaitSessions(within(t), 1))
	release()
	ack, err := owed.Wait(within(t))
	require.NoError(t, err)
	require.Equal(t, 200, ack.Code)
	push(t, young, "with the new ones")
	require.NoError(t, s.Record.AwaitEnded(within(t), "under way"))
	require.NoError(t, s.Record.AwaitEnded(within(t), "with the new ones"))
	require.NoError(t, old.AwaitSessions(within(t), 0))
	require.Len(t, s.Record.Runs(), 2)
	require.NoError(t, s.Stop())
}

// A reload that cannot be put in force leaves what runs as it is.
func TestBadReload(t *testing.T) {
	t.Parallel()
	g := gateway(t, "a")
	s := connected(t, g, configure(g, "a"), system.Options{})
	next := configure(g, "a")
	next.Installations[0].APIBase = "ftp://127.0.0.1"
	require.Error(t, s.App.Reload(within(t), next))
	push(t, g.App(""), "still here")
	require.NoError(t, s.Record.AwaitEnded(within(t), "still here"))
	require.Equal(t, 1, g.App("").Stats().Dials)
	require.NoError(t, s.Stop())
}
