package dingtalktest_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/url"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gorilla/websocket"
	"github.com/stretchr/testify/require"

	"github.com/penstock-io/penstock/integrations/dingtalk/dingtalktest"
)

const tokenHeader = "x-acs-dingtalk-access-token"

// client is a plain client of the gateway, over TCP or in memory.
type client struct {
	t    *testing.T
	gw   *dingtalktest.Gateway
	http *http.Client
	dial func(ctx context.Context, network, addr string) (net.Conn, error)
}

// open is the body of an open request.
func openBody(id, secret string) string {
	return `{"clientId":"` + id + `","clientSecret":"` + secret + `","ua":"test/1",` +
		`"localIp":"192.0.2.10","subscriptions":[{"type":"EVENT","topic":"*"},` +
		`{"type":"CALLBACK","topic":"/v1.0/im/bot/messages/get"},` +
		`{"type":"CALLBACK","topic":"/v1.0/card/instances/callback"},` +
		`{"type":"CALLBACK","topic":"/v1.0/card/dynamicData/get"},` +
		`{"type":"CALLBACK","topic":"/v1.0/graph/api/invoke"}]}`
}

// serve runs a gateway on TCP.
func serve(t *testing.T, cfg dingtalktest.Config) *client {
	return serveClient(t, dingtalktest.Serve(t, cfg))
}

// serveClient is a client over TCP.
func serveClient(t *testing.T, gw *dingtalktest.Gateway) *client {
	return newClient(t, gw, (&net.Dialer{}).DialContext)
}

// bubble runs f with a gateway in memory, in a synctest bubble.
func bubble(t *testing.T, cfg dingtalktest.Config, f func(c *client)) {
	synctest.Test(t, func(t *testing.T) {
		l := dingtalktest.NewPipeListener()
		cfg.Listener = l
		f(newClient(t, dingtalktest.Serve(t, cfg), l.DialContext))
	})
}

func newClient(t *testing.T, gw *dingtalktest.Gateway,
	dial func(context.Context, string, string) (net.Conn, error),
) *client {
	tr := &http.Transport{DialContext: dial}
	t.Cleanup(tr.CloseIdleConnections)
	return &client{t: t, gw: gw, dial: dial, http: &http.Client{Transport: tr}}
}

func (c *client) app() *dingtalktest.App { return c.gw.App("") }

// answer is an HTTP answer, read whole.
type answer struct {
	status int
	header http.Header
	body   string
	json   map[string]any
}

func (c *client) call(method, target string, header http.Header, body string) (answer, error) {
	req, err := http.NewRequestWithContext(c.t.Context(), method, target, bytes.NewBufferString(body))
	require.NoError(c.t, err)
	req.Header.Set("Accept", "application/json")
	for k, v := range header {
		req.Header[k] = v
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return answer{}, err
	}
	defer func() { _ = resp.Body.Close() }()
	b, err := io.ReadAll(resp.Body)
	a := answer{status: resp.StatusCode, header: resp.Header, body: string(b)}
	_ = json.Unmarshal(b, &a.json) // pages in HTML stay undecoded
	return a, err
}

// must is call without an error.
func (c *client) must(method, target string, header http.Header, body string) answer {
	c.t.Helper()
	a, err := c.call(method, target, header, body)
	require.NoError(c.t, err)
	return a
}

func (c *client) open() answer {
	c.t.Helper()
	cred := c.app().Credentials()
	return c.must("POST", c.gw.URL()+"/v1.0/gateway/connections/open", nil,
		openBody(cred.ClientID, cred.Secret))
}

// token gets an access token.
func (c *client) token() http.Header {
	c.t.Helper()
	cred := c.app().Credentials()
	a := c.must("POST", c.gw.URL()+"/v1.0/oauth2/accessToken", nil,
		`{"appKey":"`+cred.ClientID+`","appSecret":"`+cred.Secret+`"}`)
	require.Equal(c.t, 200, a.status, a.body)
	h := http.Header{}
	h.Set(tokenHeader, a.json["accessToken"].(string))
	return h
}

// dialTicket upgrades with a ticket.
func (c *client) dialTicket(endpoint, ticket string) (*conn, *http.Response, error) {
	u, err := url.Parse(endpoint)
	require.NoError(c.t, err)
	q := u.Query()
	q.Set("ticket", ticket)
	u.RawQuery = q.Encode()
	d := websocket.Dialer{NetDialContext: c.dial}
	ws, resp, err := d.DialContext(c.t.Context(), u.String(), nil)
	if err != nil {
		return nil, resp, err
	}
	k := &conn{t: c.t, ws: ws}
	c.t.Cleanup(func() { _ = ws.Close() })
	return k, resp, nil
}

// connect opens and dials.
func (c *client) connect() *conn {
	c.t.Helper()
	up := len(c.app().Sessions())
	a := c.open()
	require.Equal(c.t, 200, a.status, a.body)
	k, _, err := c.dialTicket(a.json["endpoint"].(string), a.json["ticket"].(string))
	require.NoError(c.t, err)
	require.NoError(c.t, c.app().AwaitSessions(within(c.t, time.Minute), up+1))
	return k
}

// conn is a client's socket.
type conn struct {
	t  *testing.T
	ws *websocket.Conn
}

// envelope is a frame as the client reads it.
type envelope struct {
	Type    string            `json:"type"`
	Headers map[string]string `json:"headers"`
	Data    string            `json:"data"`
	raw     string
}

func (e envelope) id() string { return e.Headers["messageId"] }

// read reads the next frame.
func (k *conn) read() envelope {
	k.t.Helper()
	e, err := k.next()
	require.NoError(k.t, err)
	return e
}

func (k *conn) next() (envelope, error) {
	_, b, err := k.ws.ReadMessage()
	e := envelope{raw: string(b)}
	_ = json.Unmarshal(b, &e) // odd frames stay undecoded
	return e, err
}

// ack answers a frame.
func (k *conn) ack(e envelope, code int, data string) {
	k.t.Helper()
	require.NoError(k.t, k.ws.WriteJSON(map[string]any{
		"code": code, "message": "OK", "data": data,
		"headers": map[string]any{
			"messageId": e.id(), "contentType": "application/json",
		},
	}))
}

// within bounds a wait in real time or in a bubble.
func within(t *testing.T, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

// push pushes and requires that it can.
func (c *client) push(m dingtalktest.Message) *dingtalktest.Pushed {
	c.t.Helper()
	p, err := c.app().Push(m)
	require.NoError(c.t, err)
	return p
}

// outcome waits for the outcome of a push.
func (c *client) outcome(p *dingtalktest.Pushed) (dingtalktest.Ack, error) {
	return p.Wait(within(c.t, time.Hour))
}
