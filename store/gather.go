package store

import (
	"context"
	"time"
)

const (
	// gatherFrom and gatherBelow are the sizes of queue for which waiting pays: one
	// op alone is no stream, and a large group has little to gain.
	gatherFrom  = 2
	gatherBelow = 16
	// longestSkip is the most groups that go without waiting after waits in vain.
	longestSkip = 512
)

// gathering decides when a writer waits for more ops. It waits only if its last
// commit began less than the configured time ago, and only while ops come as fast
// during its waits as they did before. They do not when those who submit wait
// themselves for what is in the queue: after such a wait it leaves out some, after
// the next one in a row twice as many.
//
// It is owned by the writer's Run.
type gathering struct {
	timer *time.Timer
	began time.Time // of the last commit
	skip  int       // waits to be left out
	next  int       // how many to leave out after one in vain
}

// gather waits until the time for the next commit has come, if that pays. The end of
// ctx ends the wait.
func (w *Writer) gather(ctx context.Context) {
	g, limit := &w.gathering, w.cfg.Gather
	if limit == 0 {
		return
	}
	n := w.queued()
	since := time.Since(g.began)
	if n < gatherFrom || n >= gatherBelow || since >= limit {
		return
	}
	if g.skip > 0 {
		g.skip--
		return
	}
	if g.timer == nil {
		g.timer = time.NewTimer(limit - since)
	} else {
		g.timer.Reset(limit - since)
	}
	select {
	case <-g.timer.C:
	case <-ctx.Done():
		g.timer.Stop()
		return
	}
	g.judge(n, w.queued()-n, since, time.Since(g.began)-since)
}

// judge looks at a wait in which more ops came, after the first had come since the
// last commit began.
func (g *gathering) judge(first, more int, since, waited time.Duration) {
	// A part of the rate is enough: some of the first came because of the commit
	// before, and the others come in no regular order.
	if 8*int64(more)*int64(since) >= int64(first)*int64(waited) {
		g.next = 0
		return
	}
	g.next = min(max(2*g.next, 1), longestSkip)
	g.skip = g.next
}

func (w *Writer) queued() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.queue)
}
