package e2e_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/penstock-io/penstock/integrations"
	"github.com/penstock-io/penstock/integrations/dingtalk/dingtalktest"
	"github.com/penstock-io/penstock/internal/config"
	"github.com/penstock-io/penstock/message"
	"github.com/penstock-io/penstock/router"
	"github.com/penstock-io/penstock/test/system"
)

// Words that must stay inside. The ticket and the token have characters that a URL
// escapes.
const (
	wordSecret  = "SENTINEL-client-secret"
	wordTicket  = "SENTINEL-ticket+/="
	wordSession = "SENTINEL-session"
	wordToken   = "SENTINEL-access-token"
	wordAdmin   = "SENTINEL-admin-token"
)

// No secret is told: not in the log at its most talkative, not in an error, not on
// a page of the admin listener, whatever goes wrong.
func TestSecretsStayInside(t *testing.T) {
	t.Parallel()
	g := dingtalktest.Serve(t, dingtalktest.Config{
		Apps:      []dingtalktest.Credentials{{ClientID: "client-a", Secret: wordSecret}},
		PingEvery: 50 * time.Millisecond,
	})
	breakOpens(g)
	c := configure(g, "a")
	c.Installations[0].ClientSecret = wordSecret
	c.Admin = config.Admin{Listen: "127.0.0.1:0", Token: wordAdmin}
	c.Reconnect.ProbeEvery = 10 * time.Millisecond
	c.Outbound.Waits = []time.Duration{5 * time.Millisecond}
	c.Outbound.Attempts = 3
	s := connected(t, g, c, system.Options{})
	s.Record.Do(func(_ context.Context, m *message.Inbound) (router.Result, error) {
		if m.Text == "fails" {
			return router.Result{}, fmt.Errorf("handler got %+v", *m)
		}
		return router.Result{Replies: []message.Reply{{Text: "answer"}}}, nil
	})
	breakSends(g)
	for i := range 4 {
		m := text(fmt.Sprint("message ", i))
		m.Fields = map[string]any{
			"sessionWebhook": g.URL() + "/robot/sendBySession?session=" + wordSession,
		}
		_, err := g.App("").Push(m)
		require.NoError(t, err)
	}
	require.NoError(t, s.Record.Await(within(t), "ends of sends", func() bool {
		return len(s.Record.SendsEnded()) == 4
	}))
	require.NoError(t, s.AwaitState(within(t), "a", integrations.StateReady))
	seen := pages(t, s)
	for _, x := range s.Record.Tries() {
		seen = append(seen, fmt.Sprint(x.Err), fmt.Sprintf("%+v %#v", x.Reply, x.Reply))
	}
	seen = append(seen, fmt.Sprintf("%v %+v", c, c))
	if err := s.Stop(); err != nil {
		seen = append(seen, err.Error())
	}
	seen = append(seen, s.Log.Lines()...)
	require.Greater(t, len(s.Log.Lines()), 10)
	for _, x := range seen {
		require.NotContains(t, x, "SENTINEL")
	}
}

// breakOpens makes the first opens fail, each in a way that quotes a secret.
func breakOpens(g *dingtalktest.Gateway) {
	grant := fmt.Sprintf(`{"endpoint":%q,"ticket":%q}`,
		strings.Replace(g.URL(), "http", "ws", 1)+"/connect", wordTicket)
	refused := fmt.Sprintf(`{"endpoint":"ws://127.0.0.1:1/connect","ticket":%q}`, wordTicket)
	quoted := fmt.Sprintf(`{"code":"authFailed","message":"bad secret %s"}`, wordSecret)
	for _, f := range []dingtalktest.Fault{
		{Body: grant},   // a ticket that is not good
		{Body: refused}, // a host that does not answer
		{Status: 401, Body: quoted},
		{Status: 502, Body: "<html>you sent " + wordSecret + "</html>"},
		{Cut: true},
	} {
		g.Inject(dingtalktest.RouteOpen, 1, f)
	}
}

// breakSends makes sends fail with answers that quote what they were sent.
func breakSends(g *dingtalktest.Gateway) {
	g.Inject(dingtalktest.RouteWebhook, 1, dingtalktest.Fault{Cut: true})
	g.Inject(dingtalktest.RouteWebhook, 1, dingtalktest.Errcode(310000, "bad session "+wordSession))
	g.Inject(dingtalktest.RouteToken, -1, dingtalktest.Fault{
		Body: fmt.Sprintf(`{"accessToken":%q,"expireIn":7200}`, wordToken),
	})
	g.Inject(dingtalktest.RouteGroup, -1, dingtalktest.Fault{
		Status: 400, Body: fmt.Sprintf(`{"code":"invalidParameter.x","message":"token %s"}`, wordToken),
	})
}

// pages reads every page of the admin listener, with the token and without.
func pages(t *testing.T, s *system.Service) (all []string) {
	t.Helper()
	base, err := s.Admin(within(t))
	require.NoError(t, err)
	tr := &http.Transport{}
	defer tr.CloseIdleConnections()
	for _, path := range []string{"/metrics", "/readyz", "/readyz/a", "/healthz", "/nothing"} {
		for _, token := range []string{wordAdmin, ""} {
			req, err := http.NewRequestWithContext(within(t), http.MethodGet, base+path, nil)
			require.NoError(t, err)
			req.Header.Set("Authorization", "Bearer "+token)
			resp, err := (&http.Client{Transport: tr}).Do(req)
			require.NoError(t, err)
			b, err := io.ReadAll(resp.Body)
			require.NoError(t, err)
			require.NoError(t, resp.Body.Close())
			require.Equal(t, token == "", resp.StatusCode == http.StatusUnauthorized, path)
			all = append(all, string(b))
		}
	}
	return all
}
