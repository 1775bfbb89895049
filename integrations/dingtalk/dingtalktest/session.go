package dingtalktest

import (
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"github.com/gorilla/websocket"

	"github.com/penstock-io/penstock/message"
)

const (
	readLimit = 1 << 20
	// closeWait is how long a client may take to answer a close frame.
	closeWait = 5 * time.Second
)

// Subscription is what a client asks for when it opens a connection.
type Subscription struct {
	Type  string `json:"type"`
	Topic string `json:"topic"`
}

// system is a SYSTEM frame that may be answered.
type system struct{ topic, data string }

// SessionState tells what the gateway does with a socket.
type SessionState string

// States of a session.
const (
	StateOpen     SessionState = "open"     // may be chosen for pushes
	StateRetiring SessionState = "retiring" // asked to disconnect; answers still count
	StateClosing  SessionState = "closing"  // a close frame is on its way
	StateClosed   SessionState = "closed"
)

// SessionInfo is a snapshot of a session.
type SessionInfo struct {
	ID            int // counts from 1, per gateway
	State         SessionState
	Reason        string // why it closed
	Opened        time.Time
	Remote        string
	UserAgent     string // the ua of the open request
	LocalIP       string
	Subscriptions []Subscription
	Pushed        int // frames given to it, those that vanished included
	Acks          int // answers read from it
	Pings         int // SYSTEM pings sent
	Pongs         int // answered right
	BadPongs      int // answered with other data
	BadReplies    int // answers that could not be read
}

// Session is one socket of an app's client.
type Session struct {
	// immutable
	app    *App
	id     int
	uuid   string
	opened time.Time
	remote string
	ask    openRequest
	ws     *websocket.Conn
	sock   *socket

	// read and written from anywhere
	pushed atomic.Int64
	acks   atomic.Int64
	lastIn atomic.Int64 // unix nanoseconds of the last frame read
	gagged atomic.Bool  // a zombie: what is pushed vanishes

	// guarded by app.mu
	state      SessionState
	info       SessionInfo // the counters without one of their own
	systems    map[message.FrameID]system
	ping, bye  *time.Timer
	disconnect *time.Timer
}

// Info tells how the session stands.
func (s *Session) Info() SessionInfo {
	s.app.mu.Lock()
	defer s.app.mu.Unlock()
	i := s.info
	i.ID, i.State, i.Opened, i.Remote = s.id, s.state, s.opened, s.remote
	i.UserAgent, i.LocalIP, i.Subscriptions = s.ask.UA, s.ask.LocalIP, s.ask.Subscriptions
	i.Pushed, i.Acks = int(s.pushed.Load()), int(s.acks.Load())
	if s.sock.isEnded() {
		i.State, i.Reason = StateClosed, s.sock.why()
	}
	return i
}

// Done is closed when the socket has ended.
func (s *Session) Done() <-chan struct{} { return s.sock.done }

// Ping sends a SYSTEM ping now, if the session is open.
func (s *Session) Ping() {
	s.app.mu.Lock()
	defer s.app.mu.Unlock()
	s.pingLocked()
}

// pingLocked sends a SYSTEM ping with data that only a true echo can match.
func (s *Session) pingLocked() {
	if s.state != StateOpen || s.gagged.Load() {
		return // an answer would keep a retiring socket from closing
	}
	s.info.Pings++
	serial := s.app.gw.nextSerial()
	data := fmt.Sprintf(`{"opaque":"%016x-%d"}`, s.app.rng.Uint64(), serial)
	s.systemLocked(topicPing, serial, data)
}

// systemLocked sends a SYSTEM frame and remembers it, so that its answer is not
// taken for the answer of a push.
func (s *Session) systemLocked(topic string, serial uint64, data string) {
	f := frame{typ: TypeSystem, topic: topic, data: quote(data)}
	p := push{frameID: s.app.frameID(serial, "1"), at: time.Now()}
	if len(s.systems) > 64 { // a client that answers no ping
		clear(s.systems)
	}
	s.systems[p.frameID] = system{topic: topic, data: data}
	s.sock.send(websocket.TextMessage, f.render(nil, p))
}

// keepPinging sends pings for as long as the session is open.
func (s *Session) keepPinging() {
	s.app.mu.Lock()
	defer s.app.mu.Unlock()
	if s.state != StateOpen {
		return
	}
	s.pingLocked()
	s.ping.Reset(s.app.gw.cfg.PingEvery)
}

// Disconnect asks the client to leave, as the platform does before it closes a
// socket. Nothing more is pushed on it, answers still count, and after
// Config.Linger of silence it is closed. Further calls do nothing.
func (s *Session) Disconnect() {
	s.app.mu.Lock()
	defer s.app.mu.Unlock()
	if s.state != StateOpen {
		return
	}
	s.state = StateRetiring
	s.app.notifyLocked()
	cfg := s.app.gw.cfg
	if cfg.BareDisconnect {
		s.sock.send(websocket.TextMessage, []byte(`{"type":"SYSTEM","headers":{"topic":"disconnect",`+
			`"contentType":"application/json"},"data":"{\"reason\":\"connection is expired\"}"}`))
	} else {
		s.systemLocked(topicDisconnect, s.app.gw.nextSerial(),
			`{"reason":"persistent connection is timeout"}`)
	}
	s.lastIn.Store(time.Now().UnixNano())
	s.bye = time.AfterFunc(cfg.Linger, s.lingered)
}

