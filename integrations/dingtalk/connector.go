package dingtalk

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"
	"sync/atomic"
	"time"

	"github.com/penstock-io/penstock/integrations"
	"github.com/penstock-io/penstock/integrations/dingtalk/internal/payload"
)

// Platform is the name under which DingTalk is known.
const Platform = payload.Platform

// Connector opens sessions of one bot. All methods may be called from any number
// of goroutines; sessions may overlap.
type Connector struct {
	// immutable
	cfg  Config
	hide secrets

	// atomic
	badOpens atomic.Int64 // answers of 400 since the last other answer
	count    counters
}

// New makes a connector. It starts nothing and touches neither network nor disk.
// The error names every field that is wrong.
func New(cfg Config) (*Connector, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, fmt.Errorf("dingtalk config: %w", err)
	}
	hide := secrets{}.with(cfg.ClientSecret).with(cfg.proxyPassword())
	return &Connector{cfg: cfg, hide: hide}, nil
}

// Profile implements integrations.Connector.
func (c *Connector) Profile() integrations.Profile {
	return integrations.Profile{
		Platform: Platform,
		Ack:      integrations.AckEach,
		// The push deadline of events; robot messages have longer.
		AckWithin: 3 * time.Second,
		// Well over the two minutes after which a copy has been reported at the latest.
		RedeliverFor: 5 * time.Minute,
		// The gateway takes more, but each push goes to one of them at random, so
		// order would be lost: two are for a redial only.
		MaxSessions: 2,
	}
}

// Run implements integrations.Connector: it opens one session and serves it. The
// cursor is not used. Besides the caller's goroutine it has one more only while
// something is being written.
func (c *Connector) Run(
	ctx context.Context, _ integrations.Cursor, in integrations.Intake,
) (end integrations.End) {
	defer func() {
		if p := recover(); p != nil {
			c.log().Error("session panicked", "panic", p, "stack", string(debug.Stack()))
			end = *lost("panic", errPanic)
		}
	}()
	s, failed := c.connect(ctx, in)
	if failed != nil {
		if ctx.Err() != nil {
			return integrations.End{Why: integrations.Stopped}
		}
		return *failed
	}
	return s.serve(ctx)
}

var errPanic = errors.New("session panicked")

// connect opens and dials. Its frames are deep, so it has a goroutine of its own:
// the session's keeps the small stack it starts with for as long as it idles.
func (c *Connector) connect(
	ctx context.Context, in integrations.Intake,
) (s *session, end *integrations.End) {
	done := make(chan struct{}) // closed by the goroutine
	go func() {
		defer close(done)
		defer func() {
			if p := recover(); p != nil {
				c.log().Error("dial panicked", "panic", p, "stack", string(debug.Stack()))
				s, end = nil, lost("panic", errPanic)
			}
		}()
		g, failed := c.open(ctx)
		if failed != nil {
			end = failed
			return
		}
		ws, failed := c.dial(ctx, g)
		if failed != nil {
			end = failed
			return
		}
		s = newSession(c, in, ws)
	}()
	<-done
	return s, end
}

// takes tells whether we have subscribed to a callback topic.
func (c *Connector) takes(topic string) bool {
	return slices.Contains(c.cfg.Topics, topic)
}

func (c *Connector) log() *slog.Logger { return c.cfg.Logger }
