package relay

import (
	"context"
	"errors"
	"math"
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
	load    func(context.Context, []store.Seq) (map[store.Seq]T, error)
	wake    func()

	// spilled counts the numbers held here, late ones included. Written under mu,
	// read by anyone.
	spilled atomic.Int64

	mu sync.Mutex // guards the following fields
	// room is how many items the dispatcher may have room for: as many as have left
	// it since it was full, and plenty if it never was. What is admitted besides
	// makes it less; then a few items are read for nothing.
	room int
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
	room   int  // as in feed, for this key
}

type lateItem[K comparable] struct {
	key K
	seq store.Seq
}

func newFeed[K comparable, T any](
	enqueue func(K, T) error,
	load func(context.Context, []store.Seq) (map[store.Seq]T, error),
	wake func(),
) *feed[K, T] {
	return &feed[K, T]{enqueue: enqueue, load: load, wake: wake, room: plenty}
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
		s = &spill[K]{key: k, room: plenty}
		if f.waiting == nil {
			f.waiting = make(map[K]*spill[K])
		}
		f.waiting[k] = s
	}
	s.seqs = append(s.seqs, seq)
	f.spilled.Add(1)
	f.noRoomLocked(s, why)
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

// noRoomLocked notes why an item of s was refused, if it was.
func (f *feed[K, T]) noRoomLocked(s *spill[K], why error) {
	switch {
	case errors.Is(why, dispatch.ErrKeyFull):
		s.room = 0
	case why != nil:
		f.room = 0
	}
}

// freed tells that an item of k has left the dispatcher.
func (f *feed[K, T]) freed(k K) {
	if f.spilled.Load() == 0 {
		return
	}
	f.mu.Lock()
	f.room++
	if s := f.waiting[k]; s != nil {
		s.room++
		f.listLocked(s)
	}
	ready := len(f.ready) > 0
	f.mu.Unlock()
	if ready {
		f.wake()
	}
}

// refillBatch is the most items that one read of the store brings.
const refillBatch = 128

// plenty is more room than any batch needs.
const plenty = math.MaxInt32

// refill loads and enqueues what finds room, many items with one read. It is called
// by one goroutine at a time, and tells whether it read anything. An error is the
// store's; the items stay listed.
func (f *feed[K, T]) refill(ctx context.Context) (read bool, err error) {
	var b batch[K]
	for ctx.Err() == nil {
		if f.next(&b); len(b.seqs) == 0 {
			return read, nil
		}
		read = true
		items, err := f.load(ctx, b.seqs)
		if err != nil {
			return read, err
		}
		seqs := b.seqs
		for _, part := range b.parts {
			if !f.place(part.s, seqs[:part.n], items) {
				return read, nil
			}
			seqs = seqs[part.n:]
		}
	}
	return read, ctx.Err()
}

// batch lists the oldest numbers of some keys.
type batch[K comparable] struct {
	parts []part[K]
	seqs  []store.Seq // of all parts, one after the other
}

type part[K comparable] struct {
	s *spill[K]
	n int
}

// next gives the oldest numbers of the first ready keys, as many as there may be
// room for and one at least. The keys share it evenly.
func (f *feed[K, T]) next(b *batch[K]) {
	f.mu.Lock()
	defer f.mu.Unlock()
	b.parts, b.seqs = b.parts[:0], b.seqs[:0]
	if len(f.ready) == 0 {
		return
	}
	left := min(max(f.room, 1), refillBatch)
	each := max(left/len(f.ready), 1)
	for _, s := range f.ready[:min(left, len(f.ready))] {
		n := min(each, len(s.seqs), max(s.room, 1))
		b.parts = append(b.parts, part[K]{s, n})
		b.seqs = append(b.seqs, s.seqs[:n]...)
	}
}

// place enqueues the oldest items of s, the first ready key, whose turn ends then.
// One that is not in the store any more is forgotten. It returns false when there
// is no room at all.
func (f *feed[K, T]) place(s *spill[K], seqs []store.Seq, items map[store.Seq]T) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.gone != nil {
		return false
	}
	var err error
	for _, seq := range seqs {
		if item, found := items[seq]; found {
			if err = f.enqueue(s.key, item); err != nil {
				break
			}
			f.room, s.room = max(f.room-1, 0), max(s.room-1, 0)
		}
		s.seqs = s.seqs[1:]
		f.spilled.Add(-1)
	}
	f.noRoomLocked(s, err)
	f.unlistLocked(s)
	switch {
	case len(s.seqs) == 0:
		delete(f.waiting, s.key)
	case !errors.Is(err, dispatch.ErrKeyFull):
		f.listLocked(s)
	}
	// The whole is full, or this key has more than its share: the next key goes
	// first when there is room again.
	return err == nil || errors.Is(err, dispatch.ErrKeyFull)
}

func (f *feed[K, T]) unlistLocked(s *spill[K]) {
	s.listed = false
	f.ready[0] = nil
	f.ready = f.ready[1:]
	if len(f.ready) == 0 {
		f.ready = nil
	}
}
