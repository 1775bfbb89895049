package integrations

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"
)

// Errors of a Supervisor.
var (
	ErrRunning   = errors.New("supervisor is running already")
	ErrConnector = errors.New("connector is nil")
)

// Supervisor keeps one installation connected: it starts a session, watches how
// it ends, and decides when the next one starts. At most two sessions are open at
// once, and two only while the older one is being left.
//
//   - Asked, or announced by Retire: the successor starts at once, while the old
//     session goes on for as long as it lives.
//   - Lost: the successor starts after a wait that doubles until a session has
//     gone live and lived for Config.MinLife.
//   - Limited: as Lost, counted from the time that the platform named.
//   - Stale: the successor starts at once, without the cursor.
//   - Refused: the installation is parked and probed slowly.
//   - Displaced: nothing starts until Resume or Replace.
//
// Asked and Stale are served at once only by a session that has proved to work,
// or if none has failed since one did; otherwise they count as Lost, so that a
// gateway which asks again and again meets waits.
//
// All methods may be called from any number of goroutines. A Supervisor holds one
// goroutine while it runs, and one more for each session.
type Supervisor struct {
	cfg  Config        // immutable; Connector is where it begins
	wake chan struct{} // has room for one; sent to by many, never closed

	lastFrame atomic.Int64 // Unix nanoseconds; 0 before the first

	mu sync.Mutex
	// guarded by mu
	running bool
	wishes  wishes
	status  Status // as of the last step of Run, without LastFrame
}

// wishes is what callers want of Run.
type wishes struct {
	conn     Connector // for the next session
	replaced bool
	resumed  bool
}

// NewSupervisor makes a Supervisor and starts nothing. An error names the field
// that is wrong.
func NewSupervisor(cfg Config) (*Supervisor, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	s := &Supervisor{cfg: cfg, wake: make(chan struct{}, 1)}
	s.wishes.conn = cfg.Connector
	s.status = Status{
		Installation: cfg.Installation,
		Platform:     cfg.Connector.Profile().Platform,
		State:        StateStopped,
	}
	return s, nil
}

// Run keeps the installation connected until ctx is done. It then ends the
// sessions, which send the acks they still owe within the connector's own grace,
// waits for them, and returns nil. It returns ErrRunning if it is running
// already; after it has returned it may be called again.
func (s *Supervisor) Run(ctx context.Context) error {
	if err := s.begin(); err != nil {
		return err
	}
	k := newKeeper(s)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for ctx.Err() == nil {
		timer.Reset(k.step(ctx))
		select {
		case <-ctx.Done():
		case <-s.wake:
		case <-timer.C:
		}
	}
	k.wait()
	return nil
}

func (s *Supervisor) begin() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running {
		return ErrRunning
	}
	s.running = true
	return nil
}

// Replace makes c, with other credentials say, the connector of all sessions to
// come, and starts one with it, also from StateParked and StateDisplaced. A live
// session stays until the new one is live or it ends by itself, so that wrong
// credentials break nothing that works; one that is not live is ended at once. If
// the platform allows one session only, the old one is ended first.
//
// It does not wait for any of this. When Run is not running, c is what it will
// start with.
func (s *Supervisor) Replace(c Connector) error {
	if c == nil {
		return ErrConnector
	}
	platform := c.Profile().Platform
	s.mu.Lock()
	s.wishes.conn, s.wishes.replaced = c, true
	s.status.Platform = platform
	s.mu.Unlock()
	s.nudge()
	return nil
}

// Resume ends the wait for the next session, whatever it waits for: a backoff, a
// probe, or a displaced installation's operator. It does nothing while a session
// is open that needs no successor, and does not wait.
func (s *Supervisor) Resume() {
	s.mu.Lock()
	s.wishes.resumed = true
	s.mu.Unlock()
	s.nudge()
}

// Status gives the present picture. It never blocks for long.
func (s *Supervisor) Status() Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.statusLocked()
}

func (s *Supervisor) statusLocked() Status {
	st := s.status
	if ns := s.lastFrame.Load(); ns > 0 {
		st.LastFrame = time.Unix(0, ns)
	}
	return st
}

// nudge makes Run look at the news. It never blocks.
func (s *Supervisor) nudge() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}
