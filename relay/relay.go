package relay

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"github.com/penstock-io/penstock/dedup"
	"github.com/penstock-io/penstock/dispatch"
	"github.com/penstock-io/penstock/message"
	"github.com/penstock-io/penstock/store"
)

// ErrClosed means that the relay or lane takes nothing any more.
var ErrClosed = errors.New("relay: closed")

// claimKey is the dedup key: the same id in two installations is two messages.
type claimKey struct {
	installation message.InstallationID
	id           message.ID
}

// convKey is the key of the outbox.
type convKey struct {
	installation message.InstallationID
	conversation message.ConversationID
}

// Relay is the pipeline. Make it with [New], serve it with [Relay.Run], give it
// installations with [Relay.Attach], and end it with [Relay.Shutdown]. All methods
// may be called from any number of goroutines.
type Relay struct {
	// immutable
	cfg     Config
	admin   store.Admin // nil if the store has none
	writer  *store.Writer
	seen    *dedup.Window[claimKey]
	count   *counters
	sync    *dispatch.Dispatcher[convKey, *task]
	answers answers // to what ran in sync
	out     *dispatch.Dispatcher[convKey, *outTask]
	// outFeed brings replies to out.
	outFeed *feed[convKey, *outTask]
	// wakeup tells the refilling goroutine to look again; never closed.
	wakeup chan struct{}
	// stopWriter ends Run's goroutines; set by New, called by Shutdown.
	stopWriter context.CancelFunc
	writerCtx  context.Context // ends with stopWriter; it spans Run and Shutdown
	served     chan struct{}   // closed by Run when the writer has ended
	stopped    chan struct{}   // closed by the stop when report is set
	report     Report          // of the stop; owned by it until stopped is closed

	// interrupted is what Config.Interrupted said, and lastOld the highest inbox
	// number of earlier runs; set by Run before it starts anything.
	interrupted bool
	lastOld     store.Seq
	// lastOut is the highest outbox number seen; owned by the writer's goroutine.
	lastOut store.Seq
	// watchers is the number of entries in watched.
	watchers atomic.Int64
	// purgedIn and purgedOut are the highest numbers that were ever purged.
	purgedIn, purgedOut atomic.Int64
	// stale is set when something was purged that may be waiting for its time.
	stale atomic.Bool
	// choices is the number of entries in chosen.
	choices atomic.Int64
	// leaving is set when a stop has begun and the store keeps what has not started.
	leaving atomic.Bool

	mu sync.Mutex // guards the following fields
	// watched has who waits for which outbox item.
	watched map[store.Seq]*Sending
	// chosen has the routes of messages that are replayed.
	chosen   map[store.Seq]string
	lanes    map[message.InstallationID]*Lane
	orphans  map[message.InstallationID][]store.Head // items without a lane
	stopping bool
	running  bool // Run was called
	seeded   bool // what an earlier run left has been listed
	// unfinished lists what a stop has cut off.
	unfinished []Unfinished
	// begun has the messages that a run which was interrupted may have handled: one
	// for each conversation that it left something of.
	begun map[store.Seq]struct{}
	// broken has the group of parts that a failed part belongs to, by conversation.
	broken map[convKey]message.ID
	// chats has the send limiters of conversations that sent lately.
	chats map[convKey]*rate.Limiter
}

// New makes a relay. It starts nothing.
func New(cfg Config) (*Relay, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	r := &Relay{
		cfg:     cfg,
		count:   newCounters(),
		wakeup:  make(chan struct{}, 1),
		served:  make(chan struct{}),
		stopped: make(chan struct{}),
		lanes:   make(map[message.InstallationID]*Lane),
		orphans: make(map[message.InstallationID][]store.Head),
		watched: make(map[store.Seq]*Sending),
		chosen:  make(map[store.Seq]string),
		begun:   make(map[store.Seq]struct{}),
		broken:  make(map[convKey]message.ID),
		chats:   make(map[convKey]*rate.Limiter),
	}
	r.writerCtx, r.stopWriter = context.WithCancel(context.Background())
	return r, r.build()
}

