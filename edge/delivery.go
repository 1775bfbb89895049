package edge

import (
	"context"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/penstock-io/penstock/internal/wire"
)

// delivery is a message that a consumer has been given. The consumer's mutex guards
// all of it but the channel.
type delivery struct {
	key    msgKey
	event  bool
	frames []carrier // the latest last
	peer   *peer     // that has the latest, nil if nobody waits for it
	avoid  *peer     // that did not answer the last time
	// told has what ends the wait. It has room for one and is never closed.
	told    chan ending
	ended   bool // told holds an ending, or has been read
	waiting bool // somebody waits
	until   time.Time
}

// carrier is a frame with the message. Its connection keeps it until it is answered.
type carrier struct {
	frame string
	peer  *peer
	at    time.Time
}

func (f carrier) state() wire.State { return f.peer.sock.Tracker().State(f.frame) }

// over lets the connection forget the frame.
func (f carrier) over() { f.peer.sock.Tracker().Ack(f.frame) }

// latestLocked is the last frame of a message, the zero carrier if there is none.
func (d *delivery) latestLocked() (f carrier) {
	if len(d.frames) > 0 {
		f = d.frames[len(d.frames)-1]
	}
	return f
}

// ending is what ended the wait for an answer.
type ending struct {
	outcome string
	answer  answer
}

// givenUp is a message whose answer nobody waits for, and until when it counts.
type givenUp struct {
	d     *delivery
	until time.Time
}

// begin takes a message up. If it was given up and has been answered well since,
// it has its ending at once.
func (c *consumer) begin(key msgKey, event bool) *delivery {
	c.mu.Lock()
	defer c.mu.Unlock()
	d := c.open[key]
	if d == nil {
		d = &delivery{key: key, event: event, told: make(chan ending, 1)}
		c.open[key] = d
	}
	d.waiting = true
	return d
}

// want is what a connection has to have for a message.
type want struct {
	conv convKey
	sub  subscription
	// urgent is set if the platform waits for the answer: no limit holds it up.
	urgent bool
}

// place is where a message goes.
type place struct {
	carrier
	// send is false if the connection has this frame and has not written it yet.
	send bool
	// turn, without a connection, is closed when there may be room.
	turn chan struct{}
	// outcome, without either, is why there is none.
	outcome string
}

// place finds a connection for a message, leaving out those that were tried. It waits
// while they may be given no more.
func (c *consumer) place(ctx context.Context, d *delivery, w want, tried []*peer) place {
	for {
		f := c.assign(d, w, tried)
		if f.turn == nil {
			return f
		}
		if outcome := c.waitTurn(ctx, f.turn); outcome != "" {
			return place{outcome: outcome}
		}
	}
}

// assign chooses a connection, if there is one, and gives the message's frame an id.
func (c *consumer) assign(d *delivery, w want, tried []*peer) place {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.releaseLocked(d)
	p, full := c.chooseLocked(w, append(slices.Clone(tried), d.avoid))
	if p == nil && !full { // better the same once more than nobody
		p, full = c.chooseLocked(w, tried)
	}
	switch {
	case p == nil && full:
		if turn := c.queueLocked(); turn != nil {
			return place{turn: turn}
		}
		c.short.Store(true)
		return place{outcome: outcomeAbsent}
	case p == nil:
		return place{outcome: c.whyLocked(w.sub, tried)}
	}
	p.probeLocked(time.Now(), probeAfter)
	p.owed++
	d.peer = p
	if f := d.latestLocked(); f.peer == p && f.state() == wire.Queued {
		return place{carrier: f}
	}
	return place{carrier: c.carryLocked(d, p), send: true}
}

// carryLocked makes a frame for a message.
func (c *consumer) carryLocked(d *delivery, p *peer) carrier {
	f := carrier{c.newFrame("m"), p, time.Now()}
	c.frames[f.frame] = d
	if d.frames = append(d.frames, f); len(d.frames) > maxFrames {
		c.forgetLocked(d.frames[0])
		d.frames = d.frames[1:]
	}
	return f
}

// forgetLocked lets go of a frame whose answer does not count any more.
func (c *consumer) forgetLocked(f carrier) {
	delete(c.frames, f.frame)
	f.over()
}

// whyLocked tells why no connection could be chosen: there is none that reads, or
// what is there has not subscribed.
func (c *consumer) whyLocked(sub subscription, tried []*peer) string {
	connected := false
	for _, p := range c.peers {
		if p.retiring || slices.Contains(tried, p) {
			continue
		}
		if p.subs[sub] {
			return c.miss()
		}
		connected = true
	}
	if connected {
		return c.unwantedLocked(sub, time.Now())
	}
	return c.miss()
}

// miss notes that somebody waits for a connection.
func (c *consumer) miss() string {
	c.missed.Store(true)
	return outcomeAbsent
}

