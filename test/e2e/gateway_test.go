package e2e_test

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/penstock-io/penstock/integrations"
	"github.com/penstock-io/penstock/integrations/dingtalk/dingtalktest"
	"github.com/penstock-io/penstock/test/system"
)

// serveOn runs a gateway on an address until stop is called.
func serveOn(t *testing.T, addr string) (g *dingtalktest.Gateway, stop func()) {
	t.Helper()
	l, err := net.Listen("tcp", addr)
	require.NoError(t, err)
	g, err = dingtalktest.New(dingtalktest.Config{
		Listener: l, Apps: []dingtalktest.Credentials{cred("a")}, PingEvery: 50 * time.Millisecond,
	})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- g.Run(ctx) }()
	stop = func() {
		cancel()
		require.NoError(t, <-ended)
	}
	return g, stop
}

// A gateway that goes away is waited for, and served as before when it is back.
func TestGatewayDownThenBack(t *testing.T) {
	t.Parallel()
	g, down := serveOn(t, "127.0.0.1:0")
	c := configure(g, "a")
	s := connected(t, g, c, system.Options{})
	push(t, g.App(""), "before")
	require.NoError(t, s.AwaitState(within(t), "a", integrations.StateReady))
	addr := g.URL()[len("http://"):]

	down()
	require.NoError(t, s.AwaitState(within(t), "a", integrations.StateDegraded))
	require.False(t, s.Health("a").Ready)
	require.NotEmpty(t, s.Health("a").Error)

	g, down = serveOn(t, addr)
	defer down()
	require.NoError(t, g.App("").AwaitSessions(within(t), 1))
	push(t, g.App(""), "after")
	require.NoError(t, s.Record.AwaitEnded(within(t), "after"))
	require.NoError(t, s.AwaitState(within(t), "a", integrations.StateReady))
	require.Empty(t, s.Health("a").Error)
	require.NoError(t, s.Stop())
}

// Wrong credentials park their own installation and touch no other; right ones end
// that at once.
func TestRefusedInstallationParksAlone(t *testing.T) {
	t.Parallel()
	g := gateway(t, "a", "b")
	c := configure(g, "a", "b")
	good := c.Installations[0]
	c.Installations[0].ClientSecret = "not-the-secret"
	s := system.Start(t, c, system.Options{})
	require.NoError(t, s.AwaitState(within(t), "a", integrations.StateParked))
	require.Equal(t, "auth_failed", s.Health("a").Code)
	b := g.App(cred("b").ClientID)
	require.NoError(t, b.AwaitSessions(within(t), 1))
	push(t, b, "for b")
	require.NoError(t, s.Record.AwaitEnded(within(t), "for b"))

	next := configure(g, "a", "b")
	next.Installations[0] = good
	require.NoError(t, s.App.Reload(within(t), next))
	a := g.App(cred("a").ClientID)
	require.NoError(t, a.AwaitSessions(within(t), 1))
	push(t, a, "for a")
	require.NoError(t, s.Record.AwaitEnded(within(t), "for a"))
	require.Equal(t, 1, b.Stats().Dials)
	require.NoError(t, s.Stop())
}
