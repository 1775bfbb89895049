package sqlite

import (
	"math/bits"

	"github.com/penstock-io/penstock/store"
)

// pageLen is how many numbers one page of a set covers.
const pageLen = 4096

// numbers is the set of an inbox's or outbox's items: a bit for each number, in
// pages that are read from the table when they are first needed, so that opening
// a large store costs nothing. It is not safe for concurrent use.
type numbers struct {
	pages map[store.Seq]*numberPage // by first number, a multiple of pageLen
	// load reads which of the numbers from first on, pageLen of them, are there.
	load func(first store.Seq, put func(store.Seq)) error
	// stored is the highest number that may be in the table and on no page.
	stored store.Seq
}

type numberPage [pageLen / 64]uint64

func (p *numberPage) empty() bool { return *p == numberPage{} }

// page gives the page of a number, reading it if need be.
func (s *numbers) page(seq store.Seq) (*numberPage, error) {
	first := seq - seq%pageLen
	if p := s.pages[first]; p != nil {
		return p, nil
	}
	p := new(numberPage)
	if first <= s.stored {
		err := s.load(first, func(n store.Seq) { p[(n-first)/64] |= 1 << ((n - first) % 64) })
		if err != nil {
			return nil, err
		}
	}
	if s.pages == nil {
		s.pages = make(map[store.Seq]*numberPage)
	}
	s.pages[first] = p
	return p, nil
}

// has tells whether a number is in the set.
func (s *numbers) has(seq store.Seq) (bool, error) {
	if seq <= 0 {
		return false, nil
	}
	p, err := s.page(seq)
	if err != nil {
		return false, err
	}
	i := seq % pageLen
	return p[i/64]&(1<<(i%64)) != 0, nil
}

// prepare makes sure that put cannot fail for the numbers of a range.
func (s *numbers) prepare(low, high store.Seq) error {
	for first := low - low%pageLen; first <= high; first += pageLen {
		if _, err := s.page(first); err != nil {
			return err
		}
	}
	return nil
}

// put adds a number whose page is there.
func (s *numbers) put(seq store.Seq) {
	i := seq % pageLen
	s.pages[seq-i][i/64] |= 1 << (i % 64)
}

// drop takes out a number whose page is there. An empty page goes: read again, it
// would be empty too.
func (s *numbers) drop(seq store.Seq) {
	i := seq % pageLen
	p := s.pages[seq-i]
	p[i/64] &^= 1 << (i % 64)
	if p[i/64] == 0 && p.empty() {
		delete(s.pages, seq-i)
	}
}

// sweep drops empty pages, which has makes for numbers that are gone.
func (s *numbers) sweep() {
	for first, p := range s.pages {
		if p.empty() {
			delete(s.pages, first)
		}
	}
}

// gap tells that no number between two others is in the set, as far as pages that
// are there can tell, and the two are close.
func (s *numbers) gap(low, high store.Seq) bool {
	for n := low + 1; n < high; {
		i := n % pageLen
		p := s.pages[n-i]
		if p == nil {
			return false
		}
		word := p[i/64] >> (i % 64)
		if word == 0 {
			n += 64 - i%64
			continue
		}
		return n+store.Seq(bits.TrailingZeros64(word)) >= high
	}
	return true
}
