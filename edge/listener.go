package edge

import (
	"net"
	"sync"

	"github.com/penstock-io/penstock/internal/wire"
)

// sendBuffer bounds what the system keeps of what a connection has not read. By
// itself it takes megabytes, and a peer that does not read is noticed when they are
// full.
const sendBuffer = 256 << 10

// limitListener closes connections beyond a limit at once, so that half-made ones
// cannot use up the files of the process.
type limitListener struct {
	net.Listener
	room chan struct{} // has a token for each open connection; never closed
}

func limit(l net.Listener, n int) net.Listener {
	return &limitListener{Listener: l, room: make(chan struct{}, n)}
}

// Accept implements net.Listener.
func (l *limitListener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		select {
		case l.room <- struct{}{}:
			if tcp, ok := conn.(*net.TCPConn); ok {
				_ = tcp.SetWriteBuffer(sendBuffer) // a connection that has ended says so later
			}
			return &limitedConn{Conn: wire.Burst(conn), free: sync.OnceFunc(func() { <-l.room })}, nil
		default:
			_ = conn.Close() // there is nobody to tell
		}
	}
}

type limitedConn struct {
	net.Conn
	free func()
}

// Close implements net.Conn.
func (c *limitedConn) Close() error {
	defer c.free()
	return c.Conn.Close()
}
