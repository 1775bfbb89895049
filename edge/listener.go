package edge

import (
	"net"
	"sync"
)

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
			return &limitedConn{Conn: conn, free: sync.OnceFunc(func() { <-l.room })}, nil
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
