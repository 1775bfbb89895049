package wire

import (
	"sync"
	"time"
)

// phase is how far a frame has come.
type phase uint8

const (
	made    phase = iota // in the hands of its sender
	waiting              // in line, for room in the lane
	queued               // taken
	flying               // in the hands of whoever writes or settles it
	over                 // settled
)

// keptFrame is the largest buffer that a frame keeps for the next one. A larger
// one goes to the garbage collector.
const keptFrame = 4 << 10

// op is one frame on its way.
type op struct {
	// owned by the sender, from queued on by the socket's mutex or, in flight,
	// by the writer
	b        []byte // the frame, encoded
	held     int    // bytes that are reserved for it, given back exactly once
	lane     Lane
	by       time.Time // when it is given up, zero for never
	at       time.Time // when it was asked for
	began    time.Time // when the writer took it
	entry    *entry    // how it is tracked, nil if it is not
	farewell bool      // the close frame, which nobody sent and no figure counts

	// guarded by the socket's mutex
	next   *op
	phase  phase
	wants  phase // the phase that the sender waits for
	taken  bool  // it has been in the lane's queue
	waited bool  // the sender has not come back for the result
	err    error

	// told is closed once the phase that the sender waits for is reached; nil
	// while the sender does not block. It is not kept for the next frame.
	told chan struct{}
}

var ops = sync.Pool{New: func() any { return new(op) }}

func newOp(l Lane) *op {
	o := ops.Get().(*op)
	o.lane, o.at = l, time.Now()
	return o
}

// recycle hands the frame's memory on. Nobody may hold o any more.
func (o *op) recycle() {
	b := o.b[:0]
	if cap(b) > keptFrame {
		b = nil
	}
	*o = op{b: b}
	ops.Put(o)
}

// reached tells whether the sender has what it waits for.
func (o *op) reached() bool { return o.phase == over || o.wants == queued && o.taken }

// tell wakes the sender once.
func (o *op) tell() {
	if o.told != nil {
		close(o.told)
		o.told = nil
	}
}

// late tells whether the frame's time is up.
func (o *op) late(now time.Time) bool { return !o.by.IsZero() && !now.Before(o.by) }
