package memory

import (
	"cmp"
	"iter"
	"math/bits"
	"slices"

	"github.com/penstock-io/penstock/store"
)

// chunkLen is how many numbers one allocation of a series covers; one bit each
// must fit chunk.used.
const chunkLen = 32

// series keeps values under increasing numbers, in order. Values are found by
// arithmetic, without hashing, and may go in any order; the memory of a stretch
// of numbers is given back when the last value of it has gone. The zero value is
// empty. It is not safe for concurrent use.
type series[T any] struct {
	chunks []*chunk[T] // by base; only the last one may be empty
	len    int
	spare  *chunk[T] // an empty one, so that a steady series allocates nothing
}

type chunk[T any] struct {
	base   store.Seq // its first number, a multiple of chunkLen
	used   uint32    // a bit for each value that is there
	values [chunkLen]T
}

// put adds a value under a number that is larger than all numbers before.
func (s *series[T]) put(seq store.Seq, v T) {
	base := seq - seq%chunkLen
	c := s.last()
	switch {
	case c != nil && c.used == 0:
		c.base = base
	case c == nil || c.base != base:
		c = s.grow(base)
		s.chunks = append(s.chunks, c)
	}
	c.values[seq-base] = v
	c.used |= 1 << (seq - base)
	s.len++
}

func (s *series[T]) last() *chunk[T] {
	if len(s.chunks) == 0 {
		return nil
	}
	return s.chunks[len(s.chunks)-1]
}

func (s *series[T]) grow(base store.Seq) *chunk[T] {
	c := s.spare
	if s.spare = nil; c == nil {
		c = new(chunk[T])
	}
	c.base = base
	return c
}

// get gives the value under a number, nil if there is none. It is valid until the
// value is removed.
func (s *series[T]) get(seq store.Seq) *T {
	i, ok := s.find(seq)
	if !ok {
		return nil
	}
	c := s.chunks[i]
	if c.used&(1<<(seq-c.base)) == 0 {
		return nil
	}
	return &c.values[seq-c.base]
}

// remove takes a value out, if it is there.
func (s *series[T]) remove(seq store.Seq) {
	i, ok := s.find(seq)
	if !ok {
		return
	}
	c, bit := s.chunks[i], uint32(1)<<(seq-s.chunks[i].base)
	if c.used&bit == 0 {
		return
	}
	var zero T
	c.values[seq-c.base] = zero
	c.used &^= bit
	s.len--
	if c.used == 0 && i < len(s.chunks)-1 {
		s.drop(i)
	}
}

// drop takes out a chunk. The first one goes most often, and costs no copying.
func (s *series[T]) drop(i int) {
	s.spare = s.chunks[i]
	if i > 0 {
		s.chunks = slices.Delete(s.chunks, i, i+1)
		return
	}
	s.chunks[0] = nil
	s.chunks = s.chunks[1:]
}

// find gives the place of the chunk for a number, or of the one after it.
func (s *series[T]) find(seq store.Seq) (i int, ok bool) {
	if len(s.chunks) == 0 || seq < s.chunks[0].base {
		return 0, false
	}
	base := seq - seq%chunkLen
	// This is the place when no chunk between was dropped; else it is before it.
	guess := (base - s.chunks[0].base) / chunkLen
	if guess < store.Seq(len(s.chunks)) && s.chunks[guess].base == base {
		return int(guess), true
	}
	until := min(guess, store.Seq(len(s.chunks)))
	return slices.BinarySearchFunc(s.chunks[:until], base, func(c *chunk[T], b store.Seq) int {
		return cmp.Compare(c.base, b)
	})
}

// first gives the value with the lowest number, which is 0 when there is none.
func (s *series[T]) first() (store.Seq, *T) {
	if s.len == 0 {
		return 0, nil
	}
	c := s.chunks[0]
	i := bits.TrailingZeros32(c.used)
	return c.base + store.Seq(i), &c.values[i]
}

// above gives the values with numbers above after, in order.
func (s *series[T]) above(after store.Seq) iter.Seq2[store.Seq, *T] {
	return func(yield func(store.Seq, *T) bool) {
		from, _ := s.find(after + 1)
		for _, c := range s.chunks[from:] {
			for used := c.used; used != 0; used &= used - 1 {
				i := bits.TrailingZeros32(used)
				seq := c.base + store.Seq(i)
				if seq > after && !yield(seq, &c.values[i]) {
					return
				}
			}
		}
	}
}

// backward gives all values, that with the highest number first.
func (s *series[T]) backward() iter.Seq2[store.Seq, *T] {
	return func(yield func(store.Seq, *T) bool) {
		for _, c := range slices.Backward(s.chunks) {
			for used := c.used; used != 0; {
				i := bits.Len32(used) - 1
				used &^= 1 << i
				if !yield(c.base+store.Seq(i), &c.values[i]) {
					return
				}
			}
		}
	}
}
