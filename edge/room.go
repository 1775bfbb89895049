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

// waitTurn waits for a turn. A turn that comes too late goes to the next in line.
func (c *consumer) waitTurn(ctx context.Context, turn chan struct{}) (outcome string) {
	timer := time.NewTimer(c.srv.cfg.AckWithin)
	defer timer.Stop()
	select {
	case <-turn:
		return ""
	case <-timer.C:
		outcome = c.miss()
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
