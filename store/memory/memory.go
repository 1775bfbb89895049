package memory

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/penstock-io/penstock/message"
	"github.com/penstock-io/penstock/store"
)

// itemCost is the allowance for an item beside its payload.
const itemCost = 512

// Store keeps everything in memory. Make one with New.
type Store struct {
	// immutable:
	cfg   Config
	start time.Time // ages of ids are kept as distances from it

	mu sync.RWMutex // held for writing through a whole Commit
	// guarded by mu:
	inbox    series[inboxItem]
	outbox   series[outboxItem]
	dead     series[letter] // by burial
	received ids            // of the inbox
	replied  ids            // of the outbox
	counts   store.Counts   // Inbox and Outbox are the lengths of the series
	bytes    int64          // of the items
	buried   store.Seq      // the number of the last burial
	deadSize int64
	dropped  uint64
	leases   map[string]store.Lease // given back ones too, for their fences
	closed   bool
}

var _ interface {
	store.Store
	store.Admin
	store.Leases
} = (*Store)(nil)

type inboxItem struct {
	message  *message.Inbound
	attempts int
	added    int64 // an age
	at       time.Time
	reason   string
}

type outboxItem struct {
	reply    *message.Outbound
	state    store.State
	attempts int
	added    int64 // an age
	at       time.Time
	reason   string
}

// letter is a dead letter and where it is to be counted.
type letter struct {
	store.Dead
	size int64
}

// Stats are figures that only this store has.
type Stats struct {
	Bytes, DeadBytes int64  // of items and of dead letters, with allowances
	IDs              int    // ids that are remembered
	ForgottenIDs     uint64 // ids forgotten inside the window, to keep to MaxIDs
	DroppedDead      uint64 // dead letters that made room for others
}

// New returns an empty store, or an error that names the wrong field.
func New(cfg Config) (*Store, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	s := &Store{cfg: cfg, start: time.Now()}
	s.received = newIDs(cfg, func(seq store.Seq) bool { return s.inbox.get(seq) != nil })
	s.replied = newIDs(cfg, func(seq store.Seq) bool { return s.outbox.get(seq) != nil })
	return s, nil
}

// Commit implements store.Store.
func (s *Store) Commit(ctx context.Context, ops []store.Op) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("memory: commit: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return store.ErrClosed
	}
	if l, fenced := store.FenceOf(ctx); fenced && !s.ownsLocked(l) {
		return fmt.Errorf("memory: commit: %w", store.ErrFenced)
	}
	now := time.Now()
	for _, op := range ops {
		store.Fail(op, s.applyLocked(op, now))
	}
	return nil
}

func (s *Store) applyLocked(op store.Op, now time.Time) error {
	switch op := op.(type) {
	case *store.Append:
		return s.appendLocked(op, now)
	case *store.Finish:
		return s.finishLocked(op, now)
	case *store.Postpone:
		return s.postponeLocked(op)
	case *store.Bury:
		return s.buryLocked(op, now)
	case *store.Add:
		return s.addLocked(op, now)
	case *store.Begin:
		return s.beginLocked(op)
	case *store.Sent:
		return s.sentLocked(op)
	case *store.Again:
		return s.againLocked(op)
	case *store.Discard:
		return s.discardLocked(op, now)
	case *store.Requeue:
		return s.requeueLocked(op, now)
	case *store.Purge:
		return s.purgeLocked(op)
	}
	return fmt.Errorf("%w: %T is not known", store.ErrInvalid, op)
}

// fullLocked tells whether n more items of so many bytes have no room.
func (s *Store) fullLocked(n int, bytes int64) bool {
	return s.inbox.len+s.outbox.len+n > s.cfg.MaxItems || s.bytes+bytes > s.cfg.MaxBytes
}

// age is the time of an id as it is kept.
func (s *Store) age(now time.Time) int64 { return int64(now.Sub(s.start)) }

// Stats gives the figures of the store. Any number of goroutines may call it.
func (s *Store) Stats() Stats {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return Stats{
		Bytes:        s.bytes,
		DeadBytes:    s.deadSize,
		IDs:          len(s.received.items) + len(s.replied.items),
		ForgottenIDs: s.received.forgotten + s.replied.forgotten,
		DroppedDead:  s.dropped,
	}
}

// Close implements store.Store. It drops everything.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	s.inbox, s.outbox, s.dead = series[inboxItem]{}, series[outboxItem]{}, series[letter]{}
	s.received, s.replied, s.leases = ids{}, ids{}, nil
	return nil
}
