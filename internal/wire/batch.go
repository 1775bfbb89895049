package wire

import "sync"

// batchSize is how much leaves in one write: large enough that the system call
// is a small part of its cost, small enough that a control frame gets its turn.
const batchSize = 64 << 10

// bigFrame is the size from which a frame is written from its own memory: a copy
// would cost more than the system call that it saves.
const bigFrame = batchSize / 2

// firstBatch is what a fresh batch holds before it grows.
const firstBatch = 4 << 10

// batch is memory for a run of frames.
type batch struct{ b []byte }

var batches = sync.Pool{New: func() any { return &batch{b: make([]byte, 0, firstBatch)} }}

func newBatch() *batch { return batches.Get().(*batch) }

// release gives the batch back. One that grew for a giant goes to the garbage
// collector, so that giants do not stay in memory.
func (b *batch) release() {
	if cap(b.b) > 2*batchSize {
		return
	}
	b.b = b.b[:0]
	batches.Put(b)
}
