package dingtalktest

import (
	"encoding/binary"
	"net"
	"sync"
	"time"

	"github.com/gorilla/websocket"
)

const (
	// outLimit bounds what a socket that is not read may owe.
	outLimit = 16 << 20
	// spareLimit is the largest buffer that is kept while nothing is written.
	spareLimit = 1 << 20
	// writeTimeout bounds one write; a client that reads nothing for so long has
	// gone.
	writeTimeout = 10 * time.Second
)

// socket is the writing half of a session. Frames are put into one buffer that
// its only writer takes whole, so that everything ready leaves in one write.
// A server's frames are not masked, which is why they can be put together here.
type socket struct {
	// immutable
	conn net.Conn
	wake chan struct{} // room for one; never closed
	done chan struct{} // closed by end

	mu     sync.Mutex // guards the following fields
	out    []byte
	mute   bool   // what is put vanishes
	deaf   bool   // nothing more is read
	last   string // when set, the writer ends the socket with it once all is written
	ended  bool
	reason string
}

func newSocket(conn net.Conn) *socket {
	return &socket{conn: conn, wake: make(chan struct{}, 1), done: make(chan struct{})}
}

// put adds a frame of size bytes, which fill appends, without waking the writer. It is false when the socket has
// ended or owes too much; then it ends.
func (s *socket) put(op byte, size int, fill func(dst []byte) []byte) bool {
	s.mu.Lock()
	switch {
	case s.ended:
		s.mu.Unlock()
		return false
	case s.mute:
		s.mu.Unlock()
		return true
	case len(s.out)+size > outLimit:
		s.mu.Unlock()
		s.end("overflow")
		return false
	}
	s.out = fill(appendHeader(s.out, op, size))
	s.mu.Unlock()
	return true
}

// send adds a frame and wakes the writer.
func (s *socket) send(op byte, payload []byte) bool {
	ok := s.put(op, len(payload), func(dst []byte) []byte { return append(dst, payload...) })
	s.kick()
	return ok
}

// kick wakes the writer.
func (s *socket) kick() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// appendHeader writes the head of a final, unmasked frame.
func appendHeader(dst []byte, op byte, size int) []byte {
	dst = append(dst, 0x80|op)
	switch {
	case size < 126:
		return append(dst, byte(size))
	case size < 1<<16:
		return binary.BigEndian.AppendUint16(append(dst, 126), uint16(size))
	default:
		return binary.BigEndian.AppendUint64(append(dst, 127), uint64(size))
	}
}

// writeLoop writes until the socket ends.
func (s *socket) writeLoop() {
	var spare []byte
	for {
		select {
		case <-s.done:
			return
		case <-s.wake:
		}
		batch := s.take(spare)
		if len(batch) > 0 {
			_ = s.conn.SetWriteDeadline(time.Now().Add(writeTimeout))
			if _, err := s.conn.Write(batch); err != nil {
				s.end("write failed")
				return
			}
		}
		s.endIfLast()
		if spare = batch[:0]; cap(batch) > spareLimit {
			spare = nil
		}
	}
}

// take hands over everything put so far.
func (s *socket) take(spare []byte) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	batch := s.out
	s.out = spare
	return batch
}

// end closes the connection. The first reason stands.
func (s *socket) end(reason string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return
	}
	s.ended, s.reason, s.out = true, reason, nil
	close(s.done)
	_ = s.conn.Close()
}

// finish ends the socket when everything put so far has been written.
func (s *socket) finish(reason string) {
	s.mu.Lock()
	s.last = reason
	s.mu.Unlock()
	s.kick()
}

// endIfLast ends the socket if nothing is left to write and nothing will come.
func (s *socket) endIfLast() {
	s.mu.Lock()
	last := s.last
	owes := len(s.out) > 0
	s.mu.Unlock()
	if last != "" && !owes {
		s.end(last)
	}
}

// why is the reason of the end.
func (s *socket) why() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.reason
}

// isEnded tells what Done would: that the connection is closed.
func (s *socket) isEnded() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ended
}

// silence makes everything put from now on vanish, and everything waiting; with
// deaf nothing more is read either.
func (s *socket) silence(deaf bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mute, s.out = true, nil
	s.deaf = s.deaf || deaf
}

// muted tells whether written bytes vanish, and whether reading is over.
func (s *socket) muted() (mute, deaf bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mute, s.deaf
}

// reset makes the close of the connection an abrupt one.
func (s *socket) reset() {
	conn := s.conn
	if t, ok := conn.(interface{ NetConn() net.Conn }); ok {
		conn = t.NetConn()
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
		_ = tcp.Close() // before TLS can say goodbye
	}
}

// pong answers a WebSocket ping.
func (s *socket) pong(data string) error {
	s.send(websocket.PongMessage, []byte(data))
	return nil
}
