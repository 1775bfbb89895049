package edge_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"github.com/stretchr/testify/require"

	"github.com/penstock-io/penstock/edge"
	"github.com/penstock-io/penstock/message"
	"github.com/penstock-io/penstock/router"
)

// What tests look for in places where it must not be.
const (
	secretOfOne = "SENTINEL-secret-one"
	secretOfTwo = "SENTINEL-secret-two"
	vendorHook  = "https://oapi.dingtalk.com/robot/sendBySession?session=SENTINEL-hook"
)

const topicRobot = "/v1.0/im/bot/messages/get"

// patience bounds what a test waits for.
const patience = 20 * time.Second

// bench is a server with the consumers "one" and "two".
type bench struct {
	t         *testing.T
	srv       *edge.Server
	out       *outbox
	log       *logBuffer
	connected chan struct{} // has a token for each time that all may try again, up to 100
	again     atomic.Int64  // how many more may
	stop      func()
}

func serve(t *testing.T, cfg edge.Config) *bench {
	t.Helper()
	b := &bench{
		t: t, out: &outbox{}, log: &logBuffer{}, connected: make(chan struct{}, 100),
	}
	cfg.Listen, cfg.Outbox = "127.0.0.1:0", b.out
	cfg.Logger = slog.New(slog.NewTextHandler(b.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	cfg.Again = func(n int) {
		if n == 0 {
			b.connected <- struct{}{}
		} else {
			b.again.Add(int64(n))
		}
	}
	if cfg.Consumers == nil {
		cfg.Consumers = consumers()
	}
	var err error
	b.srv, err = edge.New(cfg)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- b.srv.Run(ctx) }()
	b.stop = sync.OnceFunc(func() {
		cancel()
		require.NoError(t, <-ended)
	})
	t.Cleanup(func() {
		b.stop()
		require.NotContains(t, b.log.String(), "SENTINEL")
	})
	b.eventually(func() bool { return b.srv.URL() != "" })
	return b
}

func consumers() []edge.Consumer {
	return []edge.Consumer{
		{Name: "one", ClientID: "client-one", ClientSecret: secretOfOne},
		{Name: "two", ClientID: "client-two", ClientSecret: secretOfTwo},
	}
}

func (b *bench) eventually(ok func() bool) {
	b.t.Helper()
	require.Eventually(b.t, ok, patience, time.Millisecond)
}

// counts waits until a number of the statistics is n.
func (b *bench) counts(n int64, of func(edge.Stats) int64) {
	b.t.Helper()
	b.eventually(func() bool { return of(b.srv.Stats()) == n })
}

// logBuffer keeps what is logged.
type logBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer // guarded by mu
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// outbox keeps what it is sent.
type outbox struct {
	mu sync.Mutex
	// guarded by mu
	sent []message.Outbound
	err  error
	gone bool // there is no installation
}

func (o *outbox) Address(m *message.Inbound) (message.Target, error) {
	return message.Target("SENTINEL target of " + m.Conversation.ID), nil
}

func (o *outbox) Send(_ context.Context, out message.Outbound) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.err == nil {
		o.sent = append(o.sent, out)
	}
	return o.err
}

func (o *outbox) Secret(id message.InstallationID) (string, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return "SENTINEL owner of " + string(id), !o.gone
}

func (o *outbox) set(change func(*outbox)) {
	o.mu.Lock()
	defer o.mu.Unlock()
	change(o)
}

func (o *outbox) list() []message.Outbound {
	o.mu.Lock()
	defer o.mu.Unlock()
	return append([]message.Outbound(nil), o.sent...)
}

// post sends a body and gives the status and the answer.
func (b *bench) post(url, body string) (int, map[string]any) {
	b.t.Helper()
	req, err := http.NewRequestWithContext(b.t.Context(), http.MethodPost, url, strings.NewReader(body))
	require.NoError(b.t, err)
	res, err := http.DefaultClient.Do(req)
	require.NoError(b.t, err)
	defer res.Body.Close()
	defer http.DefaultClient.CloseIdleConnections()
	var m map[string]any
	text, err := io.ReadAll(res.Body)
	require.NoError(b.t, err)
	require.NoError(b.t, json.Unmarshal(text, &m), string(text))
	return res.StatusCode, m
}

func (b *bench) openURL() string { return b.srv.URL() + "/v1.0/gateway/connections/open" }

// credentials is the body of a request for a ticket.
func credentials(id, secret string, topics ...string) string {
	subs := []map[string]string{{"type": "EVENT", "topic": "*"}}
	if topics == nil {
		topics = []string{topicRobot, "/v1.0/card/instances/callback"}
	}
	for _, t := range topics {
		subs = append(subs, map[string]string{"type": "CALLBACK", "topic": t})
	}
	b, _ := json.Marshal(map[string]any{ //nolint:errchkjson // strings
		"clientId": id, "clientSecret": secret, "subscriptions": subs, "ua": "test/1",
	})
	return string(b)
}

