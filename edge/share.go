package edge

import (
	"sync"

	"github.com/penstock-io/penstock/message"
)

// shares keeps a consumer that is slow to answer from taking every worker of an
// installation that others need, too. It may be used from any number of goroutines.
type shares struct {
	mu sync.Mutex // guards held
	// held has, by installation, the calls of Handle that are under way.
	held map[message.InstallationID]*share
}

type share struct {
	total int
	by    map[*consumer]int
}

// take counts a call in. With a limit, a consumer has never more than it leaves free:
// however many are slow, a quick one finds as much room as the slowest has taken. One
// call each is always let in.
func (s *shares) take(in message.InstallationID, c *consumer, limit int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.held[in]
	if h == nil {
		h = &share{by: map[*consumer]int{}}
		if s.held == nil {
			s.held = map[message.InstallationID]*share{}
		}
		s.held[in] = h
	}
	n := h.by[c]
	if limit > 0 && n > 0 && n+1 > limit-h.total-1 {
		return false
	}
	h.by[c] = n + 1
	h.total++
	return true
}

// give counts a call out.
func (s *shares) give(in message.InstallationID, c *consumer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.held[in]
	if h.by[c]--; h.by[c] == 0 {
		delete(h.by, c)
	}
	if h.total--; h.total == 0 {
		delete(s.held, in)
	}
}
