package dingtalk_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"github.com/stretchr/testify/require"

	"github.com/penstock-io/penstock/integrations"
	"github.com/penstock-io/penstock/integrations/dingtalk"
	"github.com/penstock-io/penstock/message"
)

// Sentinels of the secrets: they must never be seen in a log or an error.
const (
	secret = "s3cret/sent+inel"
	ticket = "tk/ex+am=ple&0077"
)

// gateway is a bare gateway: it grants every request, upgrades every dial, and
// gives the sockets to the test, which says every word of the conversation.
type gateway struct {
	addr  string
	socks chan *websocket.Conn
	opens chan string // bodies of open requests
	dials chan string // request URIs of dials

	// open and connect answer in place of the usual, if set before the first use
	open, connect http.HandlerFunc
}

func newGateway(t testing.TB, l net.Listener) *gateway {
	g := &gateway{
		addr:  l.Addr().String(),
		socks: make(chan *websocket.Conn, 16),
		opens: make(chan string, 4096),
		dials: make(chan string, 4096),
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1.0/gateway/connections/open", g.serveOpen)
	mux.HandleFunc("/connect", g.serveConnect)
	srv := &http.Server{Handler: mux}
	var served sync.WaitGroup
	served.Go(func() { _ = srv.Serve(l) })
	t.Cleanup(func() {
		_ = srv.Close()
		served.Wait()
	})
	return g
}

// tcpGateway listens on a real socket.
func tcpGateway(t *testing.T) *gateway {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	return newGateway(t, l)
}

func (g *gateway) serveOpen(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	g.opens <- string(body)
	if g.open != nil {
		g.open(w, r)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]string{
		"endpoint": "ws://" + g.addr + "/connect?region=a", "ticket": ticket,
	})
}

func (g *gateway) serveConnect(w http.ResponseWriter, r *http.Request) {
	g.dials <- r.RequestURI
	if g.connect != nil {
		g.connect(w, r)
		return
	}
	g.upgrade(w, r)
}

func (g *gateway) upgrade(w http.ResponseWriter, r *http.Request) {
	up := websocket.Upgrader{}
	ws, err := up.Upgrade(w, r, nil)
	if err == nil {
		g.socks <- ws
	}
}

func (g *gateway) config() dingtalk.Config {
	return dingtalk.Config{
		Installation: "bot", ClientID: "client", ClientSecret: secret,
		APIBase: "http://" + g.addr, AllowInsecure: true, Proxy: dingtalk.ProxyNone,
		Topics: []string{topicRobot, topicCard},
	}
}

const (
	topicRobot = "/v1.0/im/bot/messages/get"
	topicCard  = "/v1.0/card/instances/callback"
)

// core is the side that takes deliveries.
type core struct {
	offers  chan message.Delivery
	opened  chan struct{}
	live    chan struct{}
	retired chan time.Duration
	offer   func(message.Delivery) error // in place of the channel, if set
}

func newCore() *core {
	return &core{
		offers:  make(chan message.Delivery, 1000),
		opened:  make(chan struct{}, 10),
		live:    make(chan struct{}, 1000),
		retired: make(chan time.Duration, 10),
	}
}

func (c *core) Opened()                { c.opened <- struct{}{} }
func (c *core) Live()                  { c.live <- struct{}{} }
func (c *core) Retire(d time.Duration) { c.retired <- d }
func (c *core) Offer(_ context.Context, d message.Delivery) error {
	if c.offer != nil {
		return c.offer(d)
	}
	c.offers <- d
	return nil
}

// running is a session under test.
type running struct {
	core *core
	conn *dingtalk.Connector
	sock *websocket.Conn // the gateway's end
	stop context.CancelFunc
	end  chan integrations.End
}

// run starts a session without waiting for it.
func run(t *testing.T, cfg dingtalk.Config) *running {
	t.Helper()
	c, err := dingtalk.New(cfg)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	r := &running{core: newCore(), conn: c, stop: cancel, end: make(chan integrations.End, 1)}
	go func() { r.end <- c.Run(ctx, nil, r.core) }()
	return r
}

// serve starts a session and waits for its socket.
func serve(t *testing.T, g *gateway, change func(*dingtalk.Config)) *running {
	t.Helper()
	cfg := g.config()
	if change != nil {
		change(&cfg)
	}
	r := run(t, cfg)
	r.sock = <-g.socks
	t.Cleanup(func() {
		r.stop()
		_ = r.sock.Close()
	})
	return r
}

// say sends one text message.
func (r *running) say(t *testing.T, text string) {
	t.Helper()
	require.NoError(t, r.sock.WriteMessage(websocket.TextMessage, []byte(text)))
}

// hear gives the next text message of the client.
func (r *running) hear(t *testing.T) string {
	t.Helper()
	_, b, err := r.sock.ReadMessage()
	require.NoError(t, err)
	return string(b)
}

// frame is a frame's text; data is the inner document.
func frame(kind, topic, id, data string) string {
	quoted, _ := json.Marshal(data)
	return fmt.Sprintf(`{"specVersion":"1.0","type":%q,"headers":{"topic":%q,"messageId":%q,`+
		`"contentType":"application/json","time":"1767225600000"},"data":%s}`, kind, topic, id, quoted)
}

func robotFrame(id string) string {
	return frame("CALLBACK", topicRobot, id, `{"conversationId":"cid1","msgId":"m-`+id+`",`+
		`"msgtype":"text","text":{"content":"hello"},"conversationType":"1","senderId":"u1"}`)
}

const cardData = `{"type":"actionCallback","outTrackId":"t1","userId":"u1","spaceId":"s1","content":"{}"}`

// pipes is a listener whose connections live in memory, for synctest.
type pipes struct {
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once
}

func newPipes() *pipes { return &pipes{conns: make(chan net.Conn), done: make(chan struct{})} }

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	p.once.Do(func() { close(p.done) })
	return nil
}

func (p *pipes) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 80} }

func (p *pipes) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	ours, theirs := net.Pipe()
	select {
	case p.conns <- theirs:
		return ours, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-p.done:
		return nil, net.ErrClosed
	}
}

// pipeGateway lives in the test's bubble.
func pipeGateway(t *testing.T) (g *gateway, use func(*dingtalk.Config)) {
	p := newPipes()
	return newGateway(t, p), func(c *dingtalk.Config) { c.DialContext = p.dial }
}

// listen reads the gateway's end for the rest of the test, which answers pings.
func (r *running) listen() {
	go func() {
		for {
			if _, _, err := r.sock.ReadMessage(); err != nil {
				return
			}
		}
	}()
}

// dataOf is the inner document of an answer.
func dataOf(t *testing.T, text string) string {
	t.Helper()
	var a struct{ Data string }
	require.NoError(t, json.Unmarshal([]byte(text), &a))
	return a.Data
}
