package dingtalktest_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/penstock-io/penstock/integrations/dingtalk/dingtalktest"
)

func escape(ticket string) string { return url.QueryEscape(ticket) }

func TestTicketWorksOnce(t *testing.T) {
	t.Parallel()
	c := serve(t, dingtalktest.Config{EndpointQuery: "region=a"})
	a := c.open()
	endpoint, ticket := a.json["endpoint"].(string), a.json["ticket"].(string)
	require.Contains(t, endpoint, "?region=a")
	for _, char := range "+%=/&" {
		require.Contains(t, ticket, string(char))
	}
	_, _, err := c.dialTicket(endpoint, ticket)
	require.NoError(t, err)
	_, resp, err := c.dialTicket(endpoint, ticket)
	require.Error(t, err)
	require.Equal(t, http.StatusUnauthorized, resp.StatusCode)
	require.NoError(t, c.app().AwaitSessions(within(t, time.Minute), 1))
	info := c.only().Info()
	require.Equal(t, "test/1", info.UserAgent)
	require.Equal(t, "192.0.2.10", info.LocalIP)
	require.Len(t, info.Subscriptions, 5)
	require.Equal(t, 1, c.app().Stats().DialsFailed)
}

func TestTicketThatIsNotEscapedIsRefused(t *testing.T) {
	t.Parallel()
	c := serve(t, dingtalktest.Config{})
	a := c.open()
	got := c.must("GET", c.gw.URL()+"/connect?ticket="+a.json["ticket"].(string), nil, "")
	require.Equal(t, http.StatusUnauthorized, got.status)
}

func TestTicketLives90Seconds(t *testing.T) {
	t.Parallel()
	bubble(t, dingtalktest.Config{PlainTickets: true}, func(c *client) {
		a := c.open()
		<-time.After(91 * time.Second)
		_, resp, err := c.dialTicket(a.json["endpoint"].(string), a.json["ticket"].(string))
		require.Error(c.t, err)
		require.Equal(c.t, http.StatusUnauthorized, resp.StatusCode)
		require.Equal(c.t, a.json["ticket"], escape(a.json["ticket"].(string)))
	})
}

func TestOpenRefusals(t *testing.T) {
	t.Parallel()
	c := serve(t, dingtalktest.Config{})
	target := c.gw.URL() + "/v1.0/gateway/connections/open"
	cred := c.app().Credentials()
	for body, want := range map[string]int{
		openBody(cred.ClientID, "wrong"):      401,
		openBody("nobody", cred.Secret):       401,
		openBody("", cred.Secret):             400,
		"{":                                   400,
		`{"clientId":"a","clientSecret":"b"}`: 400,
		openBody(cred.ClientID, cred.Secret):  200,
	} {
		require.Equal(t, want, c.must("POST", target, nil, body).status, body)
	}
	xml := c.must("POST", target, http.Header{"Accept": nil}, openBody(cred.ClientID, cred.Secret))
	require.Contains(t, xml.body, "<endpoint>")
	s := c.app().Stats()
	require.Equal(t, []int{2, 3}, []int{s.Opens, s.OpensFailed})
}

func TestRefusalsAreToldToTheHook(t *testing.T) {
	t.Parallel()
	told := make(chan dingtalktest.Refusal, 10)
	c := serve(t, dingtalktest.Config{
		PlainTickets: true, TicketLife: time.Nanosecond,
		OnRefusal: func(r dingtalktest.Refusal) { told <- r },
	})
	cred, open := c.app().Credentials(), c.gw.URL()+"/v1.0/gateway/connections/open"
	for _, tt := range []struct {
		method, url, body string
		route             dingtalktest.Route
		reason            dingtalktest.Reason
		status            int
	}{
		{"POST", open, "{}", dingtalktest.RouteOpen, dingtalktest.RefusedRequest, 400},
		{"POST", open, openBody("nobody", cred.Secret), dingtalktest.RouteOpen, dingtalktest.RefusedClient, 401},
		{"POST", open, openBody(cred.ClientID, "wrong"), dingtalktest.RouteOpen, dingtalktest.RefusedSecret, 401},
		{"GET", c.gw.URL() + "/connect?ticket=x", "", dingtalktest.RouteConnect, dingtalktest.RefusedTicket, 401},
		{
			"GET", c.gw.URL() + "/connect?ticket=" + c.open().json["ticket"].(string), "",
			dingtalktest.RouteConnect, dingtalktest.RefusedExpired, 401,
		},
	} {
		require.Equal(t, tt.status, c.must(tt.method, tt.url, nil, tt.body).status)
		r := <-told
		require.NotEmpty(t, r.Remote)
		r.Remote = ""
		require.Equal(t, dingtalktest.Refusal{Route: tt.route, Status: tt.status, Reason: tt.reason}, r)
	}
	c.gw.Inject(dingtalktest.RouteOpen, 1, dingtalktest.AuthFailed())
	require.Equal(t, 401, c.open().status)
	require.Empty(t, told, "a fault that was asked for is none")
}

