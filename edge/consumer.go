package edge

import (
	"cmp"
	"crypto/sha256"
	"crypto/subtle"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"github.com/penstock-io/penstock/internal/wire"
	"github.com/penstock-io/penstock/message"
)

// convKey names a conversation, msgKey a message.
type convKey struct {
	installation message.InstallationID
	conversation message.ConversationID
}

type msgKey struct {
	installation message.InstallationID
	id           message.ID
}

// complainEvery is how often a complaint of one kind is logged.
const complainEvery = time.Minute

// Bounds of what is remembered of one consumer.
const (
	maxHomes   = 8192 // conversations that have a connection of their own
	maxGivenUp = 4096 // messages whose late answers still count
	givenUpFor = 10 * time.Minute
	maxFrames  = 32 // frames of one message that may be answered
)

// consumer is one bot: its connections and the messages that are out to it.
type consumer struct {
	// immutable
	srv  *Server
	name string
	tag  string // begins the ids of all its frames
	born time.Time
	// bytes pays for what waits to be written to its connections.
	bytes *wire.Peer
	// full and extra keep complaints of one kind apart; safe by themselves.
	full, extra rate.Sometimes

	mu sync.Mutex // guards the following fields
	// cfg is what the bot presents; gone is set when it may not connect any more.
	cfg  Consumer
	gone bool
	// peers are its open connections. Fields of peers that say so belong to mu too.
	peers []*peer
	// homes has the connection on which a conversation stays.
	homes map[convKey]*peer
	// frames finds messages by the frames that carried them.
	frames map[string]*delivery
	// open has the messages that are out, and those that were given up lately.
	open map[msgKey]*delivery
	// givenUp has the latter, oldest first; some have been taken up again since.
	givenUp []givenUp
	// topics has what its connections want, or somebody wanted them to.
	topics map[subscription]*topic
	// line has those who wait for a connection with room, each channel closed when its
	// turn comes.
	line []chan struct{}
	// again is when those without room were last told to try again.
	again time.Time

	// missed is set when somebody found no connection that takes messages, short when
	// there was one and no room. Atomic.
	missed, short atomic.Bool
}

func newConsumer(s *Server, cfg Consumer) *consumer {
	return &consumer{
		srv: s, name: cfg.Name, born: time.Now(), tag: strings.ToLower(newID()[:12]), cfg: cfg,
		bytes:  s.budget.Peer(),
		homes:  map[convKey]*peer{},
		frames: map[string]*delivery{},
		open:   map[msgKey]*delivery{},
		topics: map[subscription]*topic{},
		full:   rate.Sometimes{Interval: complainEvery},
		extra:  rate.Sometimes{Interval: complainEvery},
	}
}

// admits tells whether secret is the consumer's. It takes as long for any secret.
func (c *consumer) admits(secret string) bool {
	return sameSecret(secret, c.secret()) && !c.isGone()
}

func sameSecret(a, b string) bool {
	x, y := sha256.Sum256([]byte(a)), sha256.Sum256([]byte(b))
	return subtle.ConstantTimeCompare(x[:], y[:]) == 1
}

func (c *consumer) secret() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.cfg.ClientSecret
}

func (c *consumer) clientID() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.cfg.ClientID
}

// hasRoom tells whether one more connection would be admitted.
func (c *consumer) hasRoom() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.stayingLocked() < c.cfg.MaxConnections || c.quietestLocked() != nil
}

// stayingLocked is how many connections count: those that were asked to leave do not
// keep their successors out.
func (c *consumer) stayingLocked() (n int) {
	for _, p := range c.peers {
		if !p.retiring {
			n++
		}
	}
	return n
}

// complainFull logs, now and then, that a connection is refused.
func (c *consumer) complainFull(remote string) {
	c.full.Do(func() {
		c.srv.log.Warn("a consumer has all the connections it may have; another one is refused",
			"consumer", c.name, "remote", remote, "max_connections", c.limit())
	})
}

func (c *consumer) limit() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.cfg.MaxConnections
}

