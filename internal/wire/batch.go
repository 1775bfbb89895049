package wire

import "sync"

// batchSize is how much leaves in one write: large enough that the system call
// is a small part of its cost, small enough that a control frame gets its turn.
const batchSize = 64 << 10

// firstBatch is what a fresh batch holds before it grows.
const firstBatch = 4 << 10

// batch is a run of whole frames, ready to be written.
type batch struct {
	b      []byte
	frames int
}

var batches = sync.Pool{New: func() any { return &batch{b: make([]byte, 0, firstBatch)} }}

func newBatch() *batch { return batches.Get().(*batch) }

// release gives the batch back. One that grew for a giant frame goes to the
// garbage collector, so that giants do not stay in memory.
func (b *batch) release() {
	if cap(b.b) > 2*batchSize {
		return
	}
	b.b, b.frames = b.b[:0], 0
	batches.Put(b)
}

// lane is a bounded queue of frames, encoded already. The socket's mutex guards
// it.
type lane struct {
	queue             []*batch
	frames, bytes     int
	maxFrame, maxByte int
}

// takes tells whether a frame of size bytes fits. A lane that is empty takes any
// frame, so that a byte limit below one frame cannot block for ever.
func (l *lane) takes(size int) bool {
	return l.frames < l.maxFrame && (l.frames == 0 || l.bytes+size <= l.maxByte)
}

// tail gives the batch that the next frame of size bytes goes into.
func (l *lane) tail(size int) *batch {
	if n := len(l.queue); n > 0 && len(l.queue[n-1].b)+size <= batchSize {
		return l.queue[n-1]
	}
	l.queue = append(l.queue, newBatch())
	return l.queue[len(l.queue)-1]
}

func (l *lane) add(op Op, masked bool, payload []byte) {
	b := l.tail(maxHeader + len(payload))
	before := len(b.b)
	b.b = appendFrame(b.b, op, masked, payload)
	b.frames++
	l.frames++
	l.bytes += len(b.b) - before
}

// pop takes the oldest batch out, nil if there is none. The array of an emptied
// queue goes too: an idle socket keeps nothing.
func (l *lane) pop() *batch {
	if len(l.queue) == 0 {
		return nil
	}
	b := l.queue[0]
	l.queue[0] = nil
	l.queue = l.queue[1:]
	if len(l.queue) == 0 {
		l.queue = nil
	}
	l.frames -= b.frames
	l.bytes -= len(b.b)
	return b
}

// clear empties the lane and tells how many frames it held.
func (l *lane) clear() int {
	n := l.frames
	for b := l.pop(); b != nil; b = l.pop() {
		b.release()
	}
	return n
}