// lingered closes a socket that has been silent for long enough.
func (s *Session) lingered() {
	silent := time.Since(time.Unix(0, s.lastIn.Load()))
	if left := s.app.gw.cfg.Linger - silent; left > 0 {
		s.app.mu.Lock()
		defer s.app.mu.Unlock()
		s.bye.Reset(left)
		return
	}
	s.sock.end("disconnected")
}

// Close ends the session with a close frame.
func (s *Session) Close(code int, text string) {
	s.app.mu.Lock()
	defer s.app.mu.Unlock()
	if s.state == StateClosed {
		return
	}
	s.state = StateClosing
	s.sock.send(websocket.CloseMessage, websocket.FormatCloseMessage(code, text))
	_ = s.sock.conn.SetReadDeadline(time.Now().Add(closeWait))
	s.app.notifyLocked()
}

// Drop closes the connection without a word; clients see close code 1006.
func (s *Session) Drop() { s.sock.end("dropped") }

// Cut closes the connection abruptly, with a TCP reset where there is TCP.
func (s *Session) Cut() {
	s.sock.reset()
	s.sock.end("cut")
}

// Zombie keeps the socket answering WebSocket pings while what is pushed to it
// vanishes, and no SYSTEM ping is sent any more. It goes on being chosen.
func (s *Session) Zombie() {
	s.gagged.Store(true)
}

// BlackHole keeps the connection open and writes nothing more, not even pongs.
// What is read is thrown away; with deaf nothing more is read, so that the
// client's writes fill up.
func (s *Session) BlackHole(deaf bool) { s.sock.silence(deaf) }

// PushRaw sends bytes as a text frame, whatever they are. It is false when the
// socket has ended.
func (s *Session) PushRaw(b []byte) bool { return s.sock.send(websocket.TextMessage, b) }

// PushBinary sends bytes as a binary frame. It is false when the socket has
// ended.
func (s *Session) PushBinary(b []byte) bool { return s.sock.send(websocket.BinaryMessage, b) }

// takes tells whether the client asked for such frames.
func (s *Session) takes(f *frame) bool {
	if f.anyway {
		return true
	}
	for _, sub := range s.ask.Subscriptions {
		if sub.Type == f.typ && (f.typ == TypeEvent || sub.Topic == f.topic) {
			return true
		}
	}
	return false
}

// serve reads until the socket ends, and then waits for its writer.
func (s *Session) serve() {
	s.report()
	written := make(chan struct{})
	go func() {
		defer close(written)
		s.sock.writeLoop()
	}()
	s.ws.SetReadLimit(readLimit)
	s.ws.SetPingHandler(s.sock.pong)
	s.ws.SetCloseHandler(s.clientCloses)
	err := s.readLoop()
	var closed *websocket.CloseError
	if errors.As(err, &closed) && closed.Code != websocket.CloseAbnormalClosure {
		s.sock.finish("closed by client")
	} else {
		s.sock.end("connection lost")
	}
	<-written
	s.app.gone(s)
	s.report()
}

// report shows the session to the hook.
func (s *Session) report() {
	if hook := s.app.gw.cfg.OnSession; hook != nil {
		hook(s.Info())
	}
}

// clientCloses answers a close frame with the same code, unless it is an answer
// itself.
func (s *Session) clientCloses(code int, _ string) error {
	s.app.mu.Lock()
	defer s.app.mu.Unlock()
	if s.state != StateClosing {
		s.state = StateClosing
		s.sock.send(websocket.CloseMessage, websocket.FormatCloseMessage(code, ""))
		s.app.notifyLocked()
	}
	return nil
}

// readLoop reads into one buffer, so that an answer costs no memory of its own
// unless it is recorded.
func (s *Session) readLoop() error {
	var buf []byte
	for {
		_, r, err := s.ws.NextReader()
		if err != nil {
			return err
		}
		if buf, err = readInto(buf[:0], r); err != nil {
			return err
		}
		mute, deaf := s.sock.muted()
		if deaf {
			<-s.sock.done
			return nil
		}
		if !mute {
			s.received(buf)
		}
	}
}

// readInto reads everything into buf, which it grows as needed.
func readInto(buf []byte, r io.Reader) ([]byte, error) {
	for {
		if len(buf) == cap(buf) {
			buf = append(buf, 0)[:len(buf)]
		}
		n, err := r.Read(buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
		if errors.Is(err, io.EOF) {
			return buf, nil
		}
		if err != nil {
			return buf, err
		}
	}
}

// received hands an answer to the blast that waits for it, else to the app.
func (s *Session) received(raw []byte) {
	now := time.Now()
	s.lastIn.Store(now.UnixNano())
	s.acks.Add(1)
	if b := s.app.blast.Load(); b != nil && b.answered(raw, now) {
		return
	}
	s.app.answered(s, raw, now)
}
