package wire

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Frame is one frame to send.
type Frame struct {
	Lane Lane
	Op   Op
	// Payload is copied. It is not used when Append is set.
	Payload []byte
	// Append adds the payload to b and returns the result. It runs when there is
	// room for one more encoder, and runs again if the bytes that it made did not
	// fit the budget at once, so it must give the same each time.
	Append func(b []byte) ([]byte, error)
	// Size, with Append, is about how large the payload becomes. That much is
	// reserved before Append runs. 0: unknown.
	Size int
	// ID, if not empty, has the frame tracked until it is acknowledged. Control
	// frames are not tracked.
	ID string
	// By is when the frame is given up, for whatever it waits then. Zero: when
	// the context ends, or Config.SendTimeout from now; without waiting, never.
	By time.Time
}

// way is one of the ways to send.
type way struct {
	wants    phase // what the sender waits for, made for nothing
	required bool  // failure ends the socket
}

func (w way) waits() bool { return w.wants != made }

// Send hands over one frame as Try does; payload is copied.
func (s *Socket) Send(l Lane, op Op, payload []byte) error {
	return s.send(context.Background(), Frame{Lane: l, Op: op, Payload: payload}, way{})
}

// Try hands over one frame and never blocks: acknowledgements and pongs go this
// way. It returns ErrFull, ErrBudget, ErrTooLarge, ErrEncode, ErrClosed or a
// [DuplicateError]; then the frame was not taken.
func (s *Socket) Try(f Frame) error { return s.send(context.Background(), f, way{}) }

// Offer waits until the frame is taken, for what is worth a little patience. An
// error means that it was dropped, and why. A frame that was taken is dropped
// later if its time is up before its first byte leaves.
func (s *Socket) Offer(ctx context.Context, f Frame) error {
	return s.send(ctx, f, way{wants: queued})
}

// Write waits until the frame is handed to the connection. After an error the
// frame has not been written, unless it is ErrWrite: then the socket has ended,
// and what the peer has read of it is unknown.
//
// One deadline bounds everything: the wait for bytes, the queue and the write. If
// it passes before the frame's first byte has left, the socket lives on; if it
// passes later, half a frame is on the wire and the socket ends. Over TLS a frame
// counts as begun when its write begins. Cancelling ctx gives up the waiting, but
// not a write under way.
func (s *Socket) Write(ctx context.Context, f Frame) error {
	return s.send(ctx, f, way{wants: over})
}

// Require is Write for a frame without which the connection makes no sense:
// failure of any kind ends the socket, except that the frame is a duplicate.
func (s *Socket) Require(ctx context.Context, f Frame) error {
	return s.send(ctx, f, way{wants: over, required: true})
}

// Resend sends a frame that waits for its acknowledgement once more. It never
// blocks. It returns what is known of the frame afterwards: Queued if it is on its
// way, by this call or already. On an error nothing has changed.
func (s *Socket) Resend(id string) (State, error) {
	if err := s.enter(); err != nil {
		return s.track.State(id), err
	}
	defer s.users.Done()
	o, state := s.track.lift(id)
	if o == nil {
		return state, nil
	}
	l := o.lane
	if _, err := s.enqueue(o, way{}); err != nil {
		s.forgo(o, err)
		o.recycle()
		return Written, err
	}
	s.track.noteResent()
	if s.cfg.Hooks.Resent != nil {
		s.cfg.Hooks.Resent(l)
	}
	return Queued, nil
}

func (s *Socket) send(ctx context.Context, f Frame, w way) error {
	err := s.enter()
	if err != nil {
		s.cfg.Hooks.dropped(f.Lane, err)
	} else {
		err = s.pass(ctx, f, w)
		s.users.Done()
	}
	if err != nil && w.required && !errors.As(err, new(*DuplicateError)) {
		s.Fail(fmt.Errorf("required frame: %w", err))
	}
	return err
}

// enter makes the caller somebody for whom Close waits. Each nil is followed by
// users.Done.
func (s *Socket) enter() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gate == nil {
		s.users.Add(1)
	}
	return s.gate
}