func (r *Relay) build() (err error) {
	cfg := r.cfg
	if r.admin = cfg.Admin; r.admin == nil {
		r.admin, _ = cfg.Store.(store.Admin)
	}
	if r.writer, err = store.NewWriter(cfg.Store, cfg.Writer); err != nil {
		return fmt.Errorf("relay: %w", err)
	}
	r.seen, err = dedup.New[claimKey](dedup.Config{Window: cfg.DedupWindow, Max: cfg.DedupIDs})
	if err != nil {
		return fmt.Errorf("relay: %w", err)
	}
	r.sync, err = dispatch.New(dispatch.Config[convKey, *task]{
		Run:     r.runSync,
		Workers: cfg.SyncWorkers, PerKey: cfg.Inbound.PerKey, Pending: cfg.Inbound.Pending,
		Timeout: cfg.Inbound.Timeout,
		Hooks: dispatch.Hooks[convKey, *task]{
			OnDone: func(t *dispatch.Task[convKey, *task], res dispatch.Result) {
				r.cutOff(res, t.Job)
			},
		},
	})
	if err != nil {
		return fmt.Errorf("relay: synchronous queue: %w", err)
	}
	r.out, err = dispatch.New(dispatch.Config[convKey, *outTask]{
		Run:     r.runSend,
		Workers: cfg.Outbound.Workers, PerKey: cfg.Outbound.PerKey,
		Pending: cfg.Outbound.Pending, Timeout: cfg.Outbound.Timeout,
		Hooks: dispatch.Hooks[convKey, *outTask]{
			OnFreed: func(k convKey) { r.outFeed.freed(k) },
			OnDone: func(t *dispatch.Task[convKey, *outTask], res dispatch.Result) {
				r.cutOff(res, t.Job)
			},
		},
	})
	if err != nil {
		return fmt.Errorf("relay: outbound queue: %w", err)
	}
	r.outFeed = newFeed(r.out.Enqueue, r.loadOut, r.wake)
	r.outFeed.beginSeeding()
	return nil
}

// Attach adds an installation and returns the lane that takes its deliveries.
// Items of it that an earlier run or an earlier lane left in the store are handled
// first.
func (r *Relay) Attach(id message.InstallationID, s Sender) (*Lane, error) {
	l := &Lane{relay: r, id: id, log: r.cfg.Logger.With("installation", string(id))}
	l.sender.Store(&s)
	l.limit = limiter(r.cfg.InstallationRate)
	q := r.cfg.Inbound
	var err error
	l.queue, err = dispatch.New(dispatch.Config[message.ConversationID, *task]{
		Run:     l.run,
		Workers: q.Workers, PerKey: q.PerKey, Pending: q.Pending, Timeout: q.Timeout,
		Hooks: dispatch.Hooks[message.ConversationID, *task]{
			OnFreed: func(k message.ConversationID) { l.feed.freed(k) },
			OnDone:  l.ended,
			OnStuck: l.stuck,
		},
	})
	if err != nil {
		return nil, fmt.Errorf("relay: queue of %s: %w", id, err)
	}
	l.feed = newFeed(l.queue.Enqueue, l.load, r.wake)
	if err := r.addLane(l); err != nil {
		return nil, err
	}
	r.out.Wake() // replies that waited for the installation go at once
	return l, nil
}

func (r *Relay) addLane(l *Lane) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.stopping {
		return ErrClosed
	}
	if r.lanes[l.id] != nil {
		return fmt.Errorf("relay: installation %q is attached already", l.id)
	}
	r.lanes[l.id] = l
	// A letter requeued while older items were being listed may stand before them.
	slices.SortFunc(r.orphans[l.id], func(a, b store.Head) int { return cmp.Compare(a.Seq, b.Seq) })
	for _, h := range r.orphans[l.id] {
		l.feed.seed(h.Conversation, h.Seq)
	}
	delete(r.orphans, l.id)
	if !r.seeded {
		l.feed.beginSeeding()
	}
	return nil
}

func (r *Relay) lane(id message.InstallationID) *Lane {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.lanes[id]
}

func (r *Relay) allLanes() []*Lane {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := make([]*Lane, 0, len(r.lanes))
	for _, l := range r.lanes {
		all = append(all, l)
	}
	return all
}

func (r *Relay) wake() {
	select {
	case r.wakeup <- struct{}{}:
	default:
	}
}

// backoff is the wait after a handler's n-th failed attempt, n from 1: doubling,
// between half of it and the whole.
func (r *Relay) backoff(n int) time.Duration {
	d := r.cfg.RetryBase
	for i := 1; i < n && d < r.cfg.RetryMax; i++ {
		d *= 2
	}
	return jitter(min(d, r.cfg.RetryMax))
}

// jitter spreads d over its upper half.
func jitter(d time.Duration) time.Duration {
	if d <= 1 {
		return d
	}
	return d/2 + rand.N(d/2+1) //nolint:gosec // spreading load needs no secrecy
}

func limiter(c Rate) *rate.Limiter {
	if c.PerSecond <= 0 {
		return nil
	}
	return rate.NewLimiter(rate.Limit(c.PerSecond), max(1, c.Burst))
}
