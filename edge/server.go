package edge

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gorilla/websocket"
	"golang.org/x/time/rate"

	"github.com/penstock-io/penstock/internal/wire"
)

// Paths that consumers ask for.
const (
	pathOpen    = "/v1.0/gateway/connections/open"
	pathConnect = "/connect"
	pathReply   = "/robot/sendBySession"
)

// ErrRan means that a server has been run before.
var ErrRan = errors.New("edge: has been run already")

// Server lets consumers in. Make it with [New] and serve it with [Server.Run]. All
// methods may be called from any number of goroutines, before, during and after
// Run.
type Server struct {
	// immutable, or safe by themselves
	cfg      Config
	log      *slog.Logger
	count    *counts
	budget   *wire.Budget
	frames   wire.Meter
	hooks    wire.Hooks // of frames
	upgrader websocket.Upgrader
	tickets  tickets
	guesses  guesses
	keys     tokenKeys
	shares   shares
	several  atomic.Bool // there is more than one consumer
	// handshakes and posts have a token for each request under way; never closed.
	handshakes, posts chan struct{}
	sockets           atomic.Int64 // connections that are open
	public            atomic.Pointer[string]
	// these keep complaints of one kind apart
	slowed, refusals, web rate.Sometimes
	// requests and connections; grows under mu while not stopping, and while one of
	// them is counted.
	requests sync.WaitGroup

	mu sync.Mutex // guards the following fields
	// consumers are all that there have been, in the order they came.
	consumers []*consumer
	ran       bool
	stopping  bool
}

// Requests that may be under way at once.
const (
	maxHandshakes = 256
	maxPosts      = 512
)

// New checks cfg and makes a server. It starts nothing and listens on nothing.
func New(cfg Config) (*Server, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, fmt.Errorf("edge: %w", err)
	}
	s := &Server{
		cfg: cfg, log: cfg.Logger, count: newCounts(),
		budget:     wire.NewBudget(wire.BudgetConfig{}),
		handshakes: make(chan struct{}, maxHandshakes),
		posts:      make(chan struct{}, maxPosts),
	}
	s.tickets.byID, s.tickets.given = map[string]*ticket{}, map[*consumer][]*ticket{}
	s.guesses.by = newGuessers()
	s.slowed = rate.Sometimes{Interval: complainEvery}
	s.refusals = rate.Sometimes{Interval: complainEvery}
	s.web = rate.Sometimes{Interval: complainEvery}
	s.hooks = s.frames.Hooks()
	s.upgrader = websocket.Upgrader{ReadBufferSize: readBuffer, WriteBufferPool: noBuffers{}}
	for _, c := range cfg.Consumers {
		s.consumers = append(s.consumers, newConsumer(s, c))
	}
	s.several.Store(len(cfg.Consumers) > 1)
	return s, nil
}

