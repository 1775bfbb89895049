package system

import (
	"bytes"
	"context"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/penstock-io/penstock/integrations"
	"github.com/penstock-io/penstock/integrations/dingtalk/dingtalktest"
	"github.com/penstock-io/penstock/internal/admin"
	"github.com/penstock-io/penstock/internal/app"
	"github.com/penstock-io/penstock/internal/config"
)

// Config is a configuration with nothing but defaults and these installations. The
// admin listener is off.
func Config(in ...config.Installation) *config.Config {
	c := config.Default()
	c.Store.Kind = "memory"
	c.Admin.Listen = "off"
	c.Installations = in
	c.Routes = []config.Route{{Name: "echo", Handler: config.Handler{Echo: &config.Echo{}}}}
	return &c
}

// OnFile lets a service keep its messages in a file, as it does by default.
func OnFile(c *config.Config, path string) {
	c.Store.Kind, c.Store.Path = "sqlite", path
	c.Admin.Socket = "off" // a bubble cannot wait for a socket
}

// Installation is one bot of a gateway, subscribed to every topic.
func Installation(
	id string, g *dingtalktest.Gateway, c dingtalktest.Credentials,
) config.Installation {
	return config.Installation{
		ID: id, Platform: "dingtalk", ClientID: c.ClientID, ClientSecret: config.Secret(c.Secret),
		RobotCode: c.RobotCode, APIBase: g.URL(), OAPIBase: g.URL(),
		AllowInsec: true, Proxy: "none",
		PingEvery: 30 * time.Second, Silence: 85 * time.Second, ReadLimit: 4 << 20,
		Topics: []string{
			dingtalktest.TopicRobot, dingtalktest.TopicDelegate, dingtalktest.TopicCard,
			dingtalktest.TopicQuery, dingtalktest.TopicPlugin,
		},
	}
}

// Options say what of a service is not as usual. The zero value works.
type Options struct {
	Network *Network // default: one on real sockets
	Store   *Store   // default: one that works
	Record  *Record  // default: a new one
	// Routes lets the routes of the configuration run in place of the Record.
	Routes bool
}

// Service is a running service.
type Service struct {
	// immutable
	App    *app.App
	Net    *Network
	Store  *Store
	Record *Record
	Log    *Log
	cancel context.CancelFunc
	done   chan struct{} // closed when Run has returned
	err    error         // of Run, written before done is closed
	admin  chan net.Addr // holds the address of the admin listener once it is up

	mu     sync.Mutex
	states []integrations.Status // guarded by mu
}

// Start runs a service until Stop, or else until the test ends.
func Start(t dingtalktest.TB, cfg *config.Config, o Options) *Service {
	t.Helper()
	s := &Service{
		Net: o.Network, Store: o.Store, Record: o.Record, Log: &Log{},
		done: make(chan struct{}), admin: make(chan net.Addr, 1),
	}
	if s.Net == nil {
		s.Net = &Network{}
	}
	if s.Store == nil {
		s.Store = &Store{}
	}
	if s.Record == nil {
		s.Record = NewRecord()
	}
	opts := app.Options{
		Logger:  slog.New(slog.NewJSONHandler(s.Log, &slog.HandlerOptions{Level: slog.LevelDebug})),
		Handler: s.Record, Hooks: s.Record.hooks(), OnState: s.noteState,
		WrapStore: s.Store.Wrap, DialContext: s.Net.DialContext,
		OnAdmin: func(a net.Addr) { s.admin <- a },
	}
	if o.Routes {
		opts.Handler = nil
	}
	var err error
	if s.App, err = app.New(cfg, opts); err != nil {
		t.Fatalf("service: %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	s.cancel = cancel
	go func() {
		defer close(s.done)
		s.err = s.App.Run(ctx)
	}()
	t.Cleanup(func() { _ = s.Stop() }) // a test that cares stops it itself
	return s
}

// Signal begins a stop, as a signal does.
func (s *Service) Signal() { s.cancel() }

// Done is closed when the service has stopped.
func (s *Service) Done() <-chan struct{} { return s.done }

// Stop stops the service and gives what Run returned. It may be called again.
func (s *Service) Stop() error {
	s.cancel()
	<-s.done
	return s.err
}

// Admin gives the address of the admin listener.
func (s *Service) Admin(ctx context.Context) (string, error) {
	select {
	case a := <-s.admin:
		s.admin <- a
		return "http://" + a.String(), nil
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

func (s *Service) noteState(st integrations.Status) {
	s.mu.Lock()
	s.states = append(s.states, st)
	s.mu.Unlock()
	s.Record.change(func() {})
}

// AwaitState blocks until an installation is in a state.
func (s *Service) AwaitState(
	ctx context.Context, installation string, want integrations.State,
) error {
	return s.Record.Await(ctx, installation+" "+string(want), func() bool {
		all := s.States(installation)
		return len(all) > 0 && all[len(all)-1] == want
	})
}

// States are the states that an installation has been in, in order.
func (s *Service) States(installation string) []integrations.State {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []integrations.State
	for _, st := range s.states {
		if string(st.Installation) == installation {
			out = append(out, st.State)
		}
	}
	return out
}

// Health is that of one installation; the zero Health if there is none.
func (s *Service) Health(installation string) admin.Health {
	all := s.App.Health()
	i := slices.IndexFunc(all, func(h admin.Health) bool { return h.Installation == installation })
	if i < 0 {
		return admin.Health{}
	}
	return all[i]
}

// Page is what /metrics shows.
func (s *Service) Page() string {
	w := httptest.NewRecorder()
	s.App.Metrics().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	return w.Body.String()
}

// Metric is the sum of the samples in whose name or labels word stands; ok is false
// when there is none.
func (s *Service) Metric(word string) (sum float64, ok bool) {
	for _, line := range strings.Split(s.Page(), "\n") {
		name, value, found := cutLast(line, " ")
		if !found || strings.HasPrefix(line, "#") || !strings.Contains(name, word) {
			continue
		}
		if v, err := strconv.ParseFloat(value, 64); err == nil {
			sum, ok = sum+v, true
		}
	}
	return sum, ok
}

func cutLast(s, sep string) (before, after string, found bool) {
	i := strings.LastIndex(s, sep)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+len(sep):], true
}

// Log keeps what a service logs. It is an io.Writer.
type Log struct {
	mu  sync.Mutex
	buf bytes.Buffer // guarded by mu
}

// Write takes one line.
func (l *Log) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(b)
}

// Lines are the lines so far.
func (l *Log) Lines() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Split(strings.TrimSpace(l.buf.String()), "\n")
}
