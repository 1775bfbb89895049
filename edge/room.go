package edge

import (
	"context"
	"slices"
	"time"
)

// maxInLine bounds the messages of one consumer that wait for a connection that may
// be given one more. The rest waits in the store: each of these keeps a worker.
const maxInLine = 64

// queueLocked puts somebody into the line of those who wait for room. turn is closed
// when it is worth another try; nil if the line is too long.
func (c *consumer) queueLocked() (turn chan struct{}) {
	if len(c.line) >= maxInLine {
		return nil
	}
	turn = make(chan struct{})
	c.line = append(c.line, turn)
	return turn
}

// nextLocked lets n of those in line try.
func (c *consumer) nextLocked(n int) {
	n = min(n, len(c.line))
	for _, turn := range c.line[:n] {
		close(turn)
	}
	c.line = slices.Delete(c.line, 0, n)
}

// againEvery is the least time between two calls of Config.Again for want of room.
const againEvery = 20 * time.Millisecond

// freed has some of those tried again that found no room, now that a message has ended.
// Each of them that finds none costs a try, so not at every end.
func (c *consumer) freed() {
	if !c.short.Load() {
		return
	}
	c.mu.Lock()
	now := time.Now()
	due := len(c.line) <= maxInLine/2 && (now.Sub(c.again) >= againEvery || len(c.frames) == 0)
	if due = due && c.short.Swap(false); due {
		c.again = now
	}
	c.mu.Unlock()
	if due {
		c.srv.cfg.Again(maxInLine)
	}
}

// waitTurn waits for a turn. A turn that comes too late goes to the next in line.
func (c *consumer) waitTurn(ctx context.Context, turn chan struct{}) (outcome string) {
	timer := time.NewTimer(c.srv.cfg.AckWithin)
	defer timer.Stop()
	select {
	case <-turn:
		return ""
	case <-timer.C:
		c.short.Store(true)
		outcome = outcomeAbsent
	case <-ctx.Done():
		outcome = outcomeCanceled
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if i := slices.Index(c.line, turn); i >= 0 {
		c.line = slices.Delete(c.line, i, i+1)
	} else {
		c.nextLocked(1)
	}
	return outcome
}
