package store

import (
	"context"
	"errors"
	"time"
)

var (
	// ErrHeld means that somebody else holds a lease that has not run out.
	ErrHeld = errors.New("store: lease is held by another owner")
	// ErrFenced means that a lease has passed to another owner. A commit that
	// fails with it will never succeed: its owner has to stop.
	ErrFenced = errors.New("store: lease has been taken over")
)

// Lease is the right to do something alone for a while, for example to read the
// messages of an installation. Fence is larger at each change of owner.
type Lease struct {
	Name, Owner string
	Fence       int64
	Until       time.Time
}

// Leases hands out leases. In a store that one process holds alone they cannot be
// contended from outside, and serve to keep one contract. The methods may be
// called from any number of goroutines.
type Leases interface {
	// Acquire takes the lease of that name for ttl, or takes it again for the
	// same owner, which must have a name. It fails with ErrHeld, beside which the
	// holder's lease is given.
	Acquire(ctx context.Context, name, owner string, ttl time.Duration) (Lease, error)
	// Renew makes a lease last for ttl from now, also one that has run out and
	// that nobody else took. It fails with ErrFenced.
	Renew(ctx context.Context, l Lease, ttl time.Duration) (Lease, error)
	// Release gives a lease back before its time. It fails with ErrFenced.
	Release(ctx context.Context, l Lease) error
}

type fenceKey struct{}

// WithFence makes the commits under ctx those of the owner of a lease: one that
// comes after the lease has passed to another owner, or was released, fails with
// ErrFenced and leaves nothing behind. Given to [Writer.Run] it fences every
// group. That a lease has run out does not matter while nobody else took it.
func WithFence(ctx context.Context, l Lease) context.Context {
	return context.WithValue(ctx, fenceKey{}, l)
}

// FenceOf gives the lease that ctx is fenced by. Only stores call it.
func FenceOf(ctx context.Context) (Lease, bool) {
	l, ok := ctx.Value(fenceKey{}).(Lease)
	return l, ok
}
