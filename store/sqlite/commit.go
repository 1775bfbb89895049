package sqlite

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/penstock-io/penstock/store"
)

// errChanged means that the file is not as this process left it, so another
// program has written to it. What is in memory is read again.
var errChanged = errors.New("file was changed by another program")

// Waits for another program's lock.
const (
	firstWait = time.Millisecond
	longWait  = 50 * time.Millisecond
)

// Commit implements store.Store. It waits for nobody but a step of upkeep, the
// disk, and a program that holds the file's lock, which it does for
// Config.BusyWait at most.
func (s *Store) Commit(ctx context.Context, ops []store.Op) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("sqlite: commit: %w", err)
	}
	s.write.Lock()
	defer s.write.Unlock()
	if s.closed {
		return store.ErrClosed
	}
	if len(ops) == 0 {
		return nil
	}
	err := s.transact(ctx, func(now int64) error {
		if err := s.checkFence(ctx); err != nil {
			return err
		}
		return s.applyLocked(ops, now)
	})
	if err != nil {
		return fmt.Errorf("sqlite: commit: %w", err)
	}
	s.takeLocked()
	s.askForCheckpoint()
	return nil
}

// applyLocked applies and writes the ops of a group.
func (s *Store) applyLocked(ops []store.Op, now int64) error {
	g := &s.group
	g.begin(s.w, &s.boxes, s.last+1, now)
	g.expired = now - s.cfg.Window.Milliseconds()
	for _, op := range ops {
		store.Fail(op, g.apply(op))
		if g.err != nil {
			return g.err
		}
	}
	for b := range g.sides {
		sd := &g.sides[b]
		if err := s.boxes[b].open.prepare(sd.base+1, sd.last); err != nil {
			return err
		}
	}
	return g.write()
}

// takeLocked brings a committed group into what readers see.
func (s *Store) takeLocked() {
	g := &s.group
	s.mu.Lock()
	defer s.mu.Unlock()
	if g.named() {
		s.last = g.commit
	}
	for b := range g.sides {
		s.boxes[b].take(&g.sides[b], g.commit)
	}
	for i := range g.letters {
		if l := &g.letters[i]; !l.left {
			s.boxes[l.box].dead++
		}
	}
	for _, x := range g.exhumed {
		s.boxes[x.box].dead--
	}
	s.written += 8*s.w.pageSize + int64(len(g.arena))*5/4
}

// transact runs fn in a transaction, of which nothing holds if there is an error.
// After a failure of the file the next one begins with a new connection, so that
// a full disk, a lock or an operator's mistake are over when they are over.
func (s *Store) transact(ctx context.Context, fn func(now int64) error) error {
	if err := s.checkHealth(); err != nil {
		return err
	}
	if s.broken {
		if err := s.reconnect(ctx); err != nil {
			return explain(err)
		}
	}
	if err := s.beginLocked(ctx); err != nil {
		s.broken = !isBusy(err)
		return explain(err)
	}
	now := s.clockLocked()
	err := fn(now)
	if err == nil {
		_, err = s.w.exec("COMMIT")
	}
	if err != nil {
		s.rollbackLocked(err)
		return explain(err)
	}
	s.lastAt = now
	return nil
}

// beginLocked takes the file's lock. While another program has it, it tries again,
// and leaves when ctx ends.
func (s *Store) beginLocked(ctx context.Context) error {
	_, err := s.w.exec("BEGIN IMMEDIATE")
	until := time.Now().Add(s.cfg.BusyWait)
	for wait := firstWait; isBusy(err) && time.Now().Before(until); wait = min(2*wait, longWait) {
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return errors.Join(ctx.Err(), err)
		case <-timer.C:
		}
		_, err = s.w.exec("BEGIN IMMEDIATE")
	}
	return err
}

// rollbackLocked ends a transaction that failed. An op's own failure, such as a
// fence, leaves the connection as good as it was.
func (s *Store) rollbackLocked(why error) {
	_, err := s.w.exec("ROLLBACK")
	s.changed = errors.Is(why, errChanged)
	s.broken = err != nil || code(why) != 0 || s.changed || errors.Is(why, ErrDamaged)
}

// reconnect opens the writing connection anew, and reads the file again unless it
// is as this process left it.
func (s *Store) reconnect(ctx context.Context) error {
	// What a failed connection says at its end is of no use to anybody.
	_ = s.w.close()
	s.w = nil
	w, err := s.connect(ctx, 0)
	if err != nil {
		return err
	}
	s.w = w
	// A commit that failed on its way to the disk may be there all the same.
	if err := s.load(ctx); err != nil {
		return err
	}
	s.broken, s.changed = false, false
	return nil
}

// clockLocked is the time in ms, which does not go back: what was taken in a
// second ago is not forgotten because somebody sets the clock. A step back of
// more than the window corrects a clock that was wrong, and is followed.
func (s *Store) clockLocked() int64 {
	now := s.cfg.now().UnixMilli()
	if now < s.lastAt && s.lastAt-now <= s.cfg.Window.Milliseconds() {
		return s.lastAt
	}
	return now
}

// checkHealth refuses to go on with files that were moved away or are damaged.
func (s *Store) checkHealth() error {
	if d := s.damage.Load(); d != nil {
		return *d
	}
	for _, f := range s.files {
		info, err := os.Stat(f.path)
		if err != nil {
			return fmt.Errorf("%w: %w", ErrMoved, err)
		}
		if !os.SameFile(info, f.info) {
			return fmt.Errorf("%w: %s is another file", ErrMoved, f.path)
		}
	}
	return nil
}
