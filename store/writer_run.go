package store

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"
)

// Run commits what is submitted until ctx is done. Then it commits what waits,
// also what completers submit meanwhile, for at most FlushWithin, tells every
// completer, and returns; from then on Submit fails with ErrClosed.
//
// A failed commit does not end it. The end of ctx does not interrupt a commit:
// only the end of FlushWithin does, which a store must obey. It returns nil, or
// the error of a commit that failed after ctx was done. It may be called once.
func (w *Writer) Run(ctx context.Context) error {
	if err := w.claimRun(); err != nil {
		return err
	}
	commits, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	// One timer stands ready, so that a commit under way when ctx ends is bounded
	// as well.
	limit := time.AfterFunc(time.Hour, cancel)
	limit.Stop()
	stop := context.AfterFunc(ctx, func() { limit.Reset(w.cfg.FlushWithin) })
	defer limit.Stop()
	defer stop()

	for ctx.Err() == nil {
		w.gather(ctx)
		if queue := w.take(); queue != nil {
			w.gathering.began = time.Now()
			w.drain(commits, queue)
			continue
		}
		select {
		case <-w.wake:
		case <-ctx.Done():
		}
	}
	return w.flush(commits)
}

func (w *Writer) claimRun() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ran {
		return errors.New("store: writer was run before")
	}
	w.ran = true
	return nil
}

// flush commits what is left and closes the writer in the same step as it finds
// nothing more. After the limit each group fails at once, so it ends.
func (w *Writer) flush(ctx context.Context) (err error) {
	for {
		queue := w.takeOrClose(ctx.Err() != nil)
		if queue == nil {
			break
		}
		if e := w.drain(ctx, queue); err == nil {
			err = e
		}
	}
	if err != nil {
		return fmt.Errorf("store: flush: %w", err)
	}
	return nil
}

// take gives the whole queue and puts the other buffer in its place. It gives nil
// when nothing waits, and then the next Submit will wake Run.
func (w *Writer) take() []entry {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.queue) == 0 {
		w.asleep = true
		return nil
	}
	return w.swapLocked()
}

// takeOrClose is take for a writer that is stopping. When its time is over it
// closes at once, so that completers which submit again cannot go on for ever.
func (w *Writer) takeOrClose(over bool) []entry {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.asleep = false
	w.closed = over || len(w.queue) == 0
	if len(w.queue) == 0 {
		return nil
	}
	return w.swapLocked()
}

func (w *Writer) swapLocked() []entry {
	queue := w.queue
	w.queue, w.spare = w.spare[:0], nil
	return queue
}

// drain commits a queue in groups of about the same size, since a small one costs
// a flush like a large one, and keeps the buffer for the next swap. It returns
// the first error.
func (w *Writer) drain(ctx context.Context, queue []entry) (err error) {
	groups := (len(queue) + w.cfg.MaxGroup - 1) / w.cfg.MaxGroup
	for rest := queue; groups > 0; groups-- {
		n := (len(rest) + groups - 1) / groups
		if e := w.commitGroup(ctx, rest[:n]); err == nil {
			err = e
		}
		rest = rest[n:]
	}
	used := len(queue)
	clear(queue)
	if cap(queue) <= max(4*w.cfg.MaxGroup, 8*used) { // else it is left from a burst
		w.spare = queue[:0]
	}
	return err
}

func (w *Writer) commitGroup(ctx context.Context, entries []entry) error {
	for _, e := range entries {
		w.ops = append(w.ops, e.op)
	}
	began := time.Now()
	err := w.commit(ctx, w.ops)
	g := Group{Ops: len(entries), Took: time.Since(began), Err: err}
	clear(w.ops)
	w.ops = w.ops[:0]

	w.settle(entries, g)
	for _, e := range entries {
		w.report(guard(func() { tell(e, err) }))
	}
	if w.cfg.Observe != nil {
		w.report(guard(func() { w.cfg.Observe(g) }))
	}
	return err
}

// commit is the store's Commit with its panics turned into errors.
func (w *Writer) commit(ctx context.Context, ops []Op) (err error) {
	p := guard(func() {
		if err = ctx.Err(); err == nil {
			err = w.store.Commit(ctx, ops)
		}
	})
	if p != nil {
		w.report(p)
		err = p
	}
	if err != nil {
		return fmt.Errorf("store: commit: %w", err)
	}
	return nil
}

// settle counts a group and gives back the room of its appends, before the
// completers are told, so that one of them finds room again.
func (w *Writer) settle(entries []entry, g Group) {
	appends, bytes := 0, int64(0)
	for _, e := range entries {
		if a, ok := e.op.(*Append); ok {
			appends++
			bytes += appendSize(a)
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	s := &w.stats
	s.Waiting -= g.Ops
	s.WaitingAppends -= appends
	s.WaitingAppendBytes -= bytes
	s.LastCommit = g.Took
	s.LongestCommit = max(s.LongestCommit, g.Took)
	if g.Err != nil {
		s.Failed++
		s.LastError = g.Err
		return
	}
	s.Commits++
	s.Ops += uint64(g.Ops)
	s.LastGroup = g.Ops
	s.LargestGroup = max(s.LargestGroup, g.Ops)
}

// tell reports to the completer of an op, if it has one.
func tell(e entry, err error) {
	if e.c == nil {
		return
	}
	if err == nil {
		err = e.op.Result()
	}
	e.c.Committed(e.op, err)
}

// guard calls fn and gives its panic, if there was one: a panic in foreign code
// must not end the only writer.
func guard(fn func()) (p *PanicError) {
	defer func() {
		if v := recover(); v != nil {
			p = &PanicError{v, debug.Stack()}
		}
	}()
	fn()
	return nil
}

func (w *Writer) report(p *PanicError) {
	if p == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stats.Panics++
	w.stats.LastPanic = p
}
