package integrations

import (
	"container/list"
	"context"
	"fmt"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// PacerConfig bounds how fast sessions are opened. The zero value works.
type PacerConfig struct {
	// Rate is how many openings may begin in a second; 0 means 50.
	Rate float64
	// Burst is how many may begin at once after a quiet time; 0 means 50.
	Burst int
	// InFlight is how many may be under way; 0 means 32.
	InFlight int
	// Hold is the longest that one opening counts as under way, so that gateways
	// which accept and then say nothing do not hold up the others; 0 means 1 s.
	Hold time.Duration
	// UrgentRate is Rate for the redials that a platform asked for, whose old
	// session dies soon whatever we do; 0 means five times Rate.
	UrgentRate float64
}

func (c PacerConfig) withDefaults() PacerConfig {
	c.Rate = orDefault(c.Rate, 50)
	c.Burst = orDefault(c.Burst, 50)
	c.InFlight = orDefault(c.InFlight, 32)
	c.Hold = orDefault(c.Hold, time.Second)
	c.UrgentRate = orDefault(c.UrgentRate, 5*c.Rate)
	return c
}

func (c PacerConfig) validate() error {
	switch {
	case !(c.Rate > 0):
		return fmt.Errorf("pacer: Rate is %v, want more than 0", c.Rate)
	case c.Burst < 0:
		return fmt.Errorf("pacer: Burst is %d, want at least 1", c.Burst)
	case c.InFlight < 0:
		return fmt.Errorf("pacer: InFlight is %d, want at least 1", c.InFlight)
	case c.Hold < 0:
		return fmt.Errorf("pacer: Hold is %v, want more than 0", c.Hold)
	case !(c.UrgentRate >= c.Rate):
		return fmt.Errorf("pacer: UrgentRate is %v, want Rate (%v) or more", c.UrgentRate, c.Rate)
	}
	return nil
}

// Pacer spreads the openings of many sessions, so that a cut of all of them does
// not become a storm of dials. All supervisors of a process share one. Its methods
// may be called from any number of goroutines; a nil Pacer lets everybody pass.
//
// Turns are given in the order of asking, the urgent ones before all others.
// Urgent turns have a rate of their own and no limit in flight.
type Pacer struct {
	cfg PacerConfig // immutable

	mu sync.Mutex
	// guarded by mu
	normal, urgent line
	inFlight       int
	alarm          *time.Timer // gives turns when the next token is due; nil if unset
}

// line is one of the queues of a Pacer, guarded by its mu.
type line struct {
	tokens *rate.Limiter
	turns  list.List // of *turn
}

// turn is one call of Wait.
type turn struct {
	given chan struct{} // closed by the Pacer, under its mu
	// guarded by the Pacer's mu
	place  *list.Element // nil once given
	expiry *time.Timer   // ends the turn after Hold
	ended  bool
}

// NewPacer makes a Pacer. An error names the field that is wrong.
func NewPacer(cfg PacerConfig) (*Pacer, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	p := &Pacer{cfg: cfg}
	p.normal.tokens = rate.NewLimiter(rate.Limit(cfg.Rate), cfg.Burst)
	p.urgent.tokens = rate.NewLimiter(rate.Limit(cfg.UrgentRate), cfg.Burst)
	return p, nil
}

// Wait blocks until a session may be opened. The caller calls done when it is
// open or has failed; further calls of done do nothing. When ctx ends first, Wait
// returns its error and no turn is used up.
func (p *Pacer) Wait(ctx context.Context, urgent bool) (done func(), err error) {
	if p == nil {
		return func() {}, ctx.Err()
	}
	t := &turn{given: make(chan struct{})}
	l := &p.normal
	if urgent {
		l = &p.urgent
	}
	p.mu.Lock()
	t.place = l.turns.PushBack(t)
	p.giveLocked()
	p.mu.Unlock()
	select {
	case <-t.given:
		return func() { p.end(t) }, nil
	case <-ctx.Done():
		p.withdraw(l, t)
		return nil, ctx.Err()
	}
}

// Load tells how many sessions wait for their turn and how many are being opened.
func (p *Pacer) Load() (waiting, inFlight int) {
	if p == nil {
		return 0, 0
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.normal.turns.Len() + p.urgent.turns.Len(), p.inFlight
}

// giveLocked gives all turns that may be given now, and sets the alarm for the
// next one that only lacks a token.
func (p *Pacer) giveLocked() {
	now := time.Now()
	for p.urgent.turns.Len() > 0 && p.urgent.tokens.AllowN(now, 1) {
		p.openLocked(&p.urgent)
	}
	if p.urgent.turns.Len() > 0 {
		p.alarmLocked(p.urgent.wait(now))
		return
	}
	for p.normal.turns.Len() > 0 && p.inFlight < p.cfg.InFlight {
		if !p.normal.tokens.AllowN(now, 1) {
			p.alarmLocked(p.normal.wait(now))
			return
		}
		p.openLocked(&p.normal)
	}
}

// wait is how long until the line has its next token, and never too short for a
// timer to see a difference.
func (l *line) wait(now time.Time) time.Duration {
	missing := 1 - l.tokens.TokensAt(now)
	d := time.Duration(missing / float64(l.tokens.Limit()) * float64(time.Second))
	return max(d, time.Millisecond)
}

// openLocked gives the first turn of a line that is not empty.
func (p *Pacer) openLocked(l *line) {
	t := l.turns.Remove(l.turns.Front()).(*turn)
	t.place = nil
	p.inFlight++
	t.expiry = time.AfterFunc(p.cfg.Hold, func() { p.end(t) })
	close(t.given)
}

func (p *Pacer) alarmLocked(d time.Duration) {
	if p.alarm != nil {
		return
	}
	p.alarm = time.AfterFunc(d, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.alarm = nil
		p.giveLocked()
	})
}

// end takes a given turn back, once.
func (p *Pacer) end(t *turn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if t.ended {
		return
	}
	t.ended = true
	t.expiry.Stop()
	p.inFlight--
	p.giveLocked()
}

// withdraw takes a turn out of its line, or back if it has just been given.
func (p *Pacer) withdraw(l *line, t *turn) {
	p.mu.Lock()
	place := t.place
	if place != nil {
		l.turns.Remove(place)
		p.giveLocked()
	}
	p.mu.Unlock()
	if place == nil {
		p.end(t)
	}
}

// orDefault gives v, or def if v is zero.
func orDefault[T comparable](v, def T) T {
	var zero T
	if v == zero {
		return def
	}
	return v
}