func (c *consumer) isGone() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.gone
}

func (c *consumer) connections() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.peers)
}

// change puts new settings in force and tells whether there were others. If the bot
// has to present something else now, its connections are asked to leave.
func (c *consumer) change(cfg Consumer) (changed bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	changed = cfg != c.cfg || c.gone
	if cfg.ClientID != c.cfg.ClientID || cfg.ClientSecret != c.cfg.ClientSecret || c.gone {
		c.retireLocked()
	}
	c.cfg, c.gone = cfg, false
	c.nextLocked(len(c.line)) // there may be more room
	return changed
}

// remove asks all connections to leave; nobody may connect any more. It tells whether
// anybody could.
func (c *consumer) remove() (removed bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	removed = !c.gone
	c.gone = true
	c.retireLocked()
	return removed
}

func (c *consumer) retireLocked() {
	for _, p := range c.peers {
		if !p.retiring {
			p.retiring, p.retired = true, time.Now()
		}
	}
	c.nextLocked(len(c.line))
}

// admit takes a new connection in. It fails with resultLimit or resultRefused; a
// connection that has been silent for too long to be alive gives way.
func (c *consumer) admit(p *peer, secret string) (result string) {
	c.mu.Lock()
	var replaced *peer
	switch {
	case c.gone || secret != c.cfg.ClientSecret:
		c.mu.Unlock()
		return resultRefused
	case c.stayingLocked() >= c.cfg.MaxConnections:
		if replaced = c.quietestLocked(); replaced == nil {
			c.mu.Unlock()
			return resultLimit
		}
		c.dropLocked(replaced)
	}
	c.peers = append(c.peers, p)
	c.subscribeLocked(p)
	c.nextLocked(len(c.line))
	c.mu.Unlock()
	if replaced != nil {
		replaced.cut(closedReplaced)
	}
	c.complainExtra(p)
	c.found()
	return resultOK
}

// maxSaid is how many topics a line of the log names.
const maxSaid = 16

// complainExtra logs, now and then, what a connection wants in vain.
func (c *consumer) complainExtra(p *peer) {
	var extra []string
	for sub := range p.subs {
		if sub.Type == typeCallback && !c.srv.cfg.Asked(sub.Topic) {
			extra = append(extra, sub.Topic)
		}
	}
	if len(extra) == 0 {
		return
	}
	slices.Sort(extra)
	extra = extra[:min(len(extra), maxSaid)]
	for i, topic := range extra {
		extra[i] = excerpt(topic)
	}
	c.extra.Do(func() {
		c.srv.log.Warn("a consumer subscribes to topics that no installation asks the platform for",
			"consumer", c.name, "topics", extra)
	})
}

// found has those tried again that wait for a connection, now that there is one.
func (c *consumer) found() {
	if c.missed.Load() && c.missed.Swap(false) {
		c.srv.cfg.Again(0)
	}
}

// quietestLocked gives the connection that has said nothing for longest, if that
// is longer than a living one is silent.
func (c *consumer) quietestLocked() *peer {
	if len(c.peers) == 0 {
		return nil
	}
	now := time.Now()
	p := slices.MaxFunc(c.peers, func(a, b *peer) int {
		return cmp.Compare(a.silence(now), b.silence(now))
	})
	if p.silence(now) > c.srv.cfg.PingEvery*5/4 {
		return p
	}
	return nil
}

// leave takes leave of a connection. What is out on it may be answered on another
// one for a while.
func (c *consumer) leave(p *peer) {
	c.mu.Lock()
	c.dropLocked(p)
	c.mu.Unlock()
	close(p.gone)
}

func (c *consumer) dropLocked(p *peer) {
	c.peers = slices.DeleteFunc(c.peers, func(o *peer) bool { return o == p })
	p.retiring = true
	c.unsubscribeLocked(p, time.Now())
	c.nextLocked(len(c.line))
	for key, home := range c.homes {
		if home == p {
			delete(c.homes, key)
		}
	}
}
