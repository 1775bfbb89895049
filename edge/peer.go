package edge

import (
	"errors"
	"io"
	"log/slog"
	"os"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/gorilla/websocket"
	"golang.org/x/time/rate"

	"github.com/penstock-io/penstock/internal/wire"
)

// Bounds of what a connection may say that nobody wants.
const (
	straysPerSecond  = 50
	straysAtOnce     = 1000
	garbagePerSecond = 1
	garbageAtOnce    = 20
)

// Bounds of a connection's write queue. A healthy one never has a tenth of them.
const (
	queueFrames = 4096
	queueBytes  = 32 << 20
)

// peer is one connection of a consumer. Its reader is the goroutine that calls
// serve.
type peer struct {
	// immutable
	c      *consumer
	id     string
	ws     *websocket.Conn
	sock   *wire.Socket
	subs   map[subscription]bool
	agent  string
	remote string
	opened time.Time
	gone   chan struct{} // closed when it has left its consumer

	// atomic
	heard  atomic.Int64           // when something was last read, since opened
	probed atomic.Int64           // when it was last asked whether it reads, since opened
	why    atomic.Pointer[string] // why it was cut, nil if it was not

	// owned by the reader
	strays, garbage *rate.Limiter

	// guarded by the consumer's mu
	owed     int  // messages that wait for its answer
	homes    int  // conversations that stay on it
	retiring bool // it gets no messages any more
	retired  time.Time
	noticed  time.Time // when it was asked to leave, zero if it was not
	pinged   time.Time // the last time
	pings    int       // that it has not answered
	stalled  bool      // it did not read when it was last looked at
}

func newPeer(tk *ticket, ws *websocket.Conn) *peer {
	s := tk.consumer.srv
	now := time.Now()
	p := &peer{
		c: tk.consumer, id: newID(), ws: ws, subs: tk.subs, agent: tk.agent,
		remote: ws.RemoteAddr().String(), opened: now, pinged: now, gone: make(chan struct{}),
		strays:  rate.NewLimiter(straysPerSecond, straysAtOnce),
		garbage: rate.NewLimiter(garbagePerSecond, garbageAtOnce),
	}
	p.sock = wire.NewSocket(ws.NetConn(), wire.Config{
		WriteTimeout: s.cfg.WriteTimeout, Server: true, Peer: tk.consumer.bytes,
		Frames: queueFrames, Bytes: queueBytes, Hooks: s.hooks,
	})
	ws.SetReadLimit(s.cfg.MaxFrame)
	ws.SetPingHandler(func(data string) error {
		p.hear()
		_ = p.sock.Send(wire.Control, wire.Pong, []byte(data)) // dropped if it floods
		return nil
	})
	ws.SetPongHandler(func(string) error {
		p.hear()
		return nil
	})
	ws.SetCloseHandler(func(code int, _ string) error {
		if code == websocket.CloseNoStatusReceived {
			code = websocket.CloseNormalClosure
		}
		p.sock.Finish(uint16(code)) //nolint:gosec // a close code has 16 bits
		return nil
	})
	return p
}

// hear notes a sign of life. If the connection had stalled, messages may wait for it.
func (p *peer) hear() {
	now := int64(time.Since(p.opened))
	last := p.heard.Swap(now)
	if at := p.probed.Load(); at > last && now-at > int64(stallAfter) {
		p.c.found()
	}
}

// silence is how long nothing has been read.
func (p *peer) silence(now time.Time) time.Duration {
	return now.Sub(p.opened) - time.Duration(p.heard.Load())
}

// serve reads until the connection ends. It is closed when serve returns.
func (p *peer) serve() {
	log := p.c.srv.log.With("consumer", p.c.name, "connection", p.id)
	log.Info("consumer connected", "agent", p.agent)
	why := p.readSafely(log)
	if cut := p.why.Load(); cut != nil {
		why = *cut
	} else if p.asked() {
		why = closedAsked
	} else if errors.Is(p.sock.Err(), os.ErrDeadlineExceeded) {
		why = closedSlow // a write took too long
	}
	p.c.leave(p)
	if code, ok := codes[why]; ok {
		p.sock.Finish(code)
	}
	p.sock.Close()
	p.c.srv.count.closed.add(why)
	log.Info("consumer's connection ended", "why", why,
		"after", time.Since(p.opened).Round(time.Millisecond))
}

// asked tells whether it was asked to leave.
func (p *peer) asked() bool {
	p.c.mu.Lock()
	defer p.c.mu.Unlock()
	return !p.noticed.IsZero()
}

// readSafely keeps what a connection does to us from everybody else.
func (p *peer) readSafely(log *slog.Logger) (why string) {
	defer func() {
		if v := recover(); v != nil {
			log.Error("panic in a consumer's connection", "panic", v, "stack", string(debug.Stack()))
			why = closedLost
		}
	}()
	return p.read()
}

// codes are what a connection is told that we close.
var codes = map[string]uint16{
	closedGarbage:  websocket.CloseInvalidFramePayloadData,
	closedFlood:    websocket.ClosePolicyViolation,
	closedAsked:    websocket.CloseGoingAway,
	closedStopping: websocket.CloseServiceRestart,
}

// read takes answers until the connection ends and tells why it did.
func (p *peer) read() (why string) {
	for {
		kind, r, err := p.ws.NextReader()
		var b []byte
		if err == nil {
			b, err = io.ReadAll(r)
		}
		if err != nil {
			return ended(err)
		}
		p.hear()
		a, ok := readAnswer(b)
		if kind != websocket.TextMessage || !ok {
			p.c.srv.count.strays.add(strayGarbage)
			if !p.garbage.Allow() {
				return closedGarbage
			}
			continue
		}
		if !p.take(a) {
			return closedFlood
		}
	}
}

// take gives an answer to whoever waits for it. It is false if too many have come
// that nobody waits for.
func (p *peer) take(a answer) bool {
	if p.c.ponged(p, a.id) {
		return true
	}
	stray := p.c.answered(a)
	if stray == "" {
		return true
	}
	p.c.srv.count.strays.add(stray)
	return p.strays.Allow()
}

// ended tells why a read failed.
func ended(err error) string {
	switch {
	case errors.Is(err, websocket.ErrReadLimit):
		return closedTooLarge
	case websocket.IsCloseError(err, websocket.CloseNormalClosure, websocket.CloseGoingAway,
		websocket.CloseNoStatusReceived):
		return closedByPeer
	default:
		return closedLost
	}
}

// cut ends a connection at once. The first reason counts.
func (p *peer) cut(why string) {
	p.why.CompareAndSwap(nil, &why)
	p.sock.Fail(errCut)
}

// shut ends a connection after what is on its way.
func (p *peer) shut(why string) {
	p.why.CompareAndSwap(nil, &why)
	p.sock.Finish(codes[why])
}

var errCut = errors.New("the connection was cut")
