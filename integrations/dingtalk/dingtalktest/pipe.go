package dingtalktest

import (
	"context"
	"net"
	"sync"
)

// PipeListener is a listener in memory. A gateway on it needs no network, and
// may live in a testing/synctest bubble if the listener was made inside. Its
// connections have no buffer: a write ends when the other side has read it.
type PipeListener struct {
	// immutable
	accept chan net.Conn // never closed
	done   chan struct{} // closed by Close
	once   sync.Once
}

// NewPipeListener returns an open listener.
func NewPipeListener() *PipeListener {
	return &PipeListener{accept: make(chan net.Conn), done: make(chan struct{})}
}

// DialContext joins a client; network and addr are ignored, so that it fits
// http.Transport and websocket.Dialer. It blocks until the gateway has accepted.
// After Close it returns net.ErrClosed.
func (l *PipeListener) DialContext(ctx context.Context, _, _ string) (net.Conn, error) {
	client, server := net.Pipe()
	select {
	case l.accept <- server:
		return client, nil
	case <-l.done:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Accept blocks until a client joins. After Close it returns net.ErrClosed.
func (l *PipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.accept:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

// Close ends the listener. Connections that were accepted stay. Further calls do
// nothing.
func (l *PipeListener) Close() error {
	l.once.Do(func() { close(l.done) })
	return nil
}

// Addr is a made-up loopback address; clients may put it into URLs.
func (l *PipeListener) Addr() net.Addr { return pipeAddr{} }

type pipeAddr struct{}

func (pipeAddr) Network() string { return "pipe" }
func (pipeAddr) String() string  { return "127.0.0.1:1" }
