package relay

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/penstock-io/penstock/message"
	"github.com/penstock-io/penstock/router"
	"github.com/penstock-io/penstock/store"
)

// OfflineConfig configures an [Offline]. Store, which has to be a store.Admin too,
// is required.
type OfflineConfig struct {
	Store store.Store
	// Senders cut and address the replies of each installation. They are not asked
	// to send.
	Senders map[message.InstallationID]Sender
	// Route gives the handler of a route by its name, nil if there is none.
	// Default: there are none.
	Route func(name string) router.Handler
	// Timeout bounds a handler. Default 120 s.
	Timeout time.Duration
	// Logger: default discards.
	Logger *slog.Logger
}

// Offline does to the store of a relay that does not run what a running [Relay]
// does to its own. It starts nothing, sends nothing, and has to be the only one
// that commits to the store. All methods may be called from any number of
// goroutines; one commit is made at a time.
type Offline struct {
	// immutable
	cfg   OfflineConfig
	admin store.Admin

	mu sync.Mutex // held through a commit
}

// NewOffline returns an Offline, or an error that names the wrong field.
func NewOffline(cfg OfflineConfig) (*Offline, error) {
	setDefault(&cfg.Timeout, 120*time.Second)
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.Store == nil {
		return nil, errors.New("relay: Store is missing")
	}
	admin, ok := cfg.Store.(store.Admin)
	if !ok {
		return nil, ErrNoAdmin
	}
	return &Offline{cfg: cfg, admin: admin}, nil
}

// Running tells that nothing is with a handler: a Replay that is, is waited for.
func (f *Offline) Running() map[store.Seq]time.Time { return nil }

// Requeue gives a dead letter another chance, which it gets when a relay runs on
// the store again. An error leaves the letter as it is.
func (f *Offline) Requeue(ctx context.Context, box store.Box, seq store.Seq) (store.Seq, error) {
	op := &store.Requeue{Box: box, Seq: seq}
	if err := f.commit(ctx, op); err != nil {
		return 0, fmt.Errorf("requeue: %w", err)
	}
	return op.NewSeq, nil
}

// Purge removes an item for good. An error leaves it as it is.
func (f *Offline) Purge(ctx context.Context, box store.Box, seq store.Seq) error {
	if err := f.commit(ctx, &store.Purge{Box: box, Seq: seq}); err != nil {
		return fmt.Errorf("purge: %w", err)
	}
	return nil
}

// Replay runs a pending message or a dead letter through the route of that name,
// here and now, and stores what came of it. It blocks until the handler has
// returned. When the handler fails, the message stays where it is. A crash after
// the handler's return may leave the message pending, to be handled again.
func (f *Offline) Replay(
	ctx context.Context, box store.Box, seq store.Seq, route string,
) (Replayed, error) {
	if box != store.BoxInbox && box != store.BoxDeadIn {
		return Replayed{}, fmt.Errorf("replay from %s: %w", box, store.ErrInvalid)
	}
	h := f.route(route)
	if h == nil {
		return Replayed{}, fmt.Errorf("%w: %q", ErrNoRoute, route)
	}
	item, err := f.admin.Show(ctx, box, seq)
	if err != nil {
		return Replayed{}, fmt.Errorf("replay: %w", err)
	}
	s, err := f.sender(item.Installation)
	if err != nil {
		return Replayed{}, fmt.Errorf("replay: %w", err)
	}
	res, err := f.handle(ctx, h, item)
	if err != nil {
		return Replayed{}, &HandlerError{Err: err}
	}
	return f.finish(ctx, item, outbound(s, f.cfg.Logger, item.Message, res.Replies))
}

// HandlerError is the failure of a handler in a replay.
type HandlerError struct{ Err error }

// Error tells the cause.
func (e *HandlerError) Error() string { return fmt.Sprintf("handler: %v", e.Err) }

// Unwrap gives the cause.
func (e *HandlerError) Unwrap() error { return e.Err }

// handle runs a handler within the time that it has.
func (f *Offline) handle(
	ctx context.Context, h router.Handler, item store.Item,
) (router.Result, error) {
	ctx, cancel := context.WithTimeout(ctx, f.cfg.Timeout)
	defer cancel()
	m := *item.Message
	m.Attempt = item.Attempts + 1
	return handle(ctx, h, &m)
}

// finish stores what a handler answered. The end of ctx does not stop it, since
// the handler has acted.
func (f *Offline) finish(
	ctx context.Context, item store.Item, replies []message.Outbound,
) (Replayed, error) {
	ctx = context.WithoutCancel(ctx)
	seq := item.Seq
	if item.Box.Dead() {
		var err error
		if seq, err = f.Requeue(ctx, item.Box, seq); err != nil {
			return Replayed{}, fmt.Errorf("replay: %w", err)
		}
	}
	if err := f.commit(ctx, &store.Finish{Seq: seq, Replies: replies}); err != nil {
		return Replayed{Seq: seq}, fmt.Errorf("replay: %w", err)
	}
	return Replayed{Seq: seq, Done: true, Replies: len(replies)}, nil
}

// Send puts a reply into the outbox, as [Lane.Send] does. It is sent when a relay
// runs on the store again; Wait on the result says ErrClosed at once.
func (f *Offline) Send(ctx context.Context, o message.Outbound) (*Sending, error) {
	s, err := f.sender(o.Installation)
	if err != nil {
		return nil, fmt.Errorf("send: %w", err)
	}
	id, parts := split(s, o)
	sending := &Sending{id: id, done: make(chan struct{}), left: 1}
	sending.ended(message.Receipt{}, ErrClosed)

	f.mu.Lock()
	defer f.mu.Unlock()
	before, err := f.cfg.Store.Counts(ctx)
	if err != nil {
		return nil, fmt.Errorf("send: %w", err)
	}
	op := &store.Add{Replies: parts}
	if err := f.commitLocked(ctx, op); err != nil {
		return nil, fmt.Errorf("send: %w", err)
	}
	for _, seq := range op.Seqs {
		if seq > before.LastOutbox {
			return sending, nil
		}
	}
	return nil, fmt.Errorf("send: %w", ErrKnown)
}

func (f *Offline) route(name string) router.Handler {
	if f.cfg.Route == nil {
		return nil
	}
	return f.cfg.Route(name)
}

func (f *Offline) sender(id message.InstallationID) (Sender, error) {
	if s := f.cfg.Senders[id]; s != nil {
		return s, nil
	}
	return nil, fmt.Errorf("%w: %q", ErrNoInstallation, id)
}

func (f *Offline) commit(ctx context.Context, op store.Op) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.commitLocked(ctx, op)
}

func (f *Offline) commitLocked(ctx context.Context, op store.Op) error {
	if err := f.cfg.Store.Commit(ctx, []store.Op{op}); err != nil {
		return err
	}
	return op.Result()
}
