package wire

import (
	"net"
	"sync"
)

// burstSize is how much one system call reads while data comes in a stream.
const burstSize = 32 << 10

var bursts = sync.Pool{New: func() any { return new([burstSize]byte) }}

// burstConn reads ahead while a peer sends faster than its reader's small buffer
// can take, and needs no buffer of its own while the peer is quiet.
type burstConn struct {
	net.Conn

	// owned by the reader
	buf  *[burstSize]byte
	r, w int
	hot  bool // the last read came back full, so the next one is unlikely to wait
}

// Burst wraps a connection so that a small read buffer above it costs few system
// calls under load. Reads must come from one goroutine at a time, as on any
// stream that is parsed.
func Burst(c net.Conn) net.Conn { return &burstConn{Conn: c} }

// Read implements net.Conn.
func (c *burstConn) Read(p []byte) (int, error) {
	if c.buf != nil {
		return c.take(p), nil
	}
	if !c.hot || len(p) >= burstSize {
		n, err := c.Conn.Read(p)
		c.hot = n == len(p) && n > 0
		return n, err
	}
	buf := bursts.Get().(*[burstSize]byte)
	n, err := c.Conn.Read(buf[:])
	c.hot = n == burstSize
	if n == 0 {
		bursts.Put(buf)
		return 0, err
	}
	// An error that came with data comes again with the next read.
	c.buf, c.r, c.w = buf, 0, n
	return c.take(p), nil
}

func (c *burstConn) take(p []byte) int {
	n := copy(p, c.buf[c.r:c.w])
	c.r += n
	if c.r == c.w {
		bursts.Put(c.buf)
		c.buf = nil
	}
	return n
}