func TestInjectedOpenFaults(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		fault  dingtalktest.Fault
		status int
		code   any
	}{
		"auth":        {dingtalktest.AuthFailed(), 401, "authFailed"},
		"bad":         {dingtalktest.APIError(400, "invalidParameter"), 400, "invalidParameter"},
		"qps":         {dingtalktest.QPS(), 403, "Forbidden.AccessDenied.QpsLimitForAppkeyAndApi"},
		"qpm":         {dingtalktest.QPM(), 403, "Forbidden.AccessDenied.QpmLimitForAppkeyAndApi"},
		"too many":    {dingtalktest.TooMany(2500 * time.Millisecond), 429, "TooManyRequests"},
		"unavailable": {dingtalktest.Unavailable(), 503, nil},
		"html":        {dingtalktest.HTML(200, "<html>login</html>"), 200, nil},
		"empty":       {dingtalktest.EmptyEndpoint(), 200, nil},
		"banned":      {dingtalktest.Banned(), 200, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := serve(t, dingtalktest.Config{})
			c.gw.Inject(dingtalktest.RouteOpen, 2, test.fault)
			for range 2 {
				a := c.open()
				require.Equal(t, test.status, a.status)
				require.Equal(t, test.code, a.json["code"])
				require.Empty(t, a.json["endpoint"])
				if name == "too many" {
					require.Equal(t, "3", a.header.Get("Retry-After"))
				}
			}
			require.NotEmpty(t, c.open().json["endpoint"])
			require.Equal(t, 2, c.app().Stats().OpensFailed)
		})
	}
}

func TestFaultsAreUsedUpInOrderOrCleared(t *testing.T) {
	t.Parallel()
	c := serve(t, dingtalktest.Config{})
	c.gw.Inject(dingtalktest.RouteOpen, 0, dingtalktest.QPM())
	c.gw.Inject(dingtalktest.RouteOpen, 1, dingtalktest.QPS())
	c.gw.Inject(dingtalktest.RouteOpen, -1, dingtalktest.Unavailable())
	require.Equal(t, 403, c.open().status)
	for range 3 {
		require.Equal(t, 503, c.open().status)
	}
	c.gw.Clear(dingtalktest.RouteOpen)
	require.Equal(t, 200, c.open().status)
}

func TestSlowHangingAndCutAnswers(t *testing.T) {
	t.Parallel()
	bubble(t, dingtalktest.Config{}, func(c *client) {
		c.gw.Inject(dingtalktest.RouteOpen, 1, dingtalktest.Slow(7*time.Second))
		start := time.Now()
		require.Equal(c.t, 200, c.open().status)
		require.Equal(c.t, 7*time.Second, time.Since(start))

		c.http.Timeout = 5 * time.Second
		c.gw.Inject(dingtalktest.RouteOpen, 1, dingtalktest.Fault{Hang: true})
		_, err := c.call("POST", c.gw.URL()+"/v1.0/gateway/connections/open", nil, "{}")
		require.ErrorIs(c.t, err, context.DeadlineExceeded)

		c.gw.Inject(dingtalktest.RouteOpen, 1, dingtalktest.Fault{Cut: true})
		_, err = c.call("POST", c.gw.URL()+"/v1.0/gateway/connections/open", nil, "{}")
		require.Error(c.t, err)
	})
}

