package edge

import (
	"net"
	"net/netip"
	"sync"

	"golang.org/x/time/rate"
)

// Bounds of wrong credentials, for one address and consumer.
const (
	guessesPerSecond = 1
	guessesAtOnce    = 10
	maxGuessers      = 4096
)

// guesses slows down whoever tries credentials. It may be used from any number of
// goroutines.
type guesses struct {
	mu sync.Mutex // guards by
	by map[string]*guesserState
}

// guesserState is what is known of one who tried wrong credentials.
type guesserState struct {
	*rate.Limiter
	logged rate.Sometimes
}

func newGuessers() map[string]*guesserState { return map[string]*guesserState{} }

// blocked tells whether who has used up its wrong tries.
func (g *guesses) blocked(who string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	l := g.by[who]
	return l != nil && l.Tokens() < 1
}

// wrong notes a wrong try, and tells whether it is worth a line in the log.
func (g *guesses) wrong(who string) (tell bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	l := g.by[who]
	if l == nil {
		g.makeRoomLocked()
		l = &guesserState{
			Limiter: rate.NewLimiter(guessesPerSecond, guessesAtOnce),
			logged:  rate.Sometimes{Interval: complainEvery},
		}
		g.by[who] = l
	}
	l.Allow()
	l.logged.Do(func() { tell = true })
	return tell
}

// makeRoomLocked forgets those that have been quiet, or else anybody.
func (g *guesses) makeRoomLocked() {
	if len(g.by) < maxGuessers {
		return
	}
	victim := ""
	for who, l := range g.by {
		victim = who
		if l.Tokens() >= guessesAtOnce {
			delete(g.by, who)
		}
	}
	if len(g.by) >= maxGuessers {
		delete(g.by, victim)
	}
}

// guesser names who tries. One that has a whole IPv6 network counts once; people
// behind one proxy count for each consumer singly.
func guesser(remote, consumer string) string {
	host, _, err := net.SplitHostPort(remote)
	if err != nil {
		host = remote
	}
	if ip, err := netip.ParseAddr(host); err == nil && ip.Is6() && !ip.Is4In6() {
		if p, err := ip.Prefix(64); err == nil {
			host = p.String()
		}
	}
	return host + " " + consumer
}
