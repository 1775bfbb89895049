package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"time"
)

const (
	// checkpointMost is how much of log is written between two checkpoints, about. It
	// is less where the disk has less than roomShare times that much room, so that
	// the log leaves some for the file, but checkpointLeast at least.
	checkpointMost  = 8 << 20
	checkpointLeast = 256 << 10
	roomShare       = 8
	// restartAfter is how many times as long the log is when it begins anew.
	restartAfter = 4
	// catchUpWithin is the length of a pass that leaves little to move.
	catchUpWithin = 5 * time.Millisecond
	// smallFile is the size up to which a check holds up Open, for a fraction of a
	// second.
	smallFile = 32 << 20
	// upkeepEvery is the time between two rounds of retention.
	upkeepEvery = time.Minute
	// stepRest is the time for commits between two steps of a round.
	stepRest = 20 * time.Millisecond
	// stepRows is how many rows a step looks at, and stepBytes after how much of
	// ids and ends it stops, whichever comes first. An id takes about 40 bytes.
	stepRows  = 100
	stepBytes = 64 << 10
)

// startHelpers starts the goroutine of upkeep, and one for a check of a large file
// after an unclean stop. Close ends both and waits for them.
func (s *Store) startHelpers(ctx context.Context) error {
	c, err := s.connect(ctx, 0)
	if err != nil {
		return err
	}
	ctx, s.end = context.WithCancel(context.WithoutCancel(ctx))
	s.helpers.Go(func() { s.keep(ctx, c) })
	if s.stats.Checking {
		s.helpers.Go(func() { s.checkLarge(ctx) })
	}
	return nil
}

// keep moves the log into the file when enough of it has been written, and lets
// go of what has been kept for long enough.
func (s *Store) keep(ctx context.Context, c *conn) {
	defer func() {
		if err := c.close(); err != nil {
			s.cfg.Logger.Warn("closing the store's second connection", "error", err)
		}
	}()
	rounds := time.NewTicker(upkeepEvery)
	defer rounds.Stop()
	for {
		var err error
		select {
		case <-ctx.Done():
			return
		case <-s.due:
			err = s.checkpoint(c)
		case <-rounds.C:
			err = s.round(ctx)
		}
		if err != nil && ctx.Err() == nil {
			s.cfg.Logger.Warn("upkeep of the store failed", "error", explain(err))
		}
	}
}

// askForCheckpoint wakes keep when enough has been written.
func (s *Store) askForCheckpoint() {
	if s.written < s.between.Load() {
		return
	}
	s.written = 0
	select {
	case s.due <- struct{}{}:
	default:
	}
}

// paceCheckpoints looks how much room the disk has.
func (s *Store) paceCheckpoints() {
	between := int64(checkpointMost)
	if room, known := roomFor(s.cfg.Path); known {
		between = min(max(room/roomShare, checkpointLeast), between)
	}
	s.between.Store(between)
}

// checkpoint moves what it can beside the commits. When the log is long, the
// writing connection moves the rest between two commits and begins the log anew:
// a second connection that did so would make commits wait for its lock in long
// steps, and the log would grow meanwhile.
func (s *Store) checkpoint(c *conn) error {
	s.paceCheckpoints()
	restart := restartAfter * s.between.Load()
	length, _, err := c.checkpoint("PASSIVE")
	if err != nil || length < restart {
		return err
	}
	// Each pass leaves what was written meanwhile, so the last one leaves little.
	for took := time.Hour; took > catchUpWithin && length < 2*restart; {
		began := time.Now()
		if length, _, err = c.checkpoint("PASSIVE"); err != nil {
			return err
		}
		took = time.Since(began)
	}
	s.write.Lock()
	defer s.write.Unlock()
	if s.closed || s.broken {
		return nil
	}
	began := time.Now()
	_, whole, err := s.w.checkpoint("RESTART")
	if err != nil {
		s.broken = !isBusy(err)
		return err
	}
	if !whole {
		return nil // somebody reads; the next one will do
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stats.Checkpoints++
	s.stats.LongestCheckpoint = max(s.stats.LongestCheckpoint, time.Since(began))
	return nil
}

// checkpoint runs one, and gives the length of the log in bytes and whether nobody
// was in its way.
func (c *conn) checkpoint(mode string) (length int64, whole bool, err error) {
	_, err = c.one("PRAGMA wal_checkpoint("+mode+")", nil, func(r row) {
		whole, length = r.int(0) == 0, r.int(1)*c.pageSize
	})
	return length, whole, err
}

// round does steps of retention until nothing is left to do.
func (s *Store) round(ctx context.Context) error {
	cursor := int64(0)
	for _, step := range []func(now int64) (more bool, err error){
		func(now int64) (bool, error) { return s.trimCommits(now, &cursor) },
		s.trimDead,
	} {
		for more := true; more; {
			var err error
			if more, err = s.upkeep(ctx, step); err != nil {
				return err
			}
			if !more {
				break
			}
			select {
			case <-ctx.Done():
				return nil
			case <-time.After(stepRest):
			}
		}
	}
	return nil
}

// upkeep does one step in a transaction of its own, between two commits.
func (s *Store) upkeep(ctx context.Context, step func(int64) (bool, error)) (more bool, err error) {
	s.write.Lock()
	defer s.write.Unlock()
	if s.closed {
		return false, nil
	}
	began := time.Now()
	s.trim = trimmed{}
	err = s.transact(ctx, func(now int64) (err error) { more, err = step(now); return err })
	if err != nil {
		return false, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.trim.apply(s)
	s.stats.LongestUpkeep = max(s.stats.LongestUpkeep, time.Since(began))
	return more, nil
}

// checkSmall checks the file at once, or leaves it to checkLarge.
func (s *Store) checkSmall(ctx context.Context) error {
	info, err := os.Stat(s.cfg.Path)
	if err != nil {
		return err
	}
	if info.Size() > smallFile {
		s.stats.Checking = true
		return nil
	}
	var found []string
	err = s.w.query("PRAGMA quick_check(3)", nil, func(r row) error {
		found = append(found, r.text(0))
		return ctx.Err()
	})
	if err != nil {
		return err
	}
	return verdict(found)
}

func verdict(found []string) error {
	if len(found) == 1 && found[0] == "ok" {
		return nil
	}
	return fmt.Errorf("%w: %q", ErrDamaged, found)
}

// checkLarge checks the file beside the commits. The log cannot begin anew until it
// is over, so it grows meanwhile.
func (s *Store) checkLarge(ctx context.Context) {
	began := time.Now()
	found, err := quickCheck(ctx, s.readers)
	if err == nil {
		err = verdict(found)
	}
	s.mu.Lock()
	s.stats.Checking = false
	s.mu.Unlock()
	took := time.Since(began)
	switch {
	case err == nil:
		s.cfg.Logger.Info("store is whole after an unclean stop", "took", took)
	case errors.Is(explain(err), ErrDamaged):
		err = explain(err)
		s.damage.Store(&err)
		s.cfg.Logger.Error("store is damaged and takes nothing more", "error", err)
	case ctx.Err() == nil:
		s.cfg.Logger.Warn("store could not be checked after an unclean stop", "error", err)
	}
}

func quickCheck(ctx context.Context, db *sql.DB) (found []string, err error) {
	rows, err := db.QueryContext(ctx, "PRAGMA quick_check(3)")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var text string
		if err := rows.Scan(&text); err != nil {
			return nil, err
		}
		found = append(found, text)
	}
	return found, rows.Err()
}
