package dedup

// chunkLen is how many values one allocation of a queue holds.
const chunkLen = 256

// queue is first in, first out. It allocates once in chunkLen pushes and gives
// memory back as it empties. The zero value is empty. It is not safe for
// concurrent use.
type queue[T any] struct {
	head, tail *chunk[T]
	off        int // of the oldest value in head
	end        int // one past the newest value in tail
	len        int
	spare      *chunk[T] // an empty one, so that a steady queue allocates nothing
}

type chunk[T any] struct {
	next   *chunk[T]
	values [chunkLen]T
}

func (q *queue[T]) push(v T) {
	if q.tail == nil || q.end == chunkLen {
		q.grow()
	}
	q.tail.values[q.end] = v
	q.end++
	q.len++
}

func (q *queue[T]) grow() {
	c := q.spare
	if q.spare = nil; c == nil {
		c = new(chunk[T])
	}
	if q.tail == nil {
		q.head, q.off = c, 0
	} else {
		q.tail.next = c
	}
	q.tail, q.end = c, 0
}

// first gives the oldest value without taking it.
func (q *queue[T]) first() (v T, ok bool) {
	if q.len == 0 {
		return v, false
	}
	return q.head.values[q.off], true
}

// pop takes the oldest value; the queue must not be empty.
func (q *queue[T]) pop() T {
	var zero T
	v := q.head.values[q.off]
	q.head.values[q.off] = zero
	q.off++
	q.len--
	if q.off == chunkLen || q.len == 0 {
		q.shrink()
	}
	return v
}

// shrink takes out the first chunk, all of whose values have been popped.
func (q *queue[T]) shrink() {
	done := q.head
	q.head, q.off = done.next, 0
	if q.head == nil {
		q.tail = nil
	}
	done.next = nil
	q.spare = done
}
