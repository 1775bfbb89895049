package edge

import (
	"slices"
	"time"
)

// topic is what is known of a subscription of a consumer. A bot may be several
// programs that subscribe to different things: when one of them is away while others
// are connected, what it takes has to wait.
type topic struct {
	had bool // a connection has subscribed to it
	// since is when the last such connection ended; if there never was one, when
	// somebody was first missed.
	since time.Time
	told  bool // it was logged that messages wait
}

// maxTopics bounds the subscriptions that are remembered.
const maxTopics = 1024

// subscribeLocked notes what a new connection wants, as far as it can get it.
func (c *consumer) subscribeLocked(p *peer) {
	for sub := range p.subs {
		if sub.Type == typeEvent || c.srv.cfg.Asked(sub.Topic) {
			c.noteTopicLocked(sub, &topic{had: true})
		}
	}
}

// noteTopicLocked remembers a topic, if need be in the place of one that no connection
// wants.
func (c *consumer) noteTopicLocked(sub subscription, t *topic) {
	if len(c.topics) >= maxTopics && c.topics[sub] == nil {
		for other := range c.topics {
			if !c.wantedLocked(other) {
				delete(c.topics, other)
				break
			}
		}
	}
	if len(c.topics) < maxTopics || c.topics[sub] != nil {
		c.topics[sub] = t
	}
}

// wantedLocked tells whether a connection has subscribed to it, be it one that leaves.
func (c *consumer) wantedLocked(sub subscription) bool {
	return slices.ContainsFunc(c.peers, func(p *peer) bool { return p.subs[sub] })
}

// unsubscribeLocked notes what a connection wanted that has ended.
func (c *consumer) unsubscribeLocked(p *peer, now time.Time) {
	for sub := range p.subs {
		if t := c.topics[sub]; t != nil {
			t.since, t.told = now, false
		}
	}
}

// unwantedLocked tells what becomes of a message while there are connections, and none
// takes it. For a while it waits for one that does: a program of the bot may be away,
// or not have come yet since the server was made.
func (c *consumer) unwantedLocked(sub subscription, now time.Time) string {
	cfg := &c.srv.cfg
	t := c.topics[sub]
	if t == nil {
		t = &topic{since: now}
		c.noteTopicLocked(sub, t)
	}
	away := c.wantedLocked(sub) // and has been tried, or leaves
	if t.had {
		away = away || t.since.IsZero() || now.Sub(t.since) < cfg.AwayWithin
	} else {
		away = away || now.Sub(t.since) < cfg.AckWithin || now.Sub(c.born) < cfg.AwayWithin
	}
	switch {
	case away:
		c.tellAwayLocked(sub, t)
		c.miss()
		return outcomeAway
	case t.had:
		return outcomeDeserted
	default:
		return outcomeUnwanted
	}
}

// tellAwayLocked logs once that messages wait for somebody who takes them.
func (c *consumer) tellAwayLocked(sub subscription, t *topic) {
	if !t.told {
		t.told = true
		c.srv.log.Warn("messages wait for a connection of a consumer that subscribes to them",
			"consumer", c.name, "type", sub.Type, "topic", sub.Topic)
	}
}
