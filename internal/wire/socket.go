package wire

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"
)

// Lane is a queue of a socket.
type Lane uint8

// Lanes, in the order they are emptied.
const (
	Control Lane = iota // pings, pongs, and answers that prove we are alive
	Normal              // everything else
	lanes
)

// Errors of a socket.
var (
	// ErrClosed means that the socket takes no frames any more.
	ErrClosed = errors.New("socket is closed")
	// ErrFull means that the lane is full: the peer does not read.
	ErrFull = errors.New("socket lane is full")
	// ErrTooLarge means that a control frame has more than 125 bytes.
	ErrTooLarge = errors.New("control frame is too large")
)

// Config sets the bounds of a socket. The zero value works.
type Config struct {
	// WriteTimeout bounds one write. Default 10 s.
	WriteTimeout time.Duration
	// ControlFrames bounds the control lane. Default 32.
	ControlFrames int
	// Frames and Bytes bound the normal lane. Defaults 4096 and 8 MiB.
	Frames, Bytes int
	// Server leaves frames unmasked, as servers must.
	Server bool
}

func (c Config) withDefaults() Config {
	if c.WriteTimeout <= 0 {
		c.WriteTimeout = 10 * time.Second
	}
	if c.ControlFrames <= 0 {
		c.ControlFrames = 32
	}
	if c.Frames <= 0 {
		c.Frames = 4096
	}
	if c.Bytes <= 0 {
		c.Bytes = 8 << 20
	}
	return c
}

// Stats counts the frames of a socket. Taken = Written + Dropped + those that
// still wait.
type Stats struct {
	Taken, Written, Dropped, Writes uint64
}

// Socket is the writing side of one WebSocket connection. All methods may be
// called from any number of goroutines, and after the end.
type Socket struct {
	// immutable
	conn net.Conn
	raw  net.Conn // conn without TLS: closing it never waits for the peer
	cfg  Config

	writer sync.WaitGroup // grows only under mu, while the socket is open

	mu sync.Mutex
	// guarded by mu
	lanes    [lanes]lane
	writing  bool   // a writer goroutine exists
	finished bool   // Finish was called in time
	gate     error  // why no frame is taken any more
	shut     []byte // payload of the last frame, until it is written
	cause    error  // what broke the socket
	stats    Stats
}

// NewSocket makes the writer of conn, on which the handshake is done and nobody
// else writes more than whole frames. It starts nothing.
func NewSocket(conn net.Conn, cfg Config) *Socket {
	s := &Socket{conn: conn, raw: conn, cfg: cfg.withDefaults()}
	if t, ok := conn.(*tls.Conn); ok {
		s.raw = t.NetConn()
	}
	s.lanes[Control] = lane{maxFrame: s.cfg.ControlFrames, maxByte: batchSize}
	s.lanes[Normal] = lane{maxFrame: s.cfg.Frames, maxByte: s.cfg.Bytes}
	return s
}

// Send hands over one frame; payload is copied. It never blocks. It returns
// ErrFull, ErrTooLarge, or ErrClosed; then the frame was not taken.
func (s *Socket) Send(l Lane, op Op, payload []byte) error {
	if op.isControl() && len(payload) > maxControl {
		return ErrTooLarge
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gate != nil {
		return s.gate
	}
	if !s.lanes[l].takes(maxHeader + len(payload)) {
		return ErrFull
	}
	s.lanes[l].add(op, !s.cfg.Server, payload)
	s.stats.Taken++
	s.wakeLocked()
	return nil
}

// Finish takes no more frames, lets those already taken leave, and ends with a
// close frame of this code. It does not block and does not close the connection:
// the peer answers, and the caller goes on reading until it has. Further calls
// do nothing.
func (s *Socket) Finish(code uint16) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gate != nil {
		return
	}
	s.gate, s.finished = ErrClosed, true
	s.shut = ShutPayload(code)
	s.wakeLocked()
}

// Fail breaks the socket: the connection is closed at once, which also wakes its
// reader, and frames that wait are dropped. The first cause is kept.
func (s *Socket) Fail(cause error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cause == nil {
		s.cause = cause
	}
	s.dropLocked()
	_ = s.raw.Close()
}

// Err is what broke the socket, nil if nothing did.
func (s *Socket) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cause
}

// Stats is a snapshot of the counters.
func (s *Socket) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stats
}

// lingerFor bounds how long Close lets frames leave after Finish.
const lingerFor = time.Second

// Close closes the connection and returns when the writer has gone. After Finish
// it lets what was taken leave, for a second at most; without it, frames that
// wait are dropped. Closing again is harmless.
func (s *Socket) Close() {
	s.mu.Lock()
	polite := s.finished && s.cause == nil
	if !polite {
		s.dropLocked()
	}
	s.mu.Unlock()
	if polite {
		s.linger()
	}
	_ = s.raw.Close()
	s.writer.Wait()
}

// linger waits for the writer and says goodbye. A write, and TLS on closing,
// would wait several seconds for a peer that does not read; the guard ends both.
func (s *Socket) linger() {
	guard := time.AfterFunc(lingerFor, func() { _ = s.raw.Close() })
	defer guard.Stop()
	s.writer.Wait()
	_ = s.conn.Close()
}

func (s *Socket) dropLocked() {
	s.gate = ErrClosed
	s.shut = nil
	for i := range s.lanes {
		s.stats.Dropped += uint64(s.lanes[i].clear())
	}
}

// wakeLocked makes sure that somebody writes.
func (s *Socket) wakeLocked() {
	if s.writing {
		return
	}
	s.writing = true
	s.writer.Add(1)
	go s.write()
}

// write empties the lanes and ends.
func (s *Socket) write() {
	defer s.writer.Done()
	for b := s.next(); b != nil; b = s.next() {
		err := s.flush(b.b)
		s.account(b.frames, err)
		b.release()
		if err != nil {
			s.Fail(err)
		}
	}
}

// next takes what leaves with the next write; nil ends the writer.
func (s *Socket) next() *batch {
	s.mu.Lock()
	defer s.mu.Unlock()
	out, more := s.lanes[Control].pop(), s.lanes[Normal].pop()
	switch {
	case out == nil:
		out = more
	case more != nil:
		out.b = append(out.b, more.b...)
		out.frames += more.frames
		more.release()
	}
	if out == nil {
		out = s.lastLocked()
	}
	if out == nil {
		s.writing = false
	}
	return out
}

// lastLocked gives the close frame once it is due; nothing follows it.
func (s *Socket) lastLocked() *batch {
	if s.shut == nil {
		return nil
	}
	b := newBatch()
	b.b = appendFrame(b.b, Shut, !s.cfg.Server, s.shut)
	s.shut = nil
	return b
}

func (s *Socket) flush(b []byte) error {
	err := s.conn.SetWriteDeadline(time.Now().Add(s.cfg.WriteTimeout))
	if err == nil {
		_, err = s.conn.Write(b)
	}
	if err != nil {
		return fmt.Errorf("write: %w", err)
	}
	return nil
}

func (s *Socket) account(frames int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stats.Writes++
	if err != nil {
		s.stats.Dropped += uint64(frames)
		return
	}
	s.stats.Written += uint64(frames)
}
