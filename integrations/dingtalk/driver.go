package dingtalk

import (
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/penstock-io/penstock/integrations"
	"github.com/penstock-io/penstock/integrations/dingtalk/internal/openapi"
)

// Open makes the driver of one bot: a *Connector, and a Sender for its replies. It
// starts nothing and touches neither network nor disk. The error names every
// field that is wrong.
func Open(cfg Config) (integrations.Driver, error) {
	c, err := New(cfg)
	if err != nil {
		return integrations.Driver{}, err
	}
	s, err := openapi.New(openapi.Config{
		ClientID:      c.cfg.ClientID,
		ClientSecret:  c.cfg.ClientSecret,
		RobotCode:     c.cfg.RobotCode,
		APIBase:       c.cfg.APIBase,
		OAPIBase:      c.cfg.OAPIBase,
		ReplyHosts:    c.cfg.ReplyHosts,
		AllowInsecure: c.cfg.AllowInsecure,
		HTTP:          &http.Client{Transport: &lateTransport{cfg: &c.cfg}},
		Logger:        c.cfg.Logger,
	})
	if err != nil {
		return integrations.Driver{}, fmt.Errorf("dingtalk config: %w", err)
	}
	return integrations.Driver{Connector: c, Sender: s}, nil
}

// Bounds of the sender's connections.
const (
	idleConns   = 8
	idleTimeout = 60 * time.Second
)

// lateTransport makes its transport at the first request, since the constructors
// may not read CAFile. While the file cannot be used, requests fail with the
// reason, and the next one looks again.
type lateTransport struct {
	cfg *Config // immutable

	mu   sync.Mutex
	real *http.Transport // guarded by mu
}

// RoundTrip implements http.RoundTripper.
func (t *lateTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	real, err := t.ready()
	if err != nil {
		return nil, err
	}
	return real.RoundTrip(req)
}

// CloseIdleConnections is found by http.Client.
func (t *lateTransport) CloseIdleConnections() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.real != nil {
		t.real.CloseIdleConnections()
	}
}

func (t *lateTransport) ready() (*http.Transport, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.real != nil {
		return t.real, nil
	}
	tr, err := t.cfg.transport()
	if err != nil {
		return nil, err
	}
	tr.MaxIdleConnsPerHost = idleConns
	tr.IdleConnTimeout = idleTimeout
	t.real = tr
	return tr, nil
}
