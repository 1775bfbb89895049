package openapi

import (
	"net/url"
	"slices"
	"sync"
	"time"
)

// lists tells whether u's host is one that a webhook may name.
func (c *Config) lists(u *url.URL) bool {
	return slices.Contains(c.ReplyHosts, listed(u))
}

const (
	// goneMax bounds how many dead webhooks are remembered.
	goneMax = 1024
	// goneFor is longer than a webhook lives.
	goneFor = 2 * time.Hour
)

// goneHooks remembers webhooks whose session the platform has forgotten, so that
// each part of a long reply does not ask again. Forgetting one costs a request.
type goneHooks struct {
	mu   sync.Mutex
	seen map[string]time.Time // guarded by mu; when each was found gone
}

func (g *goneHooks) add(hook string, now time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.seen == nil || len(g.seen) >= goneMax {
		g.seen = make(map[string]time.Time)
	}
	g.seen[hook] = now
}

func (g *goneHooks) has(hook string, now time.Time) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	at, ok := g.seen[hook]
	return ok && now.Sub(at) < goneFor
}