// Reload puts another list of consumers in force. Connections of those that are
// gone or have other credentials now are asked to leave as soon as they owe no
// answer; the others do not notice. After an error nothing has changed.
func (s *Server) Reload(list []Consumer) error {
	list = withDefaults(list)
	if err := validateConsumers(list); err != nil {
		return fmt.Errorf("edge: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.several.Store(len(list) > 1)
	wanted := map[string]Consumer{}
	for _, c := range list {
		wanted[c.Name] = c
	}
	for _, c := range s.consumers {
		cfg, ok := wanted[c.name]
		delete(wanted, c.name)
		switch {
		case ok && c.change(cfg):
			s.log.Info("consumer changed", "consumer", c.name)
		case !ok && c.remove():
			s.tickets.forget(c)
			s.log.Info("consumer removed", "consumer", c.name)
		}
	}
	for _, c := range list {
		if _, isNew := wanted[c.Name]; isNew {
			s.consumers = append(s.consumers, newConsumer(s, c))
			s.log.Info("consumer added", "consumer", c.Name)
		}
	}
	return nil
}

// consumer gives the consumer of that name, nil if there is none.
func (s *Server) consumer(name string) *consumer {
	for _, c := range s.all() {
		if c.name == name && !c.isGone() {
			return c
		}
	}
	return nil
}

func (s *Server) all() []*consumer {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.consumers[:len(s.consumers):len(s.consumers)]
}

// URL is how consumers reach the server. It is empty before Run listens, unless it
// is configured.
func (s *Server) URL() string { return s.base() }

func (s *Server) base() string {
	if p := s.public.Load(); p != nil {
		return *p
	}
	return s.cfg.PublicURL
}

// endpoint is where a ticket is good. Some clients take host and port out of it and
// need the port to be there.
func (s *Server) endpoint() string {
	scheme, rest, _ := strings.Cut(s.base(), "://")
	host, path, _ := strings.Cut(rest, "/")
	port := "80"
	if scheme == "https" {
		port = "443"
	}
	if _, _, err := net.SplitHostPort(host); err != nil {
		host = net.JoinHostPort(strings.Trim(host, "[]"), port)
	}
	if path != "" {
		path = "/" + path
	}
	return strings.Replace(scheme, "http", "ws", 1) + "://" + host + path + pathConnect
}

// StopGrace bounds how long Run waits for connections and requests when it ends.
const StopGrace = 500 * time.Millisecond

// Run serves until ctx is done. Then it lets nobody in, asks every connection to
// leave and closes it, and returns nil after StopGrace at the latest. What is out to consumers
// by then is not waited for: whoever wants that lets the handlers end first.
func (s *Server) Run(ctx context.Context) error {
	ln, err := s.listen(ctx)
	if err != nil {
		return fmt.Errorf("edge: %w", err)
	}
	work, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	srv := &http.Server{
		Handler:           s.routes(),
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       10 * time.Second,
		WriteTimeout:      30 * time.Second,
		IdleTimeout:       time.Minute,
		MaxHeaderBytes:    16 << 10,
		ErrorLog:          log.New(complaints{s}, "", 0),
		BaseContext:       func(net.Listener) context.Context { return work },
		TLSNextProto:      map[string]func(*http.Server, *tls.Conn, http.Handler){},
	}
	served := make(chan error, 1)
	go func() { served <- srv.Serve(ln) }()
	s.log.Info("edge is up", "address", ln.Addr().String(), "url", s.base())
	err = s.tend(ctx, served)
	s.stop(srv)
	cancel()
	s.requests.Wait()
	if err == nil {
		<-served
	}
	return err
}

func (s *Server) listen(ctx context.Context) (net.Listener, error) {
	s.mu.Lock()
	ran := s.ran
	s.ran = true
	s.mu.Unlock()
	if ran {
		return nil, ErrRan
	}
	ln := s.cfg.Listener
	if ln == nil {
		var lc net.ListenConfig
		var err error
		if ln, err = lc.Listen(ctx, "tcp", s.cfg.Listen); err != nil {
			return nil, fmt.Errorf("listen: %w", err)
		}
	}
	public := "http://" + ln.Addr().String()
	ln = limit(ln, s.cfg.MaxConnections+maxHandshakes+maxPosts)
	if s.cfg.CertFile != "" {
		cert, err := loadCertificate(&s.cfg)
		if err != nil {
			_ = ln.Close()
			return nil, err
		}
		public = "https" + strings.TrimPrefix(public, "http")
		ln = tls.NewListener(ln, &tls.Config{
			GetCertificate: cert.get, NextProtos: []string{"http/1.1"},
			MinVersion: tls.VersionTLS12,
		})
	}
	if s.cfg.PublicURL == "" {
		s.public.Store(&public)
	}
	return ln, nil
}

// tend looks after the connections until ctx is done or serving has failed.
func (s *Server) tend(ctx context.Context, served <-chan error) error {
	tick := time.NewTicker(max(min(time.Second, s.cfg.PingEvery/4), time.Millisecond))
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case err := <-served:
			return fmt.Errorf("edge: serve: %w", err)
		case now := <-tick.C:
			for _, c := range s.all() {
				c.tend(now)
			}
		}
	}
}

// stop lets nobody in any more and ends what is there.
func (s *Server) stop(srv *http.Server) {
	s.mu.Lock()
	s.stopping = true
	s.mu.Unlock()
	for _, c := range s.all() {
		c.dismiss(time.Now())
	}
	grace, cancel := context.WithTimeout(context.Background(), StopGrace)
	defer cancel()
	if srv.Shutdown(grace) != nil {
		_ = srv.Close() // requests that outlast the grace are cut
	}
	left := make(chan struct{})
	go func() {
		defer close(left)
		s.requests.Wait()
	}()
	select {
	case <-left:
	case <-grace.Done():
	}
	for _, c := range s.all() {
		c.abort()
	}
}

// enter counts a request in, unless the server is stopping.
func (s *Server) enter() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopping {
		return false
	}
	s.requests.Add(1)
	return true
}

func (s *Server) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST "+pathOpen, s.counted(s.open))
	mux.HandleFunc("GET "+pathConnect, s.counted(s.connect))
	mux.HandleFunc("POST "+pathReply, s.counted(s.reply))
	return mux
}

// counted lets a request in only while the server is not stopping, so that Run can
// wait for all of them.
func (s *Server) counted(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if !s.enter() {
			refuse(w, http.StatusServiceUnavailable, "ServiceUnavailable", "the gateway is stopping")
			return
		}
		defer s.requests.Done()
		next(w, r)
	}
}

// hold takes a token, unless there is none.
func hold(room chan struct{}) (free func(), ok bool) {
	select {
	case room <- struct{}{}:
		return sync.OnceFunc(func() { <-room }), true
	default:
		return nil, false
	}
}

// complaints takes what the web server says, such as that a client does not trust the
// certificate. Anybody can make it say much.
type complaints struct{ s *Server }

// Write implements io.Writer.
func (c complaints) Write(line []byte) (int, error) {
	text := strings.TrimSpace(string(line))
	c.s.log.Debug("edge: web server", "said", text)
	c.s.web.Do(func() { c.s.log.Warn("the edge's web server complains", "said", text) })
	return len(line), nil
}
