package wire

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"time"
)

// ErrWrite means that a write has failed, wholly or in part. The socket has ended.
var ErrWrite = errors.New("write failed")

// beginLocked makes the caller the writer.
func (s *Socket) beginLocked() {
	s.writing = true
	s.writer.Add(1)
}

// wakeLocked makes sure that somebody writes.
func (s *Socket) wakeLocked() {
	if !s.writing {
		s.beginLocked()
		go s.run()
	}
}

// write empties the lanes and ends.
func (s *Socket) write() {
	defer s.writer.Done()
	for {
		// Senders that are ready to run get to fill the next write.
		runtime.Gosched()
		u := s.next()
		if u == nil {
			return
		}
		s.flush(u)
	}
}

// step writes one unit on the goroutine of a sender, and leaves what has come
// meanwhile to a writer of its own.
func (s *Socket) step() {
	if u := s.next(); u != nil {
		s.flush(u)
		s.mu.Lock()
		if s.emptyLocked() {
			s.writing = false
		} else {
			go s.run()
			s.mu.Unlock()
			return
		}
		s.mu.Unlock()
	}
	s.writer.Done()
}

func (s *Socket) emptyLocked() bool {
	for i := range s.lanes {
		if s.lanes[i].queue.n > 0 {
			return false
		}
	}
	return s.shut == nil
}

// next takes what leaves next; nil ends the writer.
func (s *Socket) next() *unit {
	s.mu.Lock()
	defer s.mu.Unlock()
	u := units.Get().(*unit)
	u.began = time.Now()
	s.buryLocked(u)
	s.gatherLocked(u)
	s.admitLocked()
	if u.empty() && s.shut != nil {
		u.add(s.farewellLocked())
	}
	if u.empty() {
		s.writing = false
		u.recycle()
		return nil
	}
	return u
}

// buryLocked takes out what will never be written: after a polite end those that
// stand in line, after any other end all.
func (s *Socket) buryLocked(u *unit) {
	if s.gate == nil {
		return
	}
	for i := range s.lanes {
		l := &s.lanes[i]
		for s.broken && l.queue.n > 0 {
			u.dead = append(u.dead, l.pop())
		}
		for l.line.n > 0 {
			u.dead = append(u.dead, l.leave())
		}
	}
}

// farewellLocked gives the close frame; nothing follows it.
func (s *Socket) farewellLocked() *op {
	o := newOp(Control)
	o.b = appendFrame(o.b, Shut, !s.cfg.Server, s.shut)
	o.farewell = true
	s.shut = nil
	return o
}

// turn is how many frames of others a lane lets pass before it is its turn.
const turn = 16

// gatherLocked fills a unit. Control frames come first, as many as leave the
// other lanes their turn.
func (s *Socket) gatherLocked(u *unit) {
	for n := s.controlLocked(); n > 0 && s.takeLocked(u, Control); n-- {
	}
	for s.takeLocked(u, s.contentLocked()) {
	}
}

func (s *Socket) controlLocked() int {
	switch {
	case s.lanes[Bulk].queue.n > 0:
		return max(1, turn-1-s.passed[Bulk])
	case s.lanes[Normal].queue.n > 0 || s.lanes[Critical].queue.n > 0:
		return turn
	}
	return s.lanes[Control].queue.n
}

// contentLocked is the lane whose turn it is, lanes for none.
func (s *Socket) contentLocked() Lane {
	for _, l := range [...]Lane{Bulk, Normal} {
		if s.lanes[l].queue.n > 0 && s.passed[l] >= turn-1 {
			return l
		}
	}
	for _, l := range [...]Lane{Critical, Normal, Bulk} {
		if s.lanes[l].queue.n > 0 {
			return l
		}
	}
	return lanes
}

// takeLocked moves one frame into the unit, or aside if its time is up. It
// returns false when there is none or when it does not fit.
func (s *Socket) takeLocked(u *unit, l Lane) bool {
	if l == lanes || s.lanes[l].queue.n == 0 {
		return false
	}
	o := s.lanes[l].queue.head
	late := o.late(u.began)
	if !late && !u.takes(o) {
		return false
	}
	s.lanes[l].pop()
	o.began = u.began
	if late {
		u.late = append(u.late, o)
		return true
	}
	u.add(o)
	s.countLocked(l)
	return true
}

