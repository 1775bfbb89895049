package system

import (
	"bytes"
	"context"
	"errors"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/penstock-io/penstock/integrations/dingtalk/dingtalktest"
)

// ErrRefused is what a dial gets that the network refuses.
var ErrRefused = errors.New("connection refused by the test")

// Request is the first line of an HTTP request that the service wrote in clear.
type Request struct {
	Method, Path string // the path without its query
	Addr         string
	At           time.Time
}

// Network opens the connections of a service and sees them. The zero value dials
// loopback addresses for real and refuses every other.
type Network struct {
	mu sync.Mutex // guards the following fields
	// serve takes the other end of connections to an address in memory.
	serve    map[string]func(context.Context) (net.Conn, error)
	refuse   int
	refused  int
	dials    []string
	requests []Request
}

// Listen makes an address of the network and gives the listener behind it.
func (n *Network) Listen(addr string) net.Listener {
	l := &listener{PipeListener: dingtalktest.NewPipeListener(), addr: pipeAddr(addr)}
	n.Handle(addr, func(ctx context.Context) (net.Conn, error) { return l.DialContext(ctx, "", "") })
	return l
}

// Handle makes an address of the network whose connections open gives.
func (n *Network) Handle(addr string, open func(context.Context) (net.Conn, error)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.serve == nil {
		n.serve = make(map[string]func(context.Context) (net.Conn, error))
	}
	n.serve[addr] = open
}

// Refuse lets the next times dials fail.
func (n *Network) Refuse(times int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.refuse = times
}

// Refused is how many dials were refused so far.
func (n *Network) Refused() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.refused
}

// Dials are the addresses dialled so far.
func (n *Network) Dials() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.dials)
}

// Requests are the requests so far whose path ends in suffix.
func (n *Network) Requests(suffix string) []Request {
	n.mu.Lock()
	defer n.mu.Unlock()
	var out []Request
	for _, r := range n.requests {
		if strings.HasSuffix(r.Path, suffix) {
			out = append(out, r)
		}
	}
	return out
}

// DialContext is for app.Options.
func (n *Network) DialContext(ctx context.Context, network, addr string) (net.Conn, error) {
	n.mu.Lock()
	n.dials = append(n.dials, addr)
	if n.refuse > 0 {
		n.refuse--
		n.refused++
		n.mu.Unlock()
		return nil, ErrRefused
	}
	open, real := n.serve[addr], n.serve == nil
	n.mu.Unlock()
	var conn net.Conn
	var err error
	switch host, _, _ := net.SplitHostPort(addr); {
	case open != nil:
		conn, err = open(ctx)
	case real && host == "127.0.0.1":
		conn, err = (&net.Dialer{}).DialContext(ctx, network, addr)
	default:
		return nil, ErrRefused
	}
	if err != nil {
		return nil, err
	}
	return &tapped{Conn: conn, n: n, addr: addr}, nil
}

// tapped notes the requests that are written to a connection.
type tapped struct {
	net.Conn
	n    *Network
	addr string
}

// Write notes a request if b begins with one, which is how net/http writes them.
func (c *tapped) Write(b []byte) (int, error) {
	line, _, _ := bytes.Cut(b[:min(len(b), 4096)], []byte("\r\n"))
	if part := strings.Fields(string(line)); len(part) == 3 && part[2] == "HTTP/1.1" {
		path, _, _ := strings.Cut(part[1], "?")
		c.n.mu.Lock()
		c.n.requests = append(c.n.requests, Request{part[0], path, c.addr, time.Now()})
		c.n.mu.Unlock()
	}
	return c.Conn.Write(b)
}

// listener is a pipe with an address of its own.
type listener struct {
	*dingtalktest.PipeListener
	addr pipeAddr
}

func (l *listener) Addr() net.Addr { return l.addr }

type pipeAddr string

func (pipeAddr) Network() string  { return "pipe" }
func (a pipeAddr) String() string { return string(a) }
