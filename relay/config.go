package relay

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/penstock-io/penstock/message"
	"github.com/penstock-io/penstock/router"
	"github.com/penstock-io/penstock/store"
)

// Sender sends the replies of one installation. All methods may be called from
// any number of goroutines.
type Sender interface {
	// Address gives the reply address of a message.
	Address(m *message.Inbound) (message.Target, error)
	// Split cuts a reply into the parts that the platform takes, in order.
	Split(o message.Outbound) []message.Outbound
	// Send makes one attempt; see [message.SendError].
	Send(ctx context.Context, o message.Outbound) (message.Receipt, error)
}

// NoRoute tells what becomes of a message that no route takes.
type NoRoute string

// What becomes of a message without a route.
const (
	NoRouteDone NoRoute = "done" // counted and forgotten
	NoRouteDead NoRoute = "dead" // kept as a dead letter
)

// Uncertain tells what becomes of a reply whose send may have reached the
// platform although no answer came.
type Uncertain string

// What becomes of an uncertain reply.
const (
	UncertainResend  Uncertain = "resend"  // tried again; a person may see it twice
	UncertainDiscard Uncertain = "discard" // dead letter; a person may not see it
)

// Queue bounds one side of the pipeline.
type Queue struct {
	Workers int           // runs at once
	PerKey  int           // items of one conversation in memory
	Pending int           // items in memory
	Timeout time.Duration // of one run
}

// Rate is a token bucket; a zero PerSecond means no limit.
type Rate struct {
	PerSecond float64
	Burst     int
}

// Config configures a [Relay]. Handler and Store are required; every other field
// has a default for its zero value.
type Config struct {
	Handler router.Handler
	Store   store.Store
	// Writer sets the bounds of commits. Writer.Gather has a default of 1 ms if
	// Durable is set: a flush to the disk is shared by what comes in that time.
	Writer store.WriterConfig
	// Admin reads for [Relay.Requeue], [Relay.Replay] and [Relay.Purge]. Default:
	// Store, if it can.
	Admin store.Admin
	// Route gives the handler of a route by its name, nil if there is none. It may
	// be called from any goroutine. Default: there are none.
	Route func(name string) router.Handler

	// Inbound bounds each installation. Defaults: 8, 256, 2048, 120 s.
	Inbound Queue
	// Outbound bounds all replies together. Defaults: 512, 64, 16384, 30 s.
	Outbound Queue
	// SyncWorkers is how many synchronous messages are handled at once beside
	// the queues. Default 64.
	SyncWorkers int
	// SyncWithin is how long a synchronous message waits for its handler before
	// it is acknowledged without an answer. Default 1.8 s.
	SyncWithin time.Duration

	// Attempts is how often a handler is tried. Default 8.
	Attempts int
	// RetryBase and RetryMax bound the doubling wait between attempts. Defaults
	// 1 s and 5 min.
	RetryBase, RetryMax time.Duration
	// NoRoute: default NoRouteDone.
	NoRoute NoRoute

	// SendAttempts is how often a reply is tried. Default 5.
	SendAttempts int
	// SendWaits are the waits between the attempts; the last one repeats.
	// Default 5 s, 25 s, 2 min, 10 min.
	SendWaits []time.Duration
	// SendTTL is the age at which a reply is not sent any more. Default 24 h.
	SendTTL time.Duration
	// Uncertain: default UncertainResend.
	Uncertain Uncertain
	// InstallationRate and ConversationRate limit sends. Default: no limit.
	InstallationRate, ConversationRate Rate

	// DedupWindow and DedupIDs bound the memory of message ids in front of the
	// store. Defaults 24 h and 200,000.
	DedupWindow time.Duration
	DedupIDs    int

	// Durable tells that the store outlives the process: at a stop, what has not
	// started is left to the next start instead of being waited for.
	Durable bool
	// Interrupted tells whether the process before this one ended without a stop, so
	// that what the store holds may have been begun. Run calls it once. Default: it
	// did not.
	Interrupted func() bool
	// Logger: default discards.
	Logger *slog.Logger
	Hooks  Hooks
}

// Hooks are called from the pipeline's goroutines and must not block. Each may be
// nil.
type Hooks struct {
	// Acked: a delivery was acknowledged, took after it was offered.
	Acked func(took time.Duration)
	// Handled: a handler returned.
	Handled func(m *message.Inbound, wait, took time.Duration, err error)
	// Ended: a message reached its end; dead is empty, or the reason.
	Ended func(m *message.Inbound, dead string)
	// SendTried: a send returned.
	SendTried func(o *message.Outbound, took time.Duration, err error)
	// SendEnded: a reply reached its end; dead is empty, or the reason.
	SendEnded func(o *message.Outbound, dead string)
}

func (c Config) withDefaults() Config {
	c.Inbound = c.Inbound.or(Queue{Workers: 8, PerKey: 256, Pending: 2048, Timeout: 120 * time.Second})
	c.Outbound = c.Outbound.or(Queue{Workers: 512, PerKey: 64, Pending: 16384, Timeout: 30 * time.Second})
	if c.Durable {
		setDefault(&c.Writer.Gather, time.Millisecond)
	}
	setDefault(&c.SyncWorkers, 64)
	setDefault(&c.SyncWithin, 1800*time.Millisecond)
	setDefault(&c.Attempts, 8)
	setDefault(&c.RetryBase, time.Second)
	setDefault(&c.RetryMax, 5*time.Minute)
	setDefault(&c.NoRoute, NoRouteDone)
	setDefault(&c.SendAttempts, 5)
	if len(c.SendWaits) == 0 {
		c.SendWaits = []time.Duration{5 * time.Second, 25 * time.Second, 2 * time.Minute, 10 * time.Minute}
	}
	setDefault(&c.SendTTL, 24*time.Hour)
	setDefault(&c.Uncertain, UncertainResend)
	setDefault(&c.DedupWindow, 24*time.Hour)
	setDefault(&c.DedupIDs, 200_000)
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}

func (q Queue) or(d Queue) Queue {
	setDefault(&q.Workers, d.Workers)
	setDefault(&q.PerKey, d.PerKey)
	setDefault(&q.Pending, d.Pending)
	setDefault(&q.Timeout, d.Timeout)
	return q
}

func setDefault[T comparable](p *T, d T) {
	var zero T
	if *p == zero {
		*p = d
	}
}

func (c Config) validate() error {
	switch {
	case c.Handler == nil:
		return errors.New("relay: Handler is missing")
	case c.Store == nil:
		return errors.New("relay: Store is missing")
	case c.SyncWorkers < 0 || c.SyncWithin < 0:
		return errors.New("relay: SyncWorkers and SyncWithin must not be negative")
	case c.Attempts < 0 || c.SendAttempts < 0:
		return errors.New("relay: Attempts and SendAttempts must not be negative")
	case c.RetryBase < 0 || c.RetryMax < c.RetryBase:
		return fmt.Errorf("relay: RetryMax %v is below RetryBase %v", c.RetryMax, c.RetryBase)
	case c.SendTTL < 0:
		return errors.New("relay: SendTTL must not be negative")
	case c.NoRoute != NoRouteDone && c.NoRoute != NoRouteDead:
		return fmt.Errorf("relay: NoRoute %q is neither %q nor %q", c.NoRoute, NoRouteDone, NoRouteDead)
	case c.Uncertain != UncertainResend && c.Uncertain != UncertainDiscard:
		return fmt.Errorf("relay: Uncertain %q is neither %q nor %q",
			c.Uncertain, UncertainResend, UncertainDiscard)
	}
	return nil
}