// chooseLocked gives the conversation's connection, else the one that owes least,
// nil if there is none; full if there is one that may be given no more now.
func (c *consumer) chooseLocked(w want, but []*peer) (best *peer, full bool) {
	now, home := time.Now(), c.homes[w.conv]
	for _, p := range c.peers {
		if p.retiring || !p.subs[w.sub] || slices.Contains(but, p) || p.stalledLocked(now) {
			continue
		}
		if !w.urgent && c.cfg.MaxInFlight > 0 && p.owed >= c.cfg.MaxInFlight {
			full = true
			continue
		}
		if p == home {
			return p, false
		}
		if best == nil || p.owed < best.owed || p.owed == best.owed && p.homes < best.homes {
			best = p
		}
	}
	if best != nil {
		c.settleLocked(w.conv, best)
	}
	return best, full
}

// settleLocked makes p the conversation's connection.
func (c *consumer) settleLocked(conv convKey, p *peer) {
	if old := c.homes[conv]; old != nil {
		old.homes--
	} else if len(c.homes) >= maxHomes {
		for key, old := range c.homes { // any
			old.homes--
			delete(c.homes, key)
			break
		}
	}
	c.homes[conv] = p
	p.homes++
}

// newFrame makes the id of a frame. kind tells those that carry messages from others.
// Nobody can guess one that has not been sent to him: an answer counts whoever gives
// it. The runtime's generator is fit for that.
func (c *consumer) newFrame(kind string) string {
	return c.tag + "_" + kind + strconv.FormatUint(rand.Uint64(), 36)
}

// releaseLocked takes the debt off the connection that has the message.
func (c *consumer) releaseLocked(d *delivery) {
	if d.peer != nil {
		d.peer.owed--
		d.peer = nil
		c.nextLocked(1)
	}
}

// finish ends a message for good.
func (c *consumer) finish(d *delivery) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closeLocked(d)
}

func (c *consumer) closeLocked(d *delivery) {
	c.releaseLocked(d)
	for _, f := range d.frames {
		c.forgetLocked(f)
	}
	d.frames, d.waiting = nil, false
	if c.open[d.key] == d {
		delete(c.open, d.key)
	}
}

// giveUp ends a wait without a good answer. One that comes later still counts, and
// the connection is not asked again if there is another.
func (c *consumer) giveUp(d *delivery) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(d.frames) == 0 {
		c.closeLocked(d)
		return
	}
	if d.peer != nil {
		d.avoid = d.peer
	}
	c.releaseLocked(d)
	// An ending that came too late to be read stays for the next try if it is good.
	if d.ended && len(d.told) > 0 {
		if e := <-d.told; good(e.outcome) {
			d.told <- e
		}
	}
	d.ended = len(d.told) > 0
	now := time.Now()
	d.waiting, d.until = false, now.Add(givenUpFor)
	c.givenUp = append(c.givenUp, givenUp{d, d.until})
	for len(c.givenUp) > maxGivenUp || len(c.givenUp) > 0 && now.After(c.givenUp[0].until) {
		old := c.givenUp[0]
		c.givenUp = c.givenUp[1:]
		if !old.d.waiting && old.d.until.Equal(old.until) {
			c.closeLocked(old.d)
		}
	}
}

func good(outcome string) bool { return outcome == outcomeAnswered || outcome == outcomeEarlier }

// answered takes an answer. stray tells what it is if nobody wants it.
func (c *consumer) answered(a answer) (stray string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	d := c.frames[a.id]
	if d == nil {
		if strings.HasPrefix(a.id, c.tag+"_m") {
			return strayLate
		}
		return strayUnknown
	}
	d.ackLocked(a.id)
	latest := a.id == d.latestLocked().frame
	outcome := judge(&a, d.event, latest)
	// A bad answer says something about its own frame only.
	if d.ended || !good(outcome) && !(latest && d.waiting) {
		return strayLate
	}
	if secret := c.cfg.ClientSecret; len(secret) >= shortestSecret {
		a.text = strings.ReplaceAll(a.text, secret, "[hidden]")
	}
	a.text = excerpt(a.text)
	d.ended = true
	d.told <- ending{outcome, a}
	return ""
}

// ackLocked notes that a frame has been answered, well or not.
func (d *delivery) ackLocked(frame string) {
	for _, f := range d.frames {
		if f.frame == frame {
			f.over()
		}
	}
}

// shortestSecret is the length below which a word keeps no secret, and would only blot
// out parts of others.
const shortestSecret = 4

// judge reads what an answer means.
func judge(a *answer, event, latest bool) (outcome string) {
	switch {
	case a.code == http.StatusNotFound:
		return outcomeUnhandled
	case a.code != http.StatusOK:
		return outcomeFailed
	case event && a.later():
		return outcomeLater
	case latest:
		return outcomeAnswered
	default:
		return outcomeEarlier
	}
}
