package integrations

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/penstock-io/penstock/internal/backoff"
	"github.com/penstock-io/penstock/message"
)

// Config is what a Supervisor needs to know. Connector and Sink must be set; the
// zero value of everything else works.
type Config struct {
	// Installation is told in logs and in the status.
	Installation message.InstallationID
	// Connector opens the sessions.
	Connector Connector
	// Sink takes what the sessions offer. It must not block, and is called from
	// their reading goroutines, more than one at a time. Its error goes back to the
	// session.
	Sink func(ctx context.Context, d message.Delivery) error
	// Cursor gives the durable position from which a session goes on. It is asked
	// before each session, off every reading goroutine, and may block until ctx
	// ends. An error counts as a lost session. nil means that there is no position.
	Cursor func(ctx context.Context) (Cursor, error)
	// Pacer spreads the openings of all installations; nil does not.
	Pacer *Pacer
	// Logger gets the ends and beginnings of sessions, summarised when they repeat;
	// nil logs nothing.
	Logger *slog.Logger
	// OnState is called after each change of the state, in order, from Run's
	// goroutine and outside all locks. While it runs no session is opened, so it
	// must be quick. It may call any method but Run.
	OnState func(Status)

	// RedialBase is the ceiling of the wait after the first lost session; it doubles
	// with each further one. 0 means 1 s.
	RedialBase time.Duration
	// RedialMax is where the doubling ends; 0 means 60 s. Waits are drawn from 0 to
	// the ceiling, and from half of it once it has reached RedialMax.
	RedialMax time.Duration
	// MinLife is how long a session that went live must have lived to prove that
	// connecting works, which ends the doubling; 0 means 30 s.
	MinLife time.Duration
	// ProbeEvery is how often refused credentials are tried again; 0 means 5 min. Up
	// to a fifth more is added by chance.
	ProbeEvery time.Duration
	// RetireGrace is how long a session may outstay the end that its platform
	// announced before it is closed from our side; 0 means 10 s.
	RetireGrace time.Duration
	// MaxAge is when a session is replaced although it looks well, for a gateway
	// that answers pings and pushes nothing more. Up to a tenth is taken off by
	// chance. 0, the default, never does; less than twice MinLife is an error.
	MaxAge time.Duration
}

func (c Config) withDefaults() Config {
	c.RedialBase = orDefault(c.RedialBase, time.Second)
	c.RedialMax = orDefault(c.RedialMax, max(time.Minute, c.RedialBase))
	c.MinLife = orDefault(c.MinLife, 30*time.Second)
	c.ProbeEvery = orDefault(c.ProbeEvery, 5*time.Minute)
	c.RetireGrace = orDefault(c.RetireGrace, 10*time.Second)
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}

func (c Config) validate() error {
	if c.Connector == nil {
		return errors.New("supervisor: Connector is not set")
	}
	if c.Sink == nil {
		return errors.New("supervisor: Sink is not set")
	}
	for _, f := range []struct {
		name  string
		value time.Duration
	}{
		{"RedialBase", c.RedialBase},
		{"RedialMax", c.RedialMax},
		{"MinLife", c.MinLife},
		{"ProbeEvery", c.ProbeEvery},
		{"RetireGrace", c.RetireGrace},
		{"MaxAge", c.MaxAge},
	} {
		if f.value < 0 {
			return fmt.Errorf("supervisor: %s is %v, want no less than 0", f.name, f.value)
		}
	}
	if c.RedialMax < c.RedialBase {
		return fmt.Errorf("supervisor: RedialMax is %v, want RedialBase (%v) or more",
			c.RedialMax, c.RedialBase)
	}
	if c.MaxAge > 0 && c.MaxAge < 2*c.MinLife {
		return fmt.Errorf("supervisor: MaxAge is %v, want 0 or twice MinLife (%v) or more",
			c.MaxAge, c.MinLife)
	}
	return nil
}

// redials is the schedule after lost sessions.
func (c Config) redials() backoff.Policy {
	return backoff.Policy{
		Base:   c.RedialBase,
		Max:    c.RedialMax,
		Jitter: backoff.Full,
		Least:  c.RedialMax / 2,
	}
}