// countLocked notes which waiting lanes have been passed.
func (s *Socket) countLocked(l Lane) {
	for _, other := range [...]Lane{Bulk, Normal} {
		switch {
		case other == l || s.lanes[other].queue.n == 0:
			s.passed[other] = 0
		case other == Bulk || l == Critical:
			s.passed[other]++
		}
	}
}

// admitLocked gives room that has become free to those who stand in line.
func (s *Socket) admitLocked() {
	if s.gate != nil {
		return
	}
	for i := range s.lanes {
		l := &s.lanes[i]
		for l.line.n > 0 && l.fits(len(l.line.head.b)) {
			o := l.leave()
			l.push(o)
			s.stats.Taken++
			if o.wants == queued {
				o.tell()
			}
		}
	}
}

// flush writes a unit to its end: every frame is settled when it returns.
func (s *Socket) flush(u *unit) {
	defer u.recycle()
	s.settle(u.late, context.DeadlineExceeded)
	s.settle(u.dead, ErrClosed)
	limit := u.began.Add(s.cfg.WriteTimeout)
	for len(u.ops) > 0 {
		n, err := s.put(u, u.by(limit))
		if err == nil {
			s.settle(u.ops, nil)
			return
		}
		s.retreat(u, n, err, limit)
	}
}

// put writes what is left of a unit and tells how many bytes have gone.
func (s *Socket) put(u *unit, by time.Time) (int, error) {
	if err := s.conn.SetWriteDeadline(by); err != nil {
		return 0, err
	}
	last := u.ops[len(u.ops)-1]
	if len(u.ops) == 1 {
		return s.putBytes(last.b[u.skip:])
	}
	head := u.ops
	if len(last.b) > bigFrame {
		head = head[:len(head)-1]
	}
	n, err := s.putAll(head, u.skip)
	if err != nil || len(head) == len(u.ops) {
		return n, err
	}
	more, err := s.putBytes(last.b)
	return n + more, err
}

func (s *Socket) putAll(ops []*op, skip int) (int, error) {
	all := newBatch()
	defer all.release()
	for _, o := range ops {
		all.b = append(all.b, o.b...)
	}
	return s.putBytes(all.b[skip:])
}

func (s *Socket) putBytes(b []byte) (int, error) {
	s.writes.Add(1)
	return s.conn.Write(b)
}

// retreat takes stock after a write that stopped after n bytes. Frames that have
// gone are written. If the deadline of frames stopped it that have not begun,
// they leave the unit and the rest may go on; otherwise the socket ends.
func (s *Socket) retreat(u *unit, n int, err error, limit time.Time) {
	s.settle(u.advance(n), nil)
	now := time.Now()
	if errors.Is(err, os.ErrDeadlineExceeded) && s.resumes && now.Before(limit) {
		if late, ok := u.expire(now); ok {
			s.settle(late, context.DeadlineExceeded)
			return
		}
	}
	err = fmt.Errorf("%w: %w", ErrWrite, err)
	s.Fail(err)
	s.settle(u.ops, err)
	u.ops = u.ops[:0]
}

// settle ends frames: it reports them, hands their bytes to tracking or back to
// the budget, and tells their senders last.
func (s *Socket) settle(ops []*op, err error) {
	if len(ops) == 0 {
		return
	}
	var freed [classes]int
	s.report(ops, err)
	for _, o := range ops {
		if o.entry != nil {
			s.track.settle(o, err)
		}
		freed[o.lane.class()] += o.held
	}
	s.cfg.Peer.release(freed)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, o := range ops {
		s.endLocked(o, err)
	}
}

func (s *Socket) report(ops []*op, err error) {
	h := &s.cfg.Hooks
	if tried := err == nil || errors.Is(err, ErrWrite); tried && h.Sent != nil {
		now := time.Now()
		for _, o := range ops {
			if !o.farewell {
				h.Sent(Sent{o.lane, now.Sub(o.at), o.began.Sub(o.at), len(o.b), err})
			}
		}
	}
	for _, o := range ops {
		if err != nil && !o.farewell {
			h.dropped(o.lane, err)
		}
	}
}

func (s *Socket) endLocked(o *op, err error) {
	switch {
	case !o.taken:
	case err == nil:
		s.stats.Written++
	default:
		s.stats.Dropped++
	}
	o.phase, o.err = over, err
	if o.waited {
		o.tell()
	} else {
		o.recycle()
	}
}
