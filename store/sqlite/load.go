package sqlite

import (
	"context"
	"errors"
	"sync"

	"github.com/penstock-io/penstock/store"
)

// load reads what is kept in memory, or only looks whether it is what the file
// says. It is called while nobody commits.
func (s *Store) load(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	was := s.last
	known := s.boxes[store.BoxInbox].open.load != nil && !s.changed
	if err := s.loadLastLocked(); err != nil {
		return err
	}
	if !known || was != s.last {
		if err := s.loadIDsLocked(ctx); err != nil {
			return err
		}
	}
	for b := range s.boxes {
		bx := &s.boxes[b]
		bx.forget(s.w)
		dead, err := s.w.number(countDead, int64(b))
		if err != nil {
			return err
		}
		bx.dead = dead
		if !s.changed {
			continue
		}
		if bx.count, err = s.w.number(bx.text.count); err != nil {
			return err
		}
	}
	return nil
}

// loadLastLocked reads what the last commit left. It counts no rows, which in a
// large file takes longer than all the rest.
func (s *Store) loadLastLocked() error {
	in, out := &s.boxes[store.BoxInbox], &s.boxes[store.BoxOutbox]
	s.last, s.lastAt, in.last, out.last, in.count, out.count = 0, 0, 0, 0, 0, 0
	_, err := s.w.one(lastCommit, nil, func(r row) {
		s.last, s.lastAt = r.int(0), r.int(1)
		in.last, out.last = store.Seq(r.int(2)), store.Seq(r.int(3))
		in.count, out.count = r.int(4), r.int(5)
	})
	return err
}

// idRow is what a commit's row tells of ids.
type idRow struct {
	commit int64
	ids    [2][]byte
}

// loadIDsLocked reads the ids of all commits. One goroutine reads the file while
// another, which ends with it, fills the indexes: either takes about half the time.
func (s *Store) loadIDsLocked(ctx context.Context) error {
	for b := range s.boxes {
		s.boxes[b].ids = newIndex()
	}
	rows := make(chan idRow, 64) // closed below
	var indexing sync.WaitGroup
	var bad error
	indexing.Go(func() {
		for r := range rows {
			bad = errors.Join(bad, s.indexLocked(r))
		}
	})
	err := s.w.query(allCommits, nil, func(r row) error {
		rows <- idRow{r.int(0), [2][]byte{r.bytes(1), r.bytes(2)}}
		return ctx.Err()
	})
	close(rows)
	indexing.Wait()
	return errors.Join(err, bad)
}

func (s *Store) indexLocked(r idRow) error {
	var errs [2]error
	for b := range s.boxes {
		x := &s.boxes[b].ids
		errs[b] = readIDs(r.ids[b], func(_ store.Seq, k idKey) { x.add(x.hash(k), r.commit) })
	}
	return errors.Join(errs[0], errs[1])
}
