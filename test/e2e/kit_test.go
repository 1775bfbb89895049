package e2e_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/penstock-io/penstock/integrations/dingtalk/dingtalktest"
	"github.com/penstock-io/penstock/internal/config"
	"github.com/penstock-io/penstock/message"
	"github.com/penstock-io/penstock/test/system"
)

// within gives a context that ends before the test's patience does.
func within(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// cred is the n-th app of a gateway.
func cred(name string) dingtalktest.Credentials {
	return dingtalktest.Credentials{ClientID: "client-" + name, Secret: "secret-of-" + name}
}

// gateway serves apps by name.
func gateway(t *testing.T, names ...string) *dingtalktest.Gateway {
	var cfg dingtalktest.Config
	for _, n := range names {
		cfg.Apps = append(cfg.Apps, cred(n))
	}
	cfg.PingEvery = 100 * time.Millisecond // a frame makes a session live
	return dingtalktest.Serve(t, cfg)
}

// configure gives one installation for each app, with waits for people in a hurry.
func configure(g *dingtalktest.Gateway, names ...string) *config.Config {
	var all []config.Installation
	for _, n := range names {
		all = append(all, system.Installation(n, g, cred(n)))
	}
	c := system.Config(all...)
	c.Reconnect.Base, c.Reconnect.Max = 10*time.Millisecond, 50*time.Millisecond
	return c
}

// connected starts a service and waits until every app has its socket.
func connected(
	t *testing.T, g *dingtalktest.Gateway, c *config.Config, o system.Options,
) *system.Service {
	t.Helper()
	s := system.Start(t, c, o)
	for _, in := range c.Installations {
		require.NoError(t, g.App(in.ClientID).AwaitSessions(within(t), 1))
	}
	return s
}

// push sends a text and waits for its acknowledgement.
func push(t *testing.T, a *dingtalktest.App, words string) {
	t.Helper()
	p, err := a.Push(text(words))
	require.NoError(t, err)
	ack, err := p.Wait(within(t))
	require.NoError(t, err)
	require.Equal(t, 200, ack.Code)
}

// text is a message that is found again by its text.
func text(s string) dingtalktest.Robot {
	m := dingtalktest.Text(message.ConversationID("cid-"+s), s)
	m.ID = message.ID("msg-" + s) // gateways that follow one another give the same ids
	return m
}
