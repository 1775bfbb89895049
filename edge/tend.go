package edge

import (
	"strings"
	"time"

	"github.com/penstock-io/penstock/internal/wire"
)

// tend looks after a consumer's connections: it pings them, ends those that are
// silent or do not read, and asks those to leave that are not wanted any more.
func (c *consumer) tend(now time.Time) {
	cfg := &c.srv.cfg
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range c.peers {
		c.noteStallLocked(p, now)
		switch {
		case p.silence(now) > 3*cfg.PingEvery+5*time.Second:
			p.cut(closedSilent)
		case c.hopelessLocked(p, now):
			p.cut(closedSlow)
		case !p.noticed.IsZero():
			asked := now.Sub(p.noticed)
			if p.silence(now) > cfg.LeaveWithin && asked > cfg.LeaveWithin || asked > 3*cfg.LeaveWithin {
				p.cut(closedAsked)
			}
		case p.retiring && (p.owed == 0 || now.Sub(p.retired) > cfg.AckWithin):
			c.noticeLocked(p, now)
		case now.Sub(p.pinged) >= cfg.PingEvery:
			c.pingLocked(p, now)
		default:
			p.probeLocked(now, watchAfter)
		}
	}
}

// pingLocked asks for a sign of life. If the queue is full, what fills it asks for
// the same.
func (c *consumer) pingLocked(p *peer, now time.Time) {
	p.pinged = now
	p.pings++
	frame := appendFrame(nil, subscription{typeSystem, topicPing}, c.newFrame("p"),
		`{"opaque":"`+newID()+`"}`)
	_ = p.sock.Send(wire.Control, wire.Text, frame)
}

// noticeLocked asks a connection to leave. It has been given its last message.
func (c *consumer) noticeLocked(p *peer, now time.Time) {
	p.noticed = now
	p.pings++ // some answer it
	frame := appendFrame(nil, subscription{typeSystem, topicDisconnect}, c.newFrame("p"),
		`{"reason":"connection is expired"}`)
	_ = p.sock.Send(wire.Critical, wire.Text, frame)
}

// ponged tells whether an answer is one to a ping or a notice.
func (c *consumer) ponged(p *peer, id string) bool {
	if !strings.HasPrefix(id, c.tag+"_p") {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if p.pings == 0 {
		return false
	}
	p.pings--
	return true
}

// dismiss asks all connections to leave and closes them behind that.
func (c *consumer) dismiss(now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range c.peers {
		p.retiring = true
		if p.noticed.IsZero() {
			c.noticeLocked(p, now)
		}
		p.shut(closedStopping)
	}
}

// abort ends all connections at once.
func (c *consumer) abort() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range c.peers {
		p.cut(closedStopping)
	}
}
