package dingtalktest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/penstock-io/penstock/message"
)

// Stats counts what one app has seen since it was added.
type Stats struct {
	Opens       int // open requests that got a ticket
	OpensFailed int // open requests that did not
	Dials       int // sockets
	DialsFailed int // dials with a wrong, used or expired ticket
	Pushed      int // calls of Push
	Redelivered int // pushes beyond the first of their message
	Answered    int // pushes that were settled by an answer
	Unanswered  int // pushes that were given up
	Lost        int // pushes that no socket could take
	Held        int // pushes that wait for a socket now
	Acks        int // answers read
	Sent        int // messages the bot sent
	SendsFailed int // requests of the bot that were refused
}

// App is one app's side of the platform: its sockets, its pushes and what is
// known of its bot. Locks are taken in the order App.mu, Gateway.mu, socket.mu,
// and hooks are called without any.
type App struct {
	// immutable, or safe by themselves
	gw    *Gateway
	cred  Credentials
	index int
	blast atomic.Pointer[blast]

	mu       sync.Mutex // guards the following fields
	rng      *rand.Rand
	sessions []*Session // by age; closed ones stay while they are still chosen
	pending  map[*Pushed]struct{}
	held     []*Pushed                   // in the order in which they wait
	frames   map[message.FrameID]*Pushed // those in order
	order    ring[message.FrameID]
	acks     ring[Ack]
	sent     ring[Sent]
	failed   []failedEvent
	returned int // how many of failed the last call showed
	stats    Stats
	epoch    int           // sessionWebhooks of earlier epochs have expired
	changed  chan struct{} // closed and replaced when something happened
	files    map[string][]byte
	closed   bool
}

func newApp(g *Gateway, c Credentials, index int) *App {
	n := g.cfg.Record
	return &App{
		gw: g, cred: c, index: index,
		rng:     rand.New(rand.NewPCG(g.cfg.Seed, uint64(index))),
		pending: map[*Pushed]struct{}{},
		frames:  map[message.FrameID]*Pushed{},
		order:   ring[message.FrameID]{limit: n},
		acks:    ring[Ack]{limit: n},
		sent:    ring[Sent]{limit: n},
		changed: make(chan struct{}),
		files:   map[string][]byte{},
	}
}

// Credentials are what the app is known by.
func (a *App) Credentials() Credentials { return a.cred }

// Stats counts what has happened.
func (a *App) Stats() Stats {
	a.mu.Lock()
	defer a.mu.Unlock()
	s := a.stats
	s.Held = len(a.held)
	s.Acks, s.Sent = a.acks.total(), a.sent.total()
	return s
}

// Acks are the answers read so far, oldest first, up to Config.Record of them.
// Answers to pings and disconnects are not among them.
func (a *App) Acks() []Ack {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.acks.list()
}

// Sent is what the bot has sent so far, oldest first, up to Config.Record.
func (a *App) Sent() []Sent {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.sent.list()
}

// Sessions are the sockets that have not closed, oldest first.
func (a *App) Sessions() []*Session {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(a.sessions), func(s *Session) bool {
		return s.sock.isEnded()
	})
}

// Disconnect asks the client to leave all its sockets. See [Session.Disconnect].
func (a *App) Disconnect() { a.each((*Session).Disconnect) }

// Cut resets all sockets. See [Session.Cut].
func (a *App) Cut() { a.each((*Session).Cut) }

// Ping sends a SYSTEM ping on all sockets.
func (a *App) Ping() { a.each((*Session).Ping) }

func (a *App) each(f func(*Session)) {
	for _, s := range a.Sessions() {
		f(s)
	}
}

// AwaitSessions blocks until exactly n sockets may be chosen for pushes; those
// that the client was asked to leave do not count. A client may have its upgrade
// before the gateway counts the socket, so await it before the first push.
func (a *App) AwaitSessions(ctx context.Context, n int) error {
	return a.await(ctx, "sessions", func() bool {
		open := 0
		for _, s := range a.sessions {
			if s.upLocked() {
				open++
			}
		}
		return open == n
	})
}

// AwaitAcks blocks until n answers have been read in all, and returns them.
func (a *App) AwaitAcks(ctx context.Context, n int) ([]Ack, error) {
	err := a.await(ctx, "acks", func() bool { return a.acks.total() >= n })
	return a.Acks(), err
}

// AwaitSent blocks until the bot has sent n messages in all, and returns them.
func (a *App) AwaitSent(ctx context.Context, n int) ([]Sent, error) {
	err := a.await(ctx, "sends", func() bool { return a.sent.total() >= n })
	return a.Sent(), err
}

// await blocks until ok, which is called under mu, after each change.
func (a *App) await(ctx context.Context, what string, ok func() bool) error {
	for {
		a.mu.Lock()
		if ok() {
			a.mu.Unlock()
			return nil
		}
		if a.closed {
			a.mu.Unlock()
			return ErrClosed
		}
		changed := a.changed
		a.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("await %s: %w", what, ctx.Err())
		}
	}
}

// notifyLocked wakes everybody who awaits something.
func (a *App) notifyLocked() {
	close(a.changed)
	a.changed = make(chan struct{})
}

// uuid is the appId of frames, which is not the client id.
func (a *App) uuid() string {
	return fmt.Sprintf("0a1b2c3d-0000-4000-8000-%012x", a.index+1)
}

// frameID makes the id of a push in the platform's form.
func (a *App) frameID(serial uint64, tail string) message.FrameID {
	return message.FrameID(fmt.Sprintf("%08x_%d_%x_%s",
		0x0a0b0c00+a.index, serial%1000, time.Now().UnixMilli()<<16|int64(serial&0xffff), tail))
}

// admit takes in a socket; it is nil when the gateway has stopped.
func (a *App) admit(s *Session) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		return false
	}
	s.state = StateOpen
	a.sessions = append(a.sessions, s)
	a.stats.Dials++
	if every := a.gw.cfg.PingEvery; every > 0 {
		s.ping = time.AfterFunc(every, s.keepPinging)
	}
	if age := a.gw.cfg.SocketAge; age > 0 {
		s.disconnect = time.AfterFunc(age, s.Disconnect)
	}
	a.releaseLocked()
	a.notifyLocked()
	return true
}

// gone takes leave of a socket that has ended. One that broke, as against one
// that was asked or asked to go, may go on being chosen for a while.
func (a *App) gone(s *Session) {
	a.mu.Lock()
	defer a.mu.Unlock()
	graceful := s.state != StateOpen
	s.state = StateClosed
	for _, t := range []*time.Timer{s.ping, s.disconnect, s.bye} {
		if t != nil {
			t.Stop()
		}
	}
	if dead := a.gw.cfg.DeadFor; dead > 0 && !graceful && !a.closed {
		time.AfterFunc(dead, func() { a.forget(s) })
	} else {
		a.forgetLocked(s)
	}
	a.notifyLocked()
}

func (a *App) forget(s *Session) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.forgetLocked(s)
}

func (a *App) forgetLocked(s *Session) {
	a.sessions = slices.DeleteFunc(a.sessions, func(o *Session) bool { return o == s })
}

// stop ends all sockets and pushes. It does not wait: the requests that serve
// the sockets are waited for by the gateway.
func (a *App) stop() {
	a.mu.Lock()
	a.closed = true
	for p := range a.pending {
		a.settleLocked(p, ErrClosed)
	}
	a.held = nil
	sessions := slices.Clone(a.sessions)
	a.notifyLocked()
	a.mu.Unlock()
	for _, s := range sessions {
		s.sock.end("gateway stopped")
	}
}
