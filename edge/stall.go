package edge

import (
	"slices"
	"time"

	"github.com/penstock-io/penstock/internal/wire"
)

// A connection that owes an answer and says nothing may be busy or may have stopped
// reading. A WebSocket ping tells: clients answer it while their handlers work.
const (
	probeAfter = 250 * time.Millisecond // of silence, when there is one more message for it
	watchAfter = 2 * time.Second        // of silence, when there is not
	stallAfter = time.Second            // without an answer to the ping
)

// probeLocked asks a connection that owes an answer, and has been silent for so
// long, whether it reads.
func (p *peer) probeLocked(now time.Time, after time.Duration) {
	if p.owed == 0 || p.silence(now) < after || p.probed.Load() > p.heard.Load() {
		return
	}
	p.probed.Store(int64(now.Sub(p.opened)))
	_ = p.sock.Send(wire.Control, wire.Ping, nil) // what fills the lane asks for the same
}

// stalledLocked tells whether a connection does not read: it has left a ping
// unanswered.
func (p *peer) stalledLocked(now time.Time) bool {
	at := p.probed.Load()
	return at > p.heard.Load() && now.Sub(p.opened)-time.Duration(at) > stallAfter
}

// noteStallLocked counts a stall once, and its end.
func (c *consumer) noteStallLocked(p *peer, now time.Time) {
	stalled := p.stalledLocked(now)
	if stalled == p.stalled {
		return
	}
	p.stalled = stalled
	if !stalled {
		c.srv.log.Info("a consumer's connection reads again", "consumer", c.name, "connection", p.id)
		return
	}
	c.nextLocked(len(c.line)) // those in line may wait for this one only
	c.srv.count.stalls.Add(1)
	c.srv.log.Warn("a consumer's connection does not read and gets nothing new",
		"consumer", c.name, "connection", p.id, "unanswered", p.owed)
}

// hopelessLocked tells whether a stalled connection should be cut off: it has been
// silent for as long as a write may take, and there is another one for what it takes.
// The only one is left alone: its bot may be busy without reading, and would be
// given the same again.
func (c *consumer) hopelessLocked(p *peer, now time.Time) bool {
	return p.stalledLocked(now) && p.silence(now) >= c.srv.cfg.WriteTimeout &&
		slices.ContainsFunc(c.peers, func(o *peer) bool {
			return !o.retiring && !o.stalledLocked(now) && o.covers(p)
		})
}

// covers tells whether p takes all that o does.
func (p *peer) covers(o *peer) bool {
	for sub := range o.subs {
		if !p.subs[sub] {
			return false
		}
	}
	return true
}
