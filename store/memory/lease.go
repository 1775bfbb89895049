package memory

import (
	"context"
	"fmt"
	"time"

	"github.com/penstock-io/penstock/store"
)

// Acquire implements store.Leases. Nobody but this process can want a lease of it.
func (s *Store) Acquire(
	ctx context.Context, name, owner string, ttl time.Duration,
) (l store.Lease, err error) {
	err = s.changeLease(ctx, func(now time.Time) error {
		if owner == "" {
			return fmt.Errorf("%w: lease without an owner", store.ErrInvalid)
		}
		held := s.leases[name]
		if held.Owner != "" && held.Owner != owner && held.Until.After(now) {
			l = held
			return store.ErrHeld
		}
		l = store.Lease{Name: name, Owner: owner, Fence: held.Fence, Until: now.Add(ttl)}
		if held.Owner != owner {
			l.Fence++
		}
		s.keepLocked(l)
		return nil
	})
	return l, err
}

// Renew implements store.Leases.
func (s *Store) Renew(
	ctx context.Context, l store.Lease, ttl time.Duration,
) (renewed store.Lease, err error) {
	err = s.changeLease(ctx, func(now time.Time) error {
		if !s.ownsLocked(l) {
			return store.ErrFenced
		}
		renewed = l
		renewed.Until = now.Add(ttl)
		s.keepLocked(renewed)
		return nil
	})
	return renewed, err
}

// Release implements store.Leases. The fence stays, so that the next owner's is
// larger.
func (s *Store) Release(ctx context.Context, l store.Lease) error {
	return s.changeLease(ctx, func(time.Time) error {
		if !s.ownsLocked(l) {
			return store.ErrFenced
		}
		s.keepLocked(store.Lease{Name: l.Name, Fence: l.Fence})
		return nil
	})
}

func (s *Store) changeLease(ctx context.Context, change func(now time.Time) error) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("memory: lease: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return store.ErrClosed
	}
	return change(time.Now())
}

func (s *Store) keepLocked(l store.Lease) {
	if s.leases == nil {
		s.leases = make(map[string]store.Lease)
	}
	s.leases[l.Name] = l
}

func (s *Store) ownsLocked(l store.Lease) bool {
	held := s.leases[l.Name]
	return held.Owner == l.Owner && held.Fence == l.Fence && l.Owner != ""
}
