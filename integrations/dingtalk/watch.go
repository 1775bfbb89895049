package dingtalk

import (
	"errors"
	"time"

	"github.com/gorilla/websocket"

	"github.com/penstock-io/penstock/internal/wire"
)

// phase is how far a session is from its end. Phases only go up.
type phase uint8

const (
	serving  phase = iota
	retiring       // the gateway has announced that it will hang up
	parting        // our context has ended: owed acknowledgements still go out
	closing        // the close frame is queued or sent
	over           // the timer does nothing any more
)

const (
	// retireWithin is when the gateway hangs up after it has announced it.
	retireWithin = 10 * time.Second
	// retireMargin is what it gets on top before we do.
	retireMargin = 5 * time.Second
	// closeWait is how long the peer has for answering our close frame.
	closeWait = time.Second
)

// Why a session gave its socket up.
var (
	errSilent     = errors.New("nothing was read for too long")
	errAppSilent  = errors.New("no frame of the application was read for too long")
	errNotReading = errors.New("the peer does not read: too many acknowledgements wait")
	errNoFarewell = errors.New("the peer did not answer the close frame")
)

// watch starts the one timer of the session: pings, silence and deadlines.
func (s *session) watch() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.timer = time.AfterFunc(time.Hour, s.tick)
	s.rearmLocked(time.Now())
}

// unwatch stops the timer. A tick that runs meanwhile finds the session over.
func (s *session) unwatch() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.phase = over
	s.timer.Stop()
}

// hear notes that the peer is alive.
func (s *session) hear(now time.Time) { s.heard.Store(int64(now.Sub(s.started))) }

func (s *session) heardAt() time.Time  { return s.started.Add(time.Duration(s.heard.Load())) }
func (s *session) servedAt() time.Time { return s.started.Add(time.Duration(s.served.Load())) }

// tick does what is due. It never blocks.
func (s *session) tick() {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	switch {
	case s.phase == over:
		return
	case s.phase < closing && now.Sub(s.heardAt()) >= s.c.cfg.Silence:
		s.sock.Fail(errSilent)
		return
	case s.phase == serving && s.appSilent(now):
		s.sock.Fail(errAppSilent)
		return
	case s.phase == closing && !now.Before(s.deadline):
		s.sock.Fail(errNoFarewell)
		return
	case s.phase > serving && !now.Before(s.deadline):
		s.closeLocked(now)
	}
	if s.phase < closing && !now.Before(s.nextPing) {
		s.pong(wire.Ping, nil)
		s.nextPing = now.Add(s.c.cfg.PingEvery)
	}
	s.rearmLocked(now)
}

func (s *session) appSilent(now time.Time) bool {
	return s.c.cfg.AppSilence > 0 && now.Sub(s.servedAt()) >= s.c.cfg.AppSilence
}

// rearmLocked sets the timer to the next thing that can become due.
func (s *session) rearmLocked(now time.Time) {
	next := s.deadline
	if s.phase < closing {
		next = earlier(next, s.nextPing)
		next = earlier(next, s.heardAt().Add(s.c.cfg.Silence))
	}
	if s.phase == serving && s.c.cfg.AppSilence > 0 {
		next = earlier(next, s.servedAt().Add(s.c.cfg.AppSilence))
	}
	s.timer.Reset(next.Sub(now))
}

// earlier is the first of two times, of which a may be zero for never.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || b.Before(a) {
		return b
	}
	return a
}

// retire begins the end that the gateway has asked for. It tells whether this is
// news.
func (s *session) retire() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.phase != serving {
		return false
	}
	now := time.Now()
	s.enterLocked(retiring, now, retireWithin+retireMargin)
	return true
}

// leave begins the end that our own context has asked for.
func (s *session) leave() {
	s.leaving.Store(true)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.phase >= parting {
		return
	}
	now := time.Now()
	s.enterLocked(parting, now, s.c.cfg.AckGrace)
	if s.owed.Load() == 0 {
		s.closeLocked(now)
	}
}

// settled notes that a delivery needs nothing more of the session.
func (s *session) settled() {
	if s.owed.Add(-1) > 0 || !s.leaving.Load() {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.phase == parting {
		s.closeLocked(time.Now())
	}
}

// closeLocked lets what is queued leave, the close frame last.
func (s *session) closeLocked(now time.Time) {
	s.sock.Finish(websocket.CloseNormalClosure)
	s.enterLocked(closing, now, closeWait)
}

func (s *session) enterLocked(p phase, now time.Time, within time.Duration) {
	s.phase = p
	s.deadline = now.Add(within)
	s.rearmLocked(now)
}
