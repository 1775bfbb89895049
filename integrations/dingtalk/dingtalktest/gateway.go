package dingtalktest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gorilla/websocket"
)

// Errors of the gateway and of its apps.
var (
	// ErrClosed means that the gateway has stopped.
	ErrClosed = errors.New("gateway is closed")
	// ErrAppExists means that the client id is taken.
	ErrAppExists = errors.New("app exists")
)

// Gateway is the server. Make it with [New] and serve it with [Gateway.Run], or
// do both with [Serve].
type Gateway struct {
	// immutable, or safe by themselves
	cfg      Config
	upgrader websocket.Upgrader
	done     chan struct{}  // closed by stop
	handlers sync.WaitGroup // requests and sockets being served; Add under mu
	serial   atomic.Uint64  // feeds ids of all kinds
	sockets  atomic.Int64   // feeds the ids of sessions

	mu       sync.Mutex // guards the following fields
	listener net.Listener
	ran      bool
	closed   bool
	apps     []*App
	tickets  map[string]ticket
	tokens   map[string]token
	faults   map[Route][]*armed
}

// New checks the configuration. It starts nothing.
func New(cfg Config) (*Gateway, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, fmt.Errorf("dingtalktest config: %w", err)
	}
	g := &Gateway{
		cfg:      cfg,
		listener: cfg.Listener,
		done:     make(chan struct{}),
		tickets:  map[string]ticket{},
		tokens:   map[string]token{},
		faults:   map[Route][]*armed{},
		upgrader: websocket.Upgrader{
			ReadBufferSize: 16 << 10,
			CheckOrigin:    func(*http.Request) bool { return true },
		},
	}
	for _, c := range cfg.Apps {
		if _, err := g.AddApp(c); err != nil {
			return nil, fmt.Errorf("dingtalktest config: Apps: %w", err)
		}
	}
	return g, nil
}

// Listen opens the default listener, so that URL works before Run. It does
// nothing if there is a listener already. Run closes the listener; to give it up
// without serving, call Run with a context that has ended.
func (g *Gateway) Listen() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return ErrClosed
	}
	if g.listener != nil {
		return nil
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	g.listener = l
	return nil
}

// Run serves until ctx is done, and then cuts all sockets and waits for
// everything it started. It returns nil on such a stop. It can run once; a
// second call returns ErrClosed.
func (g *Gateway) Run(ctx context.Context) error {
	if err := g.Listen(); err != nil {
		return err
	}
	g.mu.Lock()
	if g.ran {
		g.mu.Unlock()
		return ErrClosed
	}
	g.ran = true
	g.mu.Unlock()
	defer g.stop()
	srv := &http.Server{
		Handler:           g.routes(),
		TLSConfig:         g.cfg.TLS,
		ReadHeaderTimeout: time.Minute,
		ErrorLog:          log.New(io.Discard, "", 0), // clients that go away are its daily bread
	}
	served := make(chan error, 1)
	go func() { served <- g.serve(srv) }()
	select {
	case err := <-served:
		return fmt.Errorf("serve: %w", err)
	case <-ctx.Done():
	}
	g.stop()
	_ = srv.Close()
	<-served
	return nil
}

func (g *Gateway) serve(srv *http.Server) error {
	if g.cfg.TLS == nil {
		return srv.Serve(g.listener)
	}
	return srv.ServeTLS(g.listener, "", "")
}

// stop refuses new work, ends all sockets and waits for their goroutines.
// Further calls only wait.
func (g *Gateway) stop() {
	g.mu.Lock()
	if !g.closed {
		g.closed = true
		close(g.done)
		_ = g.listener.Close()
	}
	apps := g.apps
	g.mu.Unlock()
	for _, a := range apps {
		a.stop()
	}
	g.handlers.Wait()
}

// enter counts a request in, so that stop waits for it.
func (g *Gateway) enter() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return false
	}
	g.handlers.Add(1)
	return true
}

// URL is where the gateway and both APIs are served, without a final slash. It
// is empty before Listen.
func (g *Gateway) URL() string { return g.base("http") }

func (g *Gateway) base(scheme string) string {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.listener == nil {
		return ""
	}
	if g.cfg.TLS != nil {
		scheme += "s"
	}
	return scheme + "://" + g.listener.Addr().String()
}

// AddApp makes a further app known. It fails with ErrAppExists if the client id
// is taken.
func (g *Gateway) AddApp(c Credentials) (*App, error) {
	if c.ClientID == "" {
		return nil, fmt.Errorf("%s: is empty", "ClientID")
	}
	set(&c.RobotCode, c.ClientID)
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return nil, ErrClosed
	}
	for _, a := range g.apps {
		if a.cred.ClientID == c.ClientID {
			return nil, fmt.Errorf("%w: %s", ErrAppExists, c.ClientID)
		}
	}
	a := newApp(g, c, len(g.apps))
	g.apps = append(g.apps, a)
	return a, nil
}

// App finds an app by its client id; the empty id is the first app. It returns
// nil if there is none.
func (g *Gateway) App(clientID string) *App {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, a := range g.apps {
		if clientID == "" || a.cred.ClientID == clientID {
			return a
		}
	}
	return nil
}

// nextSerial gives a number that was not given before.
func (g *Gateway) nextSerial() uint64 { return g.serial.Add(1) }

// TB is what [Serve] needs of a testing.TB.
type TB interface {
	Helper()
	Cleanup(func())
	Fatalf(format string, args ...any)
}

// Serve runs a gateway for one test and stops it when the test ends.
func Serve(t TB, cfg Config) *Gateway {
	t.Helper()
	g, err := New(cfg)
	if err != nil {
		t.Fatalf("%v", err)
	}
	if err := g.Listen(); err != nil {
		t.Fatalf("%v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- g.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Fatalf("gateway: %v", err)
		}
	})
	return g
}
