package wire

import (
	"slices"
	"sync"
	"time"
)

// unit is what leaves before the lanes are looked at again: control frames, then
// either content as it fits into one batch or one big frame.
type unit struct {
	ops     []*op // in the order of writing
	size    int
	content int  // how many are not control
	big     bool // the last is written from its own memory
	skip    int  // bytes of the first that are on the wire
	began   time.Time

	late []*op // their time was up before their turn
	dead []*op // the socket has ended before their turn
}

var units = sync.Pool{New: func() any { return new(unit) }}

func (u *unit) recycle() {
	clear(u.ops[:cap(u.ops)])
	*u = unit{ops: u.ops[:0]}
	units.Put(u)
}

// takes tells whether a frame may join. The first that is not control always may,
// so that no flood of control frames keeps the others out. A big one may as the
// first only, so that a control frame that comes later waits for one frame, not
// for a batch too.
func (u *unit) takes(o *op) bool {
	switch {
	case u.big:
		return false
	case len(u.ops) == 0, o.lane != Control && u.content == 0:
		return true
	}
	return len(o.b) <= bigFrame && u.size+len(o.b) <= batchSize
}

func (u *unit) add(o *op) {
	u.big = len(u.ops) > 0 && len(o.b) > bigFrame
	u.ops = append(u.ops, o)
	u.size += len(o.b)
	if o.lane != Control {
		u.content++
	}
}

func (u *unit) empty() bool { return len(u.ops)+len(u.late)+len(u.dead) == 0 }

// by is the first deadline of the frames and the writer's own.
func (u *unit) by(limit time.Time) time.Time {
	for _, o := range u.ops {
		if !o.by.IsZero() && o.by.Before(limit) {
			limit = o.by
		}
	}
	return limit
}

// advance takes out the frames of which the last byte is among the next n.
func (u *unit) advance(n int) []*op {
	n += u.skip
	i := 0
	for ; i < len(u.ops) && n >= len(u.ops[i].b); i++ {
		n -= len(u.ops[i].b)
	}
	u.skip = n
	done := slices.Clone(u.ops[:i])
	u.ops = slices.Delete(u.ops, 0, i)
	return done
}

// expire takes out the frames whose time is up. It is not ok when there is none,
// or when one of them is on the wire in part.
func (u *unit) expire(now time.Time) (late []*op, ok bool) {
	if u.skip > 0 && u.ops[0].late(now) {
		return nil, false
	}
	u.ops = slices.DeleteFunc(u.ops, func(o *op) bool {
		if o.late(now) {
			late = append(late, o)
		}
		return o.late(now)
	})
	return late, len(late) > 0
}
