package sqlite

import (
	"context"
	"fmt"
	"time"

	"github.com/penstock-io/penstock/store"
)

// Acquire implements store.Leases. One process has the file, so its leases keep
// parts of that process from each other, and a process from one that died: a lease
// survives until it runs out.
func (s *Store) Acquire(
	ctx context.Context, name, owner string, ttl time.Duration,
) (l store.Lease, err error) {
	err = s.leases(ctx, func(now int64) error {
		if owner == "" {
			return fmt.Errorf("%w: lease without an owner", store.ErrInvalid)
		}
		held, err := s.leaseLocked(name)
		if err != nil {
			return err
		}
		if held.Owner != "" && held.Owner != owner && held.Until.UnixMilli() > now {
			l = held
			return store.ErrHeld
		}
		l = store.Lease{Name: name, Owner: owner, Fence: held.Fence}
		if held.Owner != owner {
			l.Fence++
		}
		l.Until = fromMillis(now).Add(ttl)
		return s.keepLocked(l)
	})
	return l, err
}

// Renew implements store.Leases.
func (s *Store) Renew(
	ctx context.Context, l store.Lease, ttl time.Duration,
) (renewed store.Lease, err error) {
	err = s.leases(ctx, func(now int64) error {
		if err := s.ownsLocked(l); err != nil {
			return err
		}
		renewed = l
		renewed.Until = fromMillis(now).Add(ttl)
		return s.keepLocked(renewed)
	})
	return renewed, err
}

// Release implements store.Leases. The fence stays, so that the next owner's is
// larger.
func (s *Store) Release(ctx context.Context, l store.Lease) error {
	return s.leases(ctx, func(int64) error {
		if err := s.ownsLocked(l); err != nil {
			return err
		}
		return s.keepLocked(store.Lease{Name: l.Name, Fence: l.Fence})
	})
}

// leases runs one change of a lease in a transaction.
func (s *Store) leases(ctx context.Context, change func(now int64) error) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("sqlite: lease: %w", err)
	}
	s.write.Lock()
	defer s.write.Unlock()
	if s.closed {
		return store.ErrClosed
	}
	if err := s.transact(ctx, change); err != nil {
		return fmt.Errorf("sqlite: lease: %w", err)
	}
	return nil
}

// leaseLocked reads a lease; one that nobody has is zero but for its fence.
func (s *Store) leaseLocked(name string) (l store.Lease, err error) {
	l.Name = name
	_, err = s.w.one(getLease, []any{name}, func(r row) {
		l.Owner, l.Fence, l.Until = r.text(0), r.int(1), fromMillis(r.int(2))
	})
	return l, err
}

func (s *Store) keepLocked(l store.Lease) error {
	_, err := s.w.exec(setLease, l.Name, l.Owner, l.Fence, millis(l.Until))
	return err
}

func (s *Store) ownsLocked(l store.Lease) error {
	held, err := s.leaseLocked(l.Name)
	if err == nil && (l.Owner == "" || held.Owner != l.Owner || held.Fence != l.Fence) {
		err = store.ErrFenced
	}
	return err
}

// checkFence refuses the commits of an owner whose lease has passed on.
func (s *Store) checkFence(ctx context.Context) error {
	l, fenced := store.FenceOf(ctx)
	if !fenced {
		return nil
	}
	return s.ownsLocked(l)
}