// pass brings one frame through: cap, budget, encoding, lane.
func (s *Socket) pass(ctx context.Context, f Frame, w way) error {
	if err := s.check(f); err != nil {
		s.cfg.Hooks.dropped(f.Lane, err)
		return err
	}
	o := newOp(f.Lane)
	if f.ID != "" && f.Lane != Control {
		e, state := s.track.begin(f.ID, f.Lane)
		if e == nil {
			o.recycle()
			return &DuplicateError{state}
		}
		o.entry = e
	}
	o.by = s.deadline(ctx, f, w, o.at)
	err := s.fill(ctx, f, o, w)
	mine := false
	if err == nil {
		mine, err = s.enqueue(o, w)
	}
	if err != nil {
		s.abandon(o, err)
		return err
	}
	if !w.waits() {
		return nil // the writer has o now
	}
	if mine {
		s.step()
	}
	return s.await(ctx, o)
}

// check refuses what can never be sent, before it costs a buffer.
func (s *Socket) check(f Frame) error {
	n := len(f.Payload)
	if f.Append != nil {
		n = f.Size
	}
	return s.fits(f.Op, n)
}

func (s *Socket) fits(op Op, n int) error {
	if n > s.cfg.MaxFrame || op.isControl() && n > maxControl {
		return ErrTooLarge
	}
	return nil
}

// deadline is the earliest of those that are set.
func (s *Socket) deadline(ctx context.Context, f Frame, w way, now time.Time) time.Time {
	by, ok := ctx.Deadline()
	if !f.By.IsZero() && (!ok || f.By.Before(by)) {
		return f.By
	}
	if !ok && w.waits() {
		return now.Add(s.cfg.SendTimeout)
	}
	return by
}

// enqueue hands o to the lane or to its waiting line. On an error o is still the
// caller's. The caller must take a step when mine is true: it is the writer then,
// which spares a goroutine and the way to it.
func (s *Socket) enqueue(o *op, w way) (mine bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gate != nil {
		return false, s.gate
	}
	l := &s.lanes[o.lane]
	takes := l.takes(len(o.b))
	switch {
	case takes:
		l.push(o)
		s.stats.Taken++
	case w.waits():
		o.phase = waiting
		l.line.push(o)
	default:
		return false, ErrFull
	}
	o.wants, o.waited = w.wants, w.waits()
	if w.wants == over && !s.writing {
		s.beginLocked()
		return true, nil
	}
	s.wakeLocked()
	return false, nil
}

// await waits for what the sender wants. A result that is there wins over a
// deadline that has passed.
func (s *Socket) await(ctx context.Context, o *op) error {
	told, err := s.blocking(o)
	if told == nil {
		return err
	}
	timer := time.NewTimer(time.Until(o.by))
	defer timer.Stop()
	gone := s.gone
	for {
		select {
		case <-told:
			return s.result(o)
		case <-gone:
			gone = nil
			s.withdraw(o, waiting, ErrClosed)
			continue
		case <-timer.C:
			s.withdraw(o, queued, context.DeadlineExceeded)
		case <-ctx.Done():
			s.withdraw(o, queued, ctx.Err())
		}
		<-told // at once, or when the write has ended, which the deadline bounds too
	}
}

// blocking gives the channel to wait for. It is nil if there is nothing to wait
// for; then the result is here, and o is gone.
func (s *Socket) blocking(o *op) (<-chan struct{}, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if o.reached() {
		return nil, resultLocked(o)
	}
	told := make(chan struct{})
	o.told = told
	return told, nil
}

// withdraw takes o back if it has come no further than the given phase.
func (s *Socket) withdraw(o *op, last phase, err error) {
	s.mu.Lock()
	mine := !o.reached() && o.phase <= last
	if mine {
		s.lanes[o.lane].remove(o)
		s.admitLocked()
	}
	s.mu.Unlock()
	if mine {
		s.settle([]*op{o}, err)
	}
}

// result ends the sender's hold on o.
func (s *Socket) result(o *op) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return resultLocked(o)
}

func resultLocked(o *op) error {
	err := o.err
	o.waited = false
	if o.phase == over {
		o.recycle()
	}
	return err
}

// abandon gives back what a frame holds that was not taken.
func (s *Socket) abandon(o *op, err error) {
	s.cfg.Hooks.dropped(o.lane, err)
	s.forgo(o, err)
	o.recycle()
}

// forgo ends the tracking of a frame and its reservation.
func (s *Socket) forgo(o *op, err error) {
	if o.entry != nil {
		s.track.settle(o, err)
	}
	s.release(o)
}

func (s *Socket) release(o *op) {
	var freed [classes]int
	freed[o.lane.class()] = o.held
	o.held = 0
	s.cfg.Peer.release(freed)
}
