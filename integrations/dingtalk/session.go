package dingtalk

import (
	"context"
	"errors"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gorilla/websocket"

	"github.com/penstock-io/penstock/integrations"
	"github.com/penstock-io/penstock/internal/wire"
)

// session serves one socket. Its reader is the goroutine that calls serve.
type session struct {
	// immutable
	c       *Connector
	in      integrations.Intake
	ws      *websocket.Conn
	sock    *wire.Socket
	started time.Time

	// owned by the reader
	live   bool // the core has been told that we are
	warned bool // a bad frame has been logged

	// atomic
	owed    atomic.Int64 // deliveries that were offered and not settled
	leaving atomic.Bool  // nothing is offered any more
	heard   atomic.Int64 // when a frame or a pong was last read, since started
	served  atomic.Int64 // when a frame was last read, since started

	mu sync.Mutex
	// guarded by mu
	phase    phase
	deadline time.Time   // when the phase ends by itself, zero for serving
	timer    *time.Timer // calls tick
	nextPing time.Time
}

// acksWaiting is how many acknowledgements may wait before the peer is taken for
// one that does not read.
const acksWaiting = 4096

func newSession(c *Connector, in integrations.Intake, ws *websocket.Conn) *session {
	now := time.Now()
	s := &session{
		c:  c,
		in: in,
		ws: ws,
		sock: wire.NewSocket(ws.NetConn(), wire.Config{
			WriteTimeout: c.cfg.WriteTimeout,
			Frames:       acksWaiting,
		}),
		started:  now,
		nextPing: now.Add(c.cfg.PingEvery),
	}
	ws.SetReadLimit(c.cfg.ReadLimit)
	ws.SetPingHandler(func(data string) error {
		s.hear(time.Now())
		s.pong(wire.Pong, []byte(data))
		return nil
	})
	ws.SetPongHandler(func(string) error {
		s.hear(time.Now())
		return nil
	})
	// The peer's farewell is answered after the acknowledgements that wait.
	ws.SetCloseHandler(func(code int, _ string) error {
		s.sock.Finish(farewell(code))
		return nil
	})
	return s
}

// farewell is the code that answers the peer's: its own, unless that one may not
// be sent.
func farewell(code int) uint16 {
	if code == websocket.CloseNoStatusReceived {
		return websocket.CloseNormalClosure
	}
	return uint16(code)
}

// serve reads until the socket ends and tells how it ended. The socket is closed
// and its writer gone when it returns.
func (s *session) serve(ctx context.Context) integrations.End {
	s.c.count.sessions.Add(1)
	defer s.c.count.sessions.Add(-1)
	s.c.log().Info("session open")
	s.watch()
	unhook := context.AfterFunc(ctx, s.leave)
	defer s.shut(unhook)
	integrations.Opened(s.in)
	err := s.read(ctx)
	end := s.ending(err)
	log := s.c.log()
	if end.Err != nil {
		log = log.With("code", end.Code, "error", end.Err)
	}
	log.Info("session over", "why", end.Why.String())
	return end
}

// shut frees what the session holds, also when the reader panics.
func (s *session) shut(unhook func() bool) {
	unhook()
	s.leaving.Store(true)
	s.unwatch()
	s.sock.Close()
	s.c.count.acksLost.Add(s.sock.Stats().Dropped)
}

// read takes messages off the socket. A message is read whole into a buffer that
// is held only while there is one.
func (s *session) read(ctx context.Context) error {
	for {
		_, r, err := s.ws.NextReader()
		if err != nil {
			return err
		}
		buf := messageBuffers.Get().(*[]byte)
		*buf, err = readInto((*buf)[:0], r)
		if err == nil {
			s.handle(ctx, *buf)
		}
		giveBack(buf)
		if err != nil {
			return err
		}
	}
}

// Sizes of the buffers that messages are read into.
const (
	firstMessage = 8 << 10
	keptMessage  = 64 << 10 // a larger one goes to the garbage collector
)

var messageBuffers = sync.Pool{New: func() any {
	b := make([]byte, 0, firstMessage)
	return &b
}}

func giveBack(b *[]byte) {
	if cap(*b) <= keptMessage {
		messageBuffers.Put(b)
	}
}

// readInto appends everything that r has. The buffer grows with what came, not
// with what a header announces.
func readInto(b []byte, r io.Reader) ([]byte, error) {
	for {
		n, err := r.Read(b[len(b):cap(b)])
		b = b[:len(b)+n]
		if errors.Is(err, io.EOF) {
			return b, nil
		}
		if err != nil {
			return b, err
		}
		if len(b) == cap(b) {
			b = append(b, 0)[:len(b)]
		}
	}
}
