package edge

import "time"

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

const (
	maxTopics  = 1024
	desertedIn = 15 * time.Minute // after the last connection that wanted it
)

// subscribeLocked notes what a new connection wants.
func (c *consumer) subscribeLocked(p *peer) {
	for sub := range p.subs {
		if c.topics[sub] != nil || len(c.topics) < maxTopics {
			c.topics[sub] = &topic{had: true}
		}
	}
}

// unsubscribeLocked notes what a connection wanted that has ended.
func (c *consumer) unsubscribeLocked(p *peer, now time.Time) {
	for sub := range p.subs {
		if t := c.topics[sub]; t != nil {
			t.since = now
		}
	}
}

// unwantedLocked tells what becomes of a message while there are connections, and
// none of them wants it. For a while it waits for one that does.
func (c *consumer) unwantedLocked(sub subscription, now time.Time) string {
	t := c.topics[sub]
	if t == nil {
		if len(c.topics) >= maxTopics {
			return outcomeUnwanted
		}
		t = &topic{since: now}
		c.topics[sub] = t
		c.srv.log.Warn("a route sends a consumer what none of its connections has subscribed to",
			"consumer", c.name, "type", sub.Type, "topic", sub.Topic)
	}
	switch {
	case t.had && (t.since.IsZero() || now.Sub(t.since) < desertedIn),
		!t.had && now.Sub(t.since) < c.srv.cfg.AckWithin:
		if t.had && !t.told {
			t.told = true
			c.srv.log.Warn("messages wait for a connection of a consumer that subscribes to them",
				"consumer", c.name, "type", sub.Type, "topic", sub.Topic)
		}
		c.miss()
		return outcomeAway
	case t.had:
		return outcomeDeserted
	default:
		return outcomeUnwanted
	}
}
