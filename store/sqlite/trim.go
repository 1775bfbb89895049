package sqlite

import (
	"github.com/penstock-io/penstock/store"
)

// trimmed is what a step of retention takes from memory once it is committed.
type trimmed struct {
	ids       []trimmedID
	dead      [2]int64
	rows      uint64
	forgotten uint64
}

type trimmedID struct {
	box    store.Box
	key    idKey
	commit int64
}

// apply is called with Store.mu held for writing.
func (t *trimmed) apply(s *Store) {
	for _, id := range t.ids {
		x := &s.boxes[id.box].ids
		x.remove(x.hash(id.key), id.commit)
	}
	for b, n := range t.dead {
		s.boxes[b].dead -= n
		t.rows += uint64(n)
	}
	s.stats.Trimmed += t.rows + uint64(len(t.ids))
	s.stats.ForgottenIDs += t.forgotten
}

// oldCommit is the row of a commit.
type oldCommit struct {
	n, at int64
	ids   [2][]byte
	ends  []byte
}

// trimCommits goes on from the cursor through the commits and drops what their rows
// keep for too long. The last row stays, since it holds the highest numbers.
func (s *Store) trimCommits(now int64, cursor *int64) (more bool, err error) {
	var rows []oldCommit
	size := 0
	err = s.w.query(oldCommits, []any{*cursor, int64(stepRows)}, func(r row) error {
		c := oldCommit{r.int(0), r.int(1), [2][]byte{r.bytes(2), r.bytes(3)}, r.bytes(4)}
		rows = append(rows, c)
		if size += len(c.ids[0]) + len(c.ids[1]) + len(c.ends); size > stepBytes {
			return errEnough
		}
		return nil
	})
	if err != nil {
		return false, err
	}
	for _, r := range rows {
		over := s.boxes[0].ids.len + s.boxes[1].ids.len - len(s.trim.ids) - s.cfg.MaxIDs
		idsOld := now-r.at >= max(s.cfg.Window, s.cfg.HistoryFor).Milliseconds()
		endsOld := now-r.at >= s.cfg.HistoryFor.Milliseconds()
		if !idsOld && !endsOld && over <= 0 {
			return false, nil // nor is a later one
		}
		before := len(s.trim.ids)
		if err := s.trimRow(r, idsOld || over > 0, endsOld); err != nil {
			return false, err
		}
		if !idsOld {
			s.trim.forgotten += uint64(len(s.trim.ids) - before)
		}
		*cursor = r.n
	}
	if len(rows) == 0 {
		for b := range s.boxes {
			s.boxes[b].open.sweep()
		}
	}
	return len(rows) > 0, nil
}

// trimRow drops the ids of a row whose items are not there, or the ends, or both.
// The row goes with the last of them.
func (s *Store) trimRow(r oldCommit, ids, ends bool) error {
	before := len(s.trim.ids)
	if ids {
		for b := range r.ids {
			kept, err := s.trimIDs(store.Box(b), r.n, r.ids[b])
			if err != nil {
				return err
			}
			r.ids[b] = kept
		}
	}
	changed := len(s.trim.ids) > before
	if ends && len(r.ends) > 0 {
		r.ends, changed = nil, true
		s.trim.rows++
	}
	var err error
	switch {
	case len(r.ids[0])+len(r.ids[1])+len(r.ends) == 0:
		_, err = s.w.exec(dropCommit, r.n)
	case changed:
		_, err = s.w.exec(trimCommit, r.n, blob(r.ids[0]), blob(r.ids[1]), blob(r.ends))
	}
	return err
}

// trimIDs gives what is kept of a row's ids.
func (s *Store) trimIDs(b store.Box, commit int64, ids []byte) ([]byte, error) {
	var kept idLog
	var bad error
	err := readIDs(ids, func(seq store.Seq, k idKey) {
		has, err := s.boxes[b].open.has(seq)
		switch {
		case err != nil:
			bad = err
		case has:
			kept.add(seq, k)
		default:
			s.trim.ids = append(s.trim.ids, trimmedID{b, k, commit})
		}
	})
	if err == nil {
		err = bad
	}
	return kept.b, err
}

// trimDead drops the oldest dead letters whose time is over.
func (s *Store) trimDead(now int64) (more bool, err error) {
	var gone []exhumed
	err = s.w.query(oldDead, []any{now - s.cfg.DeadFor.Milliseconds(), int64(stepRows)},
		func(r row) error {
			gone = append(gone, exhumed{store.Box(r.int(0)), store.Seq(r.int(1))})
			return nil
		})
	if err != nil {
		return false, err
	}
	for _, x := range gone {
		if _, err := s.w.exec(removeDead, int64(x.box), int64(x.seq)); err != nil {
			return false, err
		}
		s.trim.dead[x.box]++
	}
	return len(gone) > 0, nil
}
