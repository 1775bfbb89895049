package wire

import (
	"crypto/tls"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// Errors of a socket.
var (
	// ErrClosed means that the socket takes no frames any more.
	ErrClosed = errors.New("socket is closed")
	// ErrFull means that the lane is full: the peer does not read.
	ErrFull = errors.New("socket lane is full")
	// ErrTooLarge means that the frame is beyond a limit that waiting does not
	// change: a control frame has at most 125 bytes, any frame Config.MaxFrame, and
	// no frame is larger than its peer's share of the budget.
	ErrTooLarge = errors.New("frame is too large")
)

// Config sets the bounds of a socket. The zero value works.
type Config struct {
	// WriteTimeout bounds one write. Default 10 s.
	WriteTimeout time.Duration
	// SendTimeout is the deadline of a frame that waits and has no other. Default
	// 30 s.
	SendTimeout time.Duration
	// ControlFrames bounds the control lane. Default 32.
	ControlFrames int
	// CriticalFrames, Frames and BulkFrames bound the other lanes. Defaults 16, 96
	// and 16: 128 in all.
	CriticalFrames, Frames, BulkFrames int
	// Bytes bounds the critical and the normal lane, each, BulkBytes the bulk
	// lane. Defaults 8 MiB and 64 MiB.
	Bytes, BulkBytes int
	// MaxFrame bounds the payload of one frame. Default 16 MiB.
	MaxFrame int
	// TrackFrames and TrackBytes bound what is kept until it is acknowledged.
	// Defaults 4096 and 64 MiB.
	TrackFrames, TrackBytes int
	// Peer pays for the bytes. Nil: only the bounds above hold.
	Peer *Peer
	// Hooks report what becomes of frames.
	Hooks Hooks
	// Server leaves frames unmasked, as servers must.
	Server bool
}

func (c Config) withDefaults() Config {
	if c.WriteTimeout <= 0 {
		c.WriteTimeout = 10 * time.Second
	}
	if c.SendTimeout <= 0 {
		c.SendTimeout = 30 * time.Second
	}
	c.ControlFrames = orDefault(c.ControlFrames, 32)
	c.CriticalFrames = orDefault(c.CriticalFrames, 16)
	c.Frames = orDefault(c.Frames, 96)
	c.BulkFrames = orDefault(c.BulkFrames, 16)
	c.Bytes = orDefault(c.Bytes, 8<<20)
	c.BulkBytes = orDefault(c.BulkBytes, 64<<20)
	c.MaxFrame = orDefault(c.MaxFrame, 16<<20)
	c.TrackFrames = orDefault(c.TrackFrames, 4096)
	c.TrackBytes = orDefault(c.TrackBytes, 64<<20)
	return c
}

// Stats counts the frames of a socket. Taken = Written + Dropped + those that
// still wait.
type Stats struct {
	Taken, Written, Dropped, Writes uint64
}

// Socket is the writing side of one WebSocket connection. All methods may be
// called from any number of goroutines, and after the end. A socket must be
// closed, also after it has failed.
type Socket struct {
	// immutable
	conn    net.Conn
	raw     net.Conn // conn without TLS: closing it never waits for the peer
	resumes bool     // a write that has timed out can be continued: not over TLS
	cfg     Config
	run     func() // write, made once so that starting it needs no memory

	gone   chan struct{}  // closed, under mu, when no frame is taken any more
	writer sync.WaitGroup // grows only under mu, while frames wait or may come
	users  sync.WaitGroup // calls that send; grows only under mu, while open
	writes atomic.Uint64
	track  Tracker // has its own mutex, which is never held with mu

	mu sync.Mutex
	// guarded by mu
	lanes    [lanes]lane
	passed   [lanes]int // frames that left while the lane waited
	writing  bool       // there is a writer, as there must be while a frame waits
	finished bool       // Finish was called in time
	gate     error      // why no frame is taken any more
	broken   bool       // nothing is written any more
	shut     []byte     // payload of the last frame, until it is written
	cause    error      // what broke the socket
	stats    Stats
}

// NewSocket makes the writer of conn, on which the handshake is done and nobody
// else writes more than whole frames. It starts nothing.
func NewSocket(conn net.Conn, cfg Config) *Socket {
	cfg = cfg.withDefaults()
	s := &Socket{conn: conn, raw: conn, resumes: true, cfg: cfg, gone: make(chan struct{})}
	if t, ok := conn.(*tls.Conn); ok {
		s.raw, s.resumes = t.NetConn(), false
	}
	s.run = s.write
	s.track.maxFrames, s.track.maxBytes = cfg.TrackFrames, cfg.TrackBytes
	s.track.peer, s.track.hooks = cfg.Peer, &s.cfg.Hooks
	s.lanes = [lanes]lane{
		Control:  {maxFrame: cfg.ControlFrames, maxByte: batchSize},
		Critical: {maxFrame: cfg.CriticalFrames, maxByte: cfg.Bytes},
		Normal:   {maxFrame: cfg.Frames, maxByte: cfg.Bytes},
		Bulk:     {maxFrame: cfg.BulkFrames, maxByte: cfg.BulkBytes},
	}
	return s
}

// Tracker knows the frames that were sent with an id.
func (s *Socket) Tracker() *Tracker { return &s.track }

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
	s.gateLocked()
	s.finished = true
	s.shut = ShutPayload(code)
	s.wakeLocked()
}

// Fail breaks the socket: the connection is closed at once, which also wakes its
// reader, and frames that wait are dropped. The first cause is kept. It neither
// blocks nor calls a hook.
func (s *Socket) Fail(cause error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cause == nil {
		s.cause = cause
	}
	s.breakLocked()
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
	st := s.stats
	st.Writes = s.writes.Load()
	return st
}

// lingerFor bounds how long Close lets frames leave after Finish.
const lingerFor = time.Second

// Close closes the connection and returns when the writer and every call that
// sends have gone, and every reserved byte is given back. After Finish it lets
// what was taken leave, for a second at most; without it, frames that wait are
// dropped. Closing again is harmless. A hook must not call it.
func (s *Socket) Close() {
	s.mu.Lock()
	polite := s.finished && s.cause == nil
	if !polite {
		s.breakLocked()
	}
	s.mu.Unlock()
	if polite {
		s.linger()
	}
	_ = s.raw.Close()
	s.writer.Wait()
	s.users.Wait()
	s.track.close()
}

// linger waits for the writer and says goodbye. A write, and TLS on closing,
// would wait several seconds for a peer that does not read; the guard ends both.
func (s *Socket) linger() {
	guard := time.AfterFunc(lingerFor, func() { _ = s.raw.Close() })
	defer guard.Stop()
	s.writer.Wait()
	_ = s.conn.Close()
}

func (s *Socket) gateLocked() {
	if s.gate == nil {
		s.gate = ErrClosed
		close(s.gone)
	}
}

// breakLocked leaves to the writer to drop what waits: where a frame waits, there
// is one, and it is not the caller, who may hold locks that a hook wants.
func (s *Socket) breakLocked() {
	s.gateLocked()
	s.broken = true
	s.shut = nil
}
