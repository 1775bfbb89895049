package system

import (
	"context"
	"errors"
	"sync"

	"github.com/penstock-io/penstock/store"
)

// ErrDisk is what a broken store answers.
var ErrDisk = errors.New("the test's disk is full")

// Store stands before the store of a service and can break it.
type Store struct {
	store.Store // immutable after Wrap

	mu      sync.Mutex    // guards the following fields
	failing bool          // appends fail
	held    chan struct{} // commits wait until it is closed; nil if they do not
	begun   int           // attempts to send that have been recorded
}

// Wrap is for app.Options.
func (s *Store) Wrap(inner store.Store) store.Store {
	s.Store = inner
	return s
}

// FailAppends makes every commit with a new message fail, or takes that back.
func (s *Store) FailAppends(fail bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failing = fail
}

// Hold makes commits wait until release is called.
func (s *Store) Hold() (release func()) {
	held := make(chan struct{})
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held = held
	return sync.OnceFunc(func() {
		s.mu.Lock()
		s.held = nil
		s.mu.Unlock()
		close(held)
	})
}

// Begun is how many attempts to send have been committed.
func (s *Store) Begun() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.begun
}

// Commit implements store.Store.
func (s *Store) Commit(ctx context.Context, ops []store.Op) error {
	s.mu.Lock()
	held, failing := s.held, s.failing
	s.mu.Unlock()
	if held != nil {
		select {
		case <-held:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	begun := 0
	for _, op := range ops {
		switch op.(type) {
		case *store.Append:
			if failing {
				return ErrDisk
			}
		case *store.Begin:
			begun++
		}
	}
	if err := s.Store.Commit(ctx, ops); err != nil {
		return err
	}
	s.mu.Lock()
	s.begun += begun
	s.mu.Unlock()
	return nil
}
