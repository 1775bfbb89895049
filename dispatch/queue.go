package dispatch

import (
	"maps"
	"time"
)

// lane is the queue of one key. It exists while the key has jobs. All its fields are
// guarded by the dispatcher's mutex.
type lane[K comparable, J any] struct {
	head, tail *Task[K, J] // head is the job that is ready, running, held or detached
	next       *lane[K, J] // in the ready list or the free list
	jobs       int
}

// replace puts n in the place of the head.
func (l *lane[K, J]) replaceHead(n *Task[K, J]) {
	old := l.head
	n.lane, n.next = l, old.next
	old.lane, old.next = nil, nil
	l.head = n
	if l.tail == old {
		l.tail = n
	}
}

// pop takes the head out and tells whether a job is left.
func (l *lane[K, J]) pop() bool {
	t := l.head
	l.head = t.next
	t.lane, t.next = nil, nil
	l.jobs--
	if l.head == nil {
		l.tail = nil
	}
	return l.head != nil
}

// push adds t at the end.
func (l *lane[K, J]) push(t *Task[K, J]) {
	t.lane = l
	if l.tail == nil {
		l.head = t
	} else {
		l.tail.next = t
	}
	l.tail = t
	l.jobs++
}

// laneList is a FIFO of lanes.
type laneList[K comparable, J any] struct{ head, tail *lane[K, J] }

func (q *laneList[K, J]) push(l *lane[K, J]) {
	if q.tail == nil {
		q.head = l
	} else {
		q.tail.next = l
	}
	q.tail = l
}

func (q *laneList[K, J]) pop() *lane[K, J] {
	l := q.head
	if l == nil {
		return nil
	}
	q.head, l.next = l.next, nil
	if q.head == nil {
		q.tail = nil
	}
	return l
}

const (
	// spareLanes bounds the free list of lanes.
	spareLanes = 1024
	// smallMap is the number of keys whose map is not worth giving back.
	smallMap = 64
	// shrinkBy is how far the keys have to fall below their peak for the map to be
	// made anew. It bounds the keys copied under the lock.
	shrinkBy = 32
)

// keyMap finds the lane of a key. Unlike a plain map it can give memory back after a
// burst. Its fields are guarded by the dispatcher's mutex.
type keyMap[K comparable, J any] struct {
	lanes map[K]*lane[K, J]
	peak  int         // most keys since the map was made
	free  *lane[K, J] // kept for the next keys
	spare int         // length of free
}

// add makes the lane of a key that has none.
func (m *keyMap[K, J]) add(key K) *lane[K, J] {
	l := m.free
	if l == nil {
		l = new(lane[K, J])
	} else {
		m.free, l.next = l.next, nil
		m.spare--
	}
	if m.lanes == nil {
		m.lanes = make(map[K]*lane[K, J])
	}
	m.lanes[key] = l
	m.peak = max(m.peak, len(m.lanes))
	return l
}

// remove forgets a key whose lane l is empty.
func (m *keyMap[K, J]) remove(key K, l *lane[K, J]) {
	delete(m.lanes, key)
	if m.spare < spareLanes {
		l.next, m.free = m.free, l
		m.spare++
	}
}

// wasteful tells whether the map is far too large for what it holds.
func (m *keyMap[K, J]) wasteful() bool {
	return m.peak > smallMap && len(m.lanes) <= m.peak/shrinkBy
}

// shrink gives back what a burst has left.
func (m *keyMap[K, J]) shrink() {
	lanes := make(map[K]*lane[K, J], len(m.lanes))
	maps.Copy(lanes, m.lanes)
	*m = keyMap[K, J]{lanes: lanes, peak: len(lanes)}
}

// hold is a key that waits until at.
type hold[K comparable, J any] struct {
	at   int64
	lane *lane[K, J]
}

// holdHeap has the earliest hold first.
type holdHeap[K comparable, J any] []hold[K, J]

func (h *holdHeap[K, J]) push(x hold[K, J]) {
	s := append(*h, x)
	i := len(s) - 1
	for i > 0 && x.at < s[(i-1)/2].at {
		s[i] = s[(i-1)/2]
		i = (i - 1) / 2
	}
	s[i] = x
	*h = s
}

func (h *holdHeap[K, J]) pop() hold[K, J] {
	s := *h
	top, last := s[0], len(s)-1
	x := s[last]
	s[last] = hold[K, J]{}
	s = s[:last]
	if last > 0 {
		s.sink(x)
		*h = s
	} else {
		*h = nil // a burst of holds gives its memory back
	}
	return top
}

// sink finds the place of x from the top down.
func (h holdHeap[K, J]) sink(x hold[K, J]) {
	i := 0
	for {
		c := 2*i + 1
		if c+1 < len(h) && h[c+1].at < h[c].at {
			c++
		}
		if c >= len(h) || x.at <= h[c].at {
			break
		}
		h[i] = h[c]
		i = c
	}
	h[i] = x
}

func ns(n int64) time.Duration { return time.Duration(max(n, 0)) }
