package wire

import (
	"context"
	"errors"
	"slices"
	"sync"
)

// Class tells which budget pays for a frame.
type Class uint8

// Classes of bytes. Control bytes are apart, so that no amount of content can
// keep a socket from proving that it lives.
const (
	ContentBytes Class = iota
	ControlBytes
	classes
)

// ErrBudget means that the bytes shared by all sockets, or the peer's share of
// them, are used up.
var ErrBudget = errors.New("byte budget is used up")

// BudgetConfig sets the bounds of a budget. The zero value works.
type BudgetConfig struct {
	// Content and Control bound the bytes of all sockets together. Defaults
	// 512 MiB and 64 MiB.
	Content, Control int
	// PeerContent and PeerControl bound what one peer holds. Default, and at
	// most: a quarter of the whole.
	PeerContent, PeerControl int
	// Encoders bounds how many frames are encoded at the same time, which bounds
	// the memory that is not reserved yet. Default 32.
	Encoders int
}

func (c BudgetConfig) withDefaults() BudgetConfig {
	c.Content = orDefault(c.Content, 512<<20)
	c.Control = orDefault(c.Control, 64<<20)
	c.PeerContent = min(orDefault(c.PeerContent, c.Content/4), c.Content/4)
	c.PeerControl = min(orDefault(c.PeerControl, c.Control/4), c.Control/4)
	c.Encoders = orDefault(c.Encoders, 32)
	return c
}

func orDefault(n, def int) int {
	if n <= 0 {
		return def
	}
	return n
}

// Budget is the memory that many sockets share. All methods may be called from
// any number of goroutines.
//
// A peer may hold its share, and never more than it leaves free. So however many
// peers are slow, a quiet one finds as much room as the greediest has taken.
type Budget struct {
	// encoders has a token for each frame that is being encoded. It is never
	// closed.
	encoders chan struct{}

	mu sync.Mutex
	// guarded by mu
	pools   [classes]pool
	waiters []*waiter // in the order they came
}

// pool is the bytes of one class.
type pool struct{ limit, share, used int }

// waiter is a reservation that waits for room.
type waiter struct {
	p     *Peer
	class Class
	n     int
	// granted is closed, under the budget's mutex, when the bytes are reserved.
	granted chan struct{}
}

// NewBudget makes a budget of which nothing is used.
func NewBudget(cfg BudgetConfig) *Budget {
	cfg = cfg.withDefaults()
	b := &Budget{encoders: make(chan struct{}, cfg.Encoders)}
	b.pools[ContentBytes] = pool{limit: cfg.Content, share: cfg.PeerContent}
	b.pools[ControlBytes] = pool{limit: cfg.Control, share: cfg.PeerControl}
	return b
}

// Peer opens an account for one tenant, for the sockets of which it pays. It
// needs no closing.
func (b *Budget) Peer() *Peer { return &Peer{b: b} }

// Usage tells what is reserved.
type Usage struct {
	Content, Control int
	// Waiting is how many senders wait for bytes.
	Waiting int
}

// Usage is a snapshot for all peers together.
func (b *Budget) Usage() Usage {
	b.mu.Lock()
	defer b.mu.Unlock()
	return Usage{b.pools[ContentBytes].used, b.pools[ControlBytes].used, len(b.waiters)}
}

// Peer is one tenant's account with a budget. All methods may be called from any
// number of goroutines; on a nil Peer nothing is ever refused.
type Peer struct {
	// immutable
	b *Budget

	// guarded by b.mu
	used [classes]int
}

// Used tells what the peer holds of a class.
func (p *Peer) Used(c Class) int {
	if p == nil {
		return 0
	}
	p.b.mu.Lock()
	defer p.b.mu.Unlock()
	return p.used[c]
}

// try reserves n bytes if they are there.
func (p *Peer) try(c Class, n int) error {
	if p == nil || n == 0 {
		return nil
	}
	p.b.mu.Lock()
	defer p.b.mu.Unlock()
	return p.tryLocked(c, n)
}

func (p *Peer) tryLocked(c Class, n int) error {
	pool := &p.b.pools[c]
	switch {
	case n > pool.share:
		return ErrTooLarge
	case p.used[c]+n > min(pool.share, pool.limit-pool.used-n):
		return ErrBudget
	}
	pool.used += n
	p.used[c] += n
	return nil
}

// reserve waits for n bytes until ctx ends or gone is closed. Bytes that come at
// the same instant are taken.
func (p *Peer) reserve(ctx context.Context, gone <-chan struct{}, c Class, n int) error {
	if p == nil || n == 0 {
		return nil
	}
	w, err := p.join(c, n)
	if w == nil {
		return err
	}
	select {
	case <-w.granted:
		return nil
	case <-gone:
		err = ErrClosed
	case <-ctx.Done():
		err = ctx.Err()
	}
	return p.b.leave(w, err)
}

// join reserves at once or stands in line.
func (p *Peer) join(c Class, n int) (*waiter, error) {
	p.b.mu.Lock()
	defer p.b.mu.Unlock()
	if err := p.tryLocked(c, n); !errors.Is(err, ErrBudget) {
		return nil, err
	}
	w := &waiter{p: p, class: c, n: n, granted: make(chan struct{})}
	p.b.waiters = append(p.b.waiters, w)
	return w, nil
}

// leave ends a wait with err, unless the bytes have been granted meanwhile.
func (b *Budget) leave(w *waiter, err error) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	i := slices.Index(b.waiters, w)
	if i < 0 {
		return nil
	}
	b.waiters = slices.Delete(b.waiters, i, i+1)
	return err
}

// release gives bytes back and wakes every waiter that now fits, not only the
// first: one that wants much must not hold up those that want little.
func (p *Peer) release(freed [classes]int) {
	if p == nil || freed == [classes]int{} {
		return
	}
	p.b.mu.Lock()
	defer p.b.mu.Unlock()
	for c, n := range freed {
		p.b.pools[c].used -= n
		p.used[c] -= n
	}
	p.b.waiters = slices.DeleteFunc(p.b.waiters, func(w *waiter) bool {
		if w.p.tryLocked(w.class, w.n) != nil {
			return false
		}
		close(w.granted)
		return true
	})
}

// encoder admits one more encoder. If it may wait, it does until ctx ends or gone
// is closed.
func (p *Peer) encoder(ctx context.Context, gone <-chan struct{}, wait bool) error {
	if p == nil {
		return nil
	}
	select {
	case p.b.encoders <- struct{}{}:
		return nil
	default:
	}
	if !wait {
		return ErrBudget
	}
	select {
	case p.b.encoders <- struct{}{}:
		return nil
	case <-gone:
		return ErrClosed
	case <-ctx.Done():
	}
	select {
	case p.b.encoders <- struct{}{}: // both were ready
		return nil
	default:
		return ctx.Err()
	}
}

// encoded lets the next encoder in.
func (p *Peer) encoded() {
	if p != nil {
		<-p.b.encoders
	}
}
