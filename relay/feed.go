package relay

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/penstock-io/penstock/dispatch"
	"github.com/penstock-io/penstock/store"
)

// feed brings items to a dispatcher in store order per key. An item that finds
// no room stays in the store; the feed remembers its number (8 bytes) and loads
// it when there is room. While a key has such items, later ones line up behind
// them.
//
// An item is admitted from the goroutine that commits, so admit never reads the
// store; refill does, on the relay's own goroutine.
type feed[K comparable, T any] struct {
	// immutable
	enqueue func(K, T) error
	load    func(context.Context, store.Seq) (T, error)
	wake    func()

	// spilled counts the numbers held here, late ones included. Written under mu,
	// read by anyone.
	spilled atomic.Int64

	mu sync.Mutex // guards the following fields
	// waiting has an entry for each key with items that are only in the store.
	waiting map[K]*spill[K]
	// ready lists the keys that may find room now; each at most once.
	ready []*spill[K]
	// seeding is set while older items are still being listed; what is admitted
	// meanwhile waits in late, because an older item of its key may yet come.
	seeding bool
	late    []lateItem[K]
	// gone takes what still comes once the feed is closed; nil until then, and
	// never changed after.
	gone func(K, store.Seq)
}

type spill[K comparable] struct {
	key    K
	seqs   []store.Seq
	listed bool // in ready
}

type lateItem[K comparable] struct {
	key K
	seq store.Seq
}

func newFeed[K comparable, T any](
	enqueue func(K, T) error, load func(context.Context, store.Seq) (T, error), wake func(),
) *feed[K, T] {
	return &feed[K, T]{enqueue: enqueue, load: load, wake: wake}
}

// admit takes an item that has just been committed.
func (f *feed[K, T]) admit(k K, seq store.Seq, item T) {
	if !f.open(k, seq) {
		return
	}
	defer f.mu.Unlock()
	if f.seeding {
		f.late = append(f.late, lateItem[K]{k, seq})
		f.spilled.Add(1)
		return
	}
	if s := f.waiting[k]; s != nil {
		s.seqs = append(s.seqs, seq)
		f.spilled.Add(1)
		return
	}
	if err := f.enqueue(k, item); err != nil {
		f.spillLocked(k, seq, err)
	}
}

// admitStored takes an item that has just been committed and is only in the store.
func (f *feed[K, T]) admitStored(k K, seq store.Seq) {
	if !f.open(k, seq) {
		return
	}
	defer f.mu.Unlock()
	if f.seeding {
		f.late = append(f.late, lateItem[K]{k, seq})
		f.spilled.Add(1)
		return
	}
	f.spillLocked(k, seq, nil)
}

// seed takes the number of an older item.
func (f *feed[K, T]) seed(k K, seq store.Seq) {
	if !f.open(k, seq) {
		return
	}
	f.spillLocked(k, seq, nil)
	f.mu.Unlock()
}

// open takes the lock for an item that comes. If the feed is closed, the item goes
// where all of them go and the lock is not held.
func (f *feed[K, T]) open(k K, seq store.Seq) bool {
	f.mu.Lock()
	if f.gone == nil {
		return true
	}
	f.mu.Unlock()
	f.gone(k, seq)
	return false
}

// close gives the numbers of all items that wait to gone, which also gets those
// that still come. It is called without locks, once.
func (f *feed[K, T]) close(gone func(K, store.Seq)) {
	f.mu.Lock()
	left := f.late
	for _, s := range f.waiting {
		for _, seq := range s.seqs {
			left = append(left, lateItem[K]{s.key, seq})
		}
	}
	f.gone, f.late, f.waiting, f.ready = gone, nil, nil, nil
	f.spilled.Store(0)
	f.mu.Unlock()
	for _, l := range left {
		gone(l.key, l.seq)
	}
}

// beginSeeding makes admit wait for endSeeding.
func (f *feed[K, T]) beginSeeding() {
	f.mu.Lock()
	f.seeding = true
	f.mu.Unlock()
}

// endSeeding lines up what was admitted meanwhile.
func (f *feed[K, T]) endSeeding() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.seeding = false
	for _, l := range f.late {
		f.spilled.Add(-1)
		f.spillLocked(l.key, l.seq, nil)
	}
	f.late = nil
}

// spillLocked remembers seq. A key that is itself full gets its turn when one of
// its own items ends; any other gets it as soon as there is room at all.
func (f *feed[K, T]) spillLocked(k K, seq store.Seq, why error) {
	s := f.waiting[k]
	if s == nil {
		s = &spill[K]{key: k}
		if f.waiting == nil {
			f.waiting = make(map[K]*spill[K])
		}
		f.waiting[k] = s
	}
	s.seqs = append(s.seqs, seq)
	f.spilled.Add(1)
	if !errors.Is(why, dispatch.ErrKeyFull) {
		f.listLocked(s)
		f.wake()
	}
}

func (f *feed[K, T]) listLocked(s *spill[K]) {
	if !s.listed {
		s.listed = true
		f.ready = append(f.ready, s)
	}
}

// freed tells that an item of k has left the dispatcher.
func (f *feed[K, T]) freed(k K) {
	if f.spilled.Load() == 0 {
		return
	}
	f.mu.Lock()
	if s := f.waiting[k]; s != nil {
		f.listLocked(s)
	}
	ready := len(f.ready) > 0
	f.mu.Unlock()
	if ready {
		f.wake()
	}
}

// refill loads and enqueues what finds room. It is called by one goroutine at a
// time. An error is the store's; the items stay listed.
func (f *feed[K, T]) refill(ctx context.Context) error {
	for ctx.Err() == nil {
		s, seq := f.next()
		if s == nil {
			return nil
		}
		item, err := f.load(ctx, seq)
		switch {
		case errors.Is(err, store.ErrNotFound):
			f.shift(s)
			continue
		case err != nil:
			return err
		}
		if !f.place(s, item) {
			return nil
		}
	}
	return ctx.Err()
}

// next gives the first ready key and its oldest number.
func (f *feed[K, T]) next() (*spill[K], store.Seq) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.ready) == 0 {
		return nil, 0
	}
	return f.ready[0], f.ready[0].seqs[0]
}

// place enqueues the oldest item of s; it returns false when there is no room at
// all.
func (f *feed[K, T]) place(s *spill[K], item T) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.gone != nil {
		return false
	}
	err := f.enqueue(s.key, item)
	switch {
	case err == nil:
		f.shiftLocked(s)
		return true
	case errors.Is(err, dispatch.ErrKeyFull):
		f.unlistLocked(s)
		return true
	default:
		// The whole is full, or this key has more than its share: the next key
		// goes first when there is room again.
		f.unlistLocked(s)
		f.listLocked(s)
		return false
	}
}

func (f *feed[K, T]) shift(s *spill[K]) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.gone == nil {
		f.shiftLocked(s)
	}
}

// shiftLocked forgets the oldest number of s, the first ready key, and lets the
// next key have its turn.
func (f *feed[K, T]) shiftLocked(s *spill[K]) {
	s.seqs = s.seqs[1:]
	f.spilled.Add(-1)
	f.unlistLocked(s)
	if len(s.seqs) == 0 {
		delete(f.waiting, s.key)
		return
	}
	f.listLocked(s)
}

func (f *feed[K, T]) unlistLocked(s *spill[K]) {
	s.listed = false
	f.ready[0] = nil
	f.ready = f.ready[1:]
	if len(f.ready) == 0 {
		f.ready = nil
	}
}
