package dingtalktest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/gorilla/websocket"

	"github.com/penstock-io/penstock/message"
)

// Outcomes of a push other than an answer.
var (
	// ErrUnanswered means that the push was given up: not answered in time, or,
	// for an event, not with success, in any of its tries.
	ErrUnanswered = errors.New("not answered")
	// ErrLost means that no socket could take the push.
	ErrLost = errors.New("no socket to push to")
)

// Try is one push of a message on one socket.
type Try struct {
	Frame   message.FrameID
	Session int
	At      time.Time
}

// Pushed follows one message until its outcome.
type Pushed struct {
	// immutable
	app  *App
	f    frame
	done chan struct{} // closed by settle

	// guarded by app.mu
	tries   []Try
	timer   *time.Timer
	turn    int // a timer of an earlier turn does nothing
	fails   int
	waiting bool // between a failed try and the next
	settled bool
	ack     Ack
	err     error
}

// Push sends a message to one socket of the app that has subscribed to its
// topic, chosen at random. It does not block. The error is ErrClosed, or tells
// that the message cannot be encoded; that no socket is there is an outcome.
func (a *App) Push(m Message) (*Pushed, error) {
	f, err := m.frame(scope{app: a, now: time.Now(), serial: a.gw.nextSerial()})
	if err != nil {
		return nil, fmt.Errorf("push: %w", err)
	}
	p := &Pushed{app: a, f: f, done: make(chan struct{})}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		return nil, ErrClosed
	}
	a.stats.Pushed++
	a.pending[p] = struct{}{}
	a.deliverLocked(p)
	return p, nil
}

// ID is the stable id: msgId or eventId. It is empty for callbacks, which have
// none.
func (p *Pushed) ID() message.ID { return p.f.id }

// Data is the inner document that was pushed.
func (p *Pushed) Data() string { return p.f.inner }

// Done is closed when there is an outcome.
func (p *Pushed) Done() <-chan struct{} { return p.done }

// Tries are the pushes so far.
func (p *Pushed) Tries() []Try {
	p.app.mu.Lock()
	defer p.app.mu.Unlock()
	return slices.Clone(p.tries)
}

// Wait blocks until there is an outcome: the answer that settled the message, or
// ErrUnanswered, ErrLost or ErrClosed, or the context's error.
func (p *Pushed) Wait(ctx context.Context) (Ack, error) {
	select {
	case <-p.done:
	case <-ctx.Done():
		return Ack{}, fmt.Errorf("wait for the answer: %w", ctx.Err())
	}
	p.app.mu.Lock()
	defer p.app.mu.Unlock()
	return p.ack, p.err
}

// deliverLocked makes the next try, or deals with there being no socket. An event
// then waits for its next turn, since events are pushed reliably; a message that
// was pushed before and cannot be again was not answered, rather than lost.
func (a *App) deliverLocked(p *Pushed) {
	s := a.chooseLocked(&p.f)
	switch {
	case s != nil:
		a.writeLocked(p, s)
	case a.gw.cfg.Down == DownHold && len(a.held) < a.gw.cfg.HoldLimit:
		a.held = append(a.held, p)
	case p.f.kind == kindEvent:
		a.failLocked(p)
	case len(p.tries) > 0:
		a.settleLocked(p, ErrUnanswered)
	default:
		a.settleLocked(p, ErrLost)
	}
}

// chooseLocked picks a socket for a frame at random: an open one, a zombie, or
// one whose death has not been noticed.
func (a *App) chooseLocked(f *frame) *Session {
	n := 0
	var chosen *Session
	for _, s := range a.sessions {
		if !s.chosenLocked(f) {
			continue
		}
		n++
		if a.rng.IntN(n) == 0 {
			chosen = s
		}
	}
	return chosen
}

// chosenLocked tells whether a frame may be given to the socket. One that has
// closed is in the app's list only for as long as nobody has noticed.
func (s *Session) chosenLocked(f *frame) bool {
	return (s.upLocked() || s.state == StateClosed) && s.takes(f)
}

// upLocked tells whether pushes on the socket have a chance, as far as the
// gateway has noticed.
func (s *Session) upLocked() bool {
	return s.state == StateOpen && (s.app.gw.cfg.DeadFor > 0 || !s.sock.isEnded())
}

