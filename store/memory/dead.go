package memory

import "github.com/penstock-io/penstock/store"

// letterLocked keeps a dead letter. The oldest ones make room for it.
func (s *Store) letterLocked(d store.Dead, size int64) {
	s.deadSize += size
	s.buried++
	s.dead.put(s.buried, letter{d, size})
	s.countDeadLocked(d, 1)
	for s.dead.len > s.cfg.MaxDead || s.dead.len > 1 && s.deadSize > s.cfg.MaxDeadBytes {
		n, _ := s.dead.first()
		s.dropLetterLocked(n)
		s.dropped++
	}
}

// dropLetterLocked takes a dead letter out, by the number of its burial.
func (s *Store) dropLetterLocked(n store.Seq) {
	l := s.dead.get(n)
	s.deadSize -= l.size
	s.countDeadLocked(l.Dead, -1)
	s.dead.remove(n)
}

func (s *Store) countDeadLocked(d store.Dead, by int64) {
	if d.Message != nil {
		s.counts.DeadInbox += by
	} else {
		s.counts.DeadOutbox += by
	}
}