// ticket asks for one.
func (b *bench) ticket(id, secret string, topics ...string) (endpoint, ticket string) {
	b.t.Helper()
	status, m := b.post(b.openURL(), credentials(id, secret, topics...))
	require.Equal(b.t, 200, status, m)
	return m["endpoint"].(string), m["ticket"].(string)
}

// client is a connection of a consumer.
type client struct {
	t  *testing.T
	ws *websocket.Conn
}

// dial connects consumer "one".
func (b *bench) dial(topics ...string) *client {
	b.t.Helper()
	return b.dialAs("client-one", secretOfOne, topics...)
}

func (b *bench) dialAs(id, secret string, topics ...string) *client {
	b.t.Helper()
	before := b.srv.Stats().Dials["ok"]
	endpoint, ticket := b.ticket(id, secret, topics...)
	ws, res, err := websocket.DefaultDialer.Dial(endpoint+"?ticket="+ticket, nil)
	require.NoError(b.t, err)
	_ = res.Body.Close()
	b.t.Cleanup(func() { _ = ws.Close() })
	b.eventually(func() bool { return b.srv.Stats().Dials["ok"] > before })
	return &client{b.t, ws}
}

// tryDial connects consumer "one", if it can.
func (b *bench) tryDial() (*client, error) {
	res, err := http.Post(b.openURL(), "application/json",
		strings.NewReader(credentials("client-one", secretOfOne)))
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	var open struct{ Endpoint, Ticket string }
	if err := json.NewDecoder(res.Body).Decode(&open); err != nil {
		return nil, err
	}
	ws, upgrade, err := websocket.DefaultDialer.Dial(open.Endpoint+"?ticket="+open.Ticket, nil)
	if err != nil {
		return nil, err
	}
	_ = upgrade.Body.Close()
	b.t.Cleanup(func() { _ = ws.Close() })
	return &client{b.t, ws}, nil
}

// frame is what a client reads.
type frame struct {
	SpecVersion string
	Type        string
	Headers     map[string]string
	Data        string
}

// read gives the next frame that is no ping; pings are answered.
func (c *client) read() frame {
	c.t.Helper()
	f, err := c.next()
	require.NoError(c.t, err)
	return f
}

func (c *client) next() (frame, error) {
	for {
		_ = c.ws.SetReadDeadline(time.Now().Add(patience))
		_, b, err := c.ws.ReadMessage()
		if err != nil {
			return frame{}, err
		}
		var f frame
		if err := json.Unmarshal(b, &f); err != nil {
			return frame{}, err
		}
		if f.Headers["topic"] != "ping" {
			return f, nil
		}
		c.answer(f.Headers["messageId"], 200, f.Data)
	}
}

// ended reads until the connection ends and gives the close code, 0 for none.
func (c *client) ended() int {
	for {
		_, err := c.next()
		var ce *websocket.CloseError
		switch {
		case errors.As(err, &ce):
			return ce.Code
		case err != nil:
			return 0
		}
	}
}

func (c *client) answer(id string, code int, data string) {
	b, _ := json.Marshal(map[string]any{ //nolint:errchkjson // strings
		"code": code, "headers": map[string]string{"messageId": id, "contentType": "application/json"},
		"message": "OK", "data": data,
	})
	c.write(string(b))
}

func (c *client) write(s string) { _ = c.ws.WriteMessage(websocket.TextMessage, []byte(s)) }

// ok answers a frame well.
func (c *client) ok(f frame) { c.answer(f.Headers["messageId"], 200, `{"response":null}`) }

// run is a call of a handler.
type run struct {
	t    *testing.T
	done chan struct{} // closed at its end
	res  router.Result
	err  error
}

// give hands a message to consumer "one".
func (b *bench) give(m *message.Inbound) *run { return b.giveTo(b.t.Context(), "one", m) }

func (b *bench) giveTo(ctx context.Context, name string, m *message.Inbound) *run {
	r := &run{t: b.t, done: make(chan struct{})}
	h := b.srv.Handler(name)
	go func() {
		defer close(r.done)
		r.res, r.err = h.Handle(ctx, m)
	}()
	return r
}

func (r *run) wait() (router.Result, error) {
	r.t.Helper()
	select {
	case <-r.done:
	case <-time.After(patience):
		require.Fail(r.t, "the handler did not return")
	}
	return r.res, r.err
}

func (r *run) pending() bool {
	select {
	case <-r.done:
		return false
	default:
		return true
	}
}

// robot is a chat message.
func robot(id, conversation string) *message.Inbound {
	return &message.Inbound{
		ID: message.ID(id), Installation: "bot", Platform: "dingtalk", Kind: message.KindMessage,
		Topic: topicRobot, Attempt: 1,
		Conversation: message.Conversation{ID: message.ConversationID(conversation), Type: message.ChatGroup},
		Raw: message.Raw(`{"msgId":"` + id + `", "text":{"content":"<hi> & \u4f60"},"sessionWebhook":"` +
			vendorHook + `" ,"sessionWebhookExpiredTime":1785005400130,"n":1e2}`),
	}
}

func number(s string) int64 {
	n, _ := strconv.ParseInt(s, 10, 64)
	return n
}