// writeLocked gives the push to a socket and starts the wait for its answer. The
// wait is the same when the bytes vanish, as the platform would not know.
func (a *App) writeLocked(p *Pushed, s *Session) {
	try := Try{Frame: a.nextFrameLocked(p), Session: s.id, At: time.Now()}
	if len(p.tries) > 0 {
		a.stats.Redelivered++
	}
	p.tries, p.waiting = append(p.tries, try), false
	s.pushed.Add(1)
	if !s.gagged.Load() {
		s.sock.send(websocket.TextMessage,
			p.f.render(nil, push{frameID: try.Frame, connection: s.uuid, at: try.At}))
	}
	a.armLocked(p, a.timeout(p.f.kind), (*App).expireLocked)
}

// nextFrameLocked gives the frame id of the next try and remembers whose it is.
func (a *App) nextFrameLocked(p *Pushed) message.FrameID {
	if id := p.f.headers[headerMessageID]; id != "" {
		a.rememberLocked(message.FrameID(id), p)
		return message.FrameID(id)
	}
	if len(p.tries) > 0 && p.f.kind == kindRobot && a.gw.cfg.Redelivery == RedeliverSame {
		return p.tries[0].Frame
	}
	id := a.frameID(a.gw.nextSerial(), "1")
	a.rememberLocked(id, p)
	return id
}

// rememberLocked keeps frame ids beyond the outcome, so that late and double
// answers are known for what they are.
func (a *App) rememberLocked(id message.FrameID, p *Pushed) {
	if _, known := a.frames[id]; !known {
		if old, full := a.order.put(id); full {
			delete(a.frames, old)
		}
	}
	a.frames[id] = p
}

// timeout is how long an answer is waited for; 0 means for ever.
func (a *App) timeout(k kind) time.Duration {
	switch k {
	case kindRobot:
		return a.gw.cfg.RobotTimeout
	case kindEvent:
		return a.gw.cfg.EventTimeout
	case kindSync:
		return a.gw.cfg.CardTimeout
	default:
		return 0
	}
}

// armLocked lets next happen after d, unless something else happens first; 0
// means never.
func (a *App) armLocked(p *Pushed, d time.Duration, next func(*App, *Pushed)) {
	if p.timer != nil {
		p.timer.Stop()
	}
	p.turn++
	if d == 0 {
		return
	}
	turn := p.turn
	p.timer = time.AfterFunc(d, func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		if p.turn == turn && !p.settled {
			next(a, p)
		}
	})
}

// expireLocked deals with a push that was not answered in time.
func (a *App) expireLocked(p *Pushed) {
	switch {
	case p.f.kind == kindEvent:
		a.failLocked(p)
	case p.f.kind == kindRobot && len(p.tries) < 2 && a.gw.cfg.Redelivery != RedeliverNever:
		a.deliverLocked(p)
	default:
		a.settleLocked(p, ErrUnanswered)
	}
}

// failLocked plans the next try of an event, or gives it up.
func (a *App) failLocked(p *Pushed) {
	retries := a.gw.cfg.EventRetries
	if p.fails >= len(retries) {
		a.failed = append(a.failed, failedEvent{tag: p.f.tag, data: p.f.inner, at: time.Now()})
		if over := len(a.failed) - a.gw.cfg.Record; over > 0 {
			a.failed = a.failed[over:]
			a.returned = max(0, a.returned-over)
		}
		a.settleLocked(p, ErrUnanswered)
		return
	}
	wait := max(retries[p.fails], 1) // 0 would mean never
	p.fails, p.waiting = p.fails+1, true
	a.armLocked(p, wait, (*App).deliverLocked)
}

// settleLocked ends a push; err is nil when it was answered.
func (a *App) settleLocked(p *Pushed, err error) {
	if p.settled {
		return
	}
	a.armLocked(p, 0, nil)
	p.settled, p.err = true, err
	delete(a.pending, p)
	switch {
	case err == nil:
		a.stats.Answered++
	case errors.Is(err, ErrUnanswered):
		a.stats.Unanswered++
	case errors.Is(err, ErrLost):
		a.stats.Lost++
	}
	close(p.done)
}

// releaseLocked pushes what is held and can be taken now.
func (a *App) releaseLocked() {
	held := a.held
	a.held = nil
	for _, p := range held {
		if !p.settled {
			a.deliverLocked(p)
		}
	}
}