func TestUpgradeCanBeRefused(t *testing.T) {
	t.Parallel()
	c := serve(t, dingtalktest.Config{})
	c.gw.Inject(dingtalktest.RouteConnect, 1, dingtalktest.APIError(403, "no"))
	a := c.open()
	endpoint, ticket := a.json["endpoint"].(string), a.json["ticket"].(string)
	_, resp, err := c.dialTicket(endpoint, ticket)
	require.Error(t, err)
	require.Equal(t, 403, resp.StatusCode)
	_, _, err = c.dialTicket(endpoint, ticket) // it was not used up
	require.NoError(t, err)
}

func TestSeveralApps(t *testing.T) {
	t.Parallel()
	c := serve(t, dingtalktest.Config{})
	other, err := c.gw.AddApp(dingtalktest.Credentials{ClientID: "other", Secret: "s"})
	require.NoError(t, err)
	require.Same(t, other, c.gw.App("other"))
	require.Nil(t, c.gw.App("nobody"))
	require.Equal(t, "other", other.Credentials().RobotCode)
	_, err = c.gw.AddApp(dingtalktest.Credentials{ClientID: "other"})
	require.ErrorIs(t, err, dingtalktest.ErrAppExists)
	_, err = c.gw.AddApp(dingtalktest.Credentials{})
	require.Error(t, err)
	c.connect()
	p, err := other.Push(dingtalktest.Text("cid1", "hello"))
	require.NoError(t, err)
	_, err = c.outcome(p)
	require.ErrorIs(t, err, dingtalktest.ErrLost)
}

func TestConfigIsChecked(t *testing.T) {
	t.Parallel()
	for field, cfg := range map[string]dingtalktest.Config{
		"TicketLife":      {TicketLife: -1},
		"Linger":          {Linger: -1},
		"Redelivery":      {Redelivery: "twice"},
		"Down":            {Down: "up"},
		"EventRetries[1]": {EventRetries: []time.Duration{0, -1}},
		"HoldLimit":       {HoldLimit: -1},
		"Record":          {Record: -1},
		"Apps":            {Apps: []dingtalktest.Credentials{{}}},
	} {
		_, err := dingtalktest.New(cfg)
		require.ErrorContains(t, err, field+":")
	}
}

func TestStopEndsEverything(t *testing.T) {
	t.Parallel()
	gw, err := dingtalktest.New(dingtalktest.Config{})
	require.NoError(t, err)
	require.Empty(t, gw.URL())
	require.NoError(t, gw.Listen())
	require.NoError(t, gw.Listen())
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- gw.Run(ctx) }()
	c := serveClient(t, gw)
	k := c.connect()
	p := c.push(dingtalktest.Text("cid1", "hello"))
	k.read()
	cancel()
	require.NoError(t, <-ended)
	_, err = k.next()
	require.Error(t, err)
	_, err = c.outcome(p)
	require.ErrorIs(t, err, dingtalktest.ErrClosed)
	_, err = gw.App("").Push(dingtalktest.Text("cid1", "hello"))
	require.ErrorIs(t, err, dingtalktest.ErrClosed)
	require.ErrorIs(t, gw.App("").AwaitSessions(t.Context(), 9), dingtalktest.ErrClosed)
	require.ErrorIs(t, gw.Run(t.Context()), dingtalktest.ErrClosed)
	_, err = gw.AddApp(dingtalktest.Credentials{ClientID: "late"})
	require.ErrorIs(t, err, dingtalktest.ErrClosed)
}

func TestUnservedGatewayIsGivenUp(t *testing.T) {
	t.Parallel()
	gw, err := dingtalktest.New(dingtalktest.Config{})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.NoError(t, gw.Run(ctx))
}

func TestRecordIsBounded(t *testing.T) {
	t.Parallel()
	c := serve(t, dingtalktest.Config{Record: 3})
	k := c.connect()
	var last dingtalktest.Ack
	for range 5 {
		p := c.push(dingtalktest.Text("cid1", "hello"))
		k.ack(k.read(), 200, "")
		var err error
		last, err = c.outcome(p)
		require.NoError(t, err)
	}
	acks := c.app().Acks()
	require.Len(t, acks, 3)
	require.Equal(t, last, acks[2])
	require.Equal(t, 5, c.app().Stats().Acks)
	b, err := json.Marshal(acks)
	require.NoError(t, err)
	require.NotEmpty(t, b)
}
