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
	box store.Box
	key idKey
	seq store.Seq
}

// apply is called with Store.mu held for writing.
func (t *trimmed) apply(s *Store) {
	for _, id := range t.ids {
		x := &s.boxes[id.box].ids
		x.remove(x.hash(id.key), id.seq)
	}
	for b, n := range t.dead {
		s.boxes[b].dead -= n
		t.rows += uint64(n)
	}
	s.stats.Trimmed += t.rows + uint64(len(t.ids))
	s.stats.ForgottenIDs += t.forgotten
}

// trimIDs goes on from the cursor through a log and drops ids whose time is over.
// One whose item is still there stays, and its row with it. The last row stays
// too, since it holds the highest number that was given.
func (s *Store) trimIDs(b store.Box, now int64, cursor *int64) (more bool, err error) {
	type logRow struct {
		last, at int64
		ids      []byte
	}
	var rows []logRow
	size := 0
	err = s.w.query(s.boxes[b].text.oldLogs, []any{*cursor, int64(stepRows)}, func(r row) error {
		if size <= stepIDs*idSize {
			rows = append(rows, logRow{r.int(0), r.int(1), r.bytes(2)})
			size += len(r.bytes(2))
		}
		return nil
	})
	if err != nil {
		return false, err
	}
	keep := max(s.cfg.Window, s.cfg.HistoryFor).Milliseconds()
	for _, r := range rows {
		over := s.boxes[0].ids.len + s.boxes[1].ids.len - len(s.trim.ids) - s.cfg.MaxIDs
		expired := now-r.at >= keep
		if !expired && over <= 0 {
			return false, nil
		}
		if err := s.trimRow(b, r.last, r.ids, expired); err != nil {
			return false, err
		}
		*cursor = r.last
	}
	if len(rows) == 0 {
		s.boxes[b].open.sweep()
	}
	return len(rows) > 0, nil
}

// idSize is about what an id takes in a log.
const idSize = 40

// trimRow drops the ids of a row whose items are not there.
func (s *Store) trimRow(b store.Box, last int64, ids []byte, expired bool) error {
	bx := &s.boxes[b]
	var kept idLog
	kept.reset()
	var bad error
	before := len(s.trim.ids)
	err := readIDs(ids, func(seq store.Seq, k idKey) {
		has, err := bx.open.has(seq)
		switch {
		case err != nil:
			bad = err
		case has:
			kept.add(seq, k)
		default:
			s.trim.ids = append(s.trim.ids, trimmedID{b, k, seq})
		}
	})
	switch {
	case err != nil:
		return err
	case bad != nil:
		return bad
	case !expired:
		s.trim.forgotten += uint64(len(s.trim.ids) - before)
	}
	switch {
	case kept.n == 0:
		_, err = s.w.exec(bx.text.dropLog, last)
	case len(s.trim.ids) > before:
		_, err = s.w.exec(bx.text.trimLog, last, kept.b)
	}
	return err
}

// trimEnds drops the oldest ends whose time is over, but never the last row, by
// which a commit is recognised.
func (s *Store) trimEnds(now int64) (more bool, err error) {
	n, err := s.w.exec(dropEnds, now-s.cfg.HistoryFor.Milliseconds(), int64(stepRows))
	s.trim.rows += uint64(n)
	return n > 0, err
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
