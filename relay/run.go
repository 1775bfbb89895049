package relay

import (
	"context"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/penstock-io/penstock/dispatch"
	"github.com/penstock-io/penstock/message"
	"github.com/penstock-io/penstock/store"
)

// seedPage is how many numbers one read of the store brings at the start.
const seedPage = 8192

// Waits of the refilling goroutine: after a read of the store has failed, and after
// one that brought something. While one waits, more room appears in the queues,
// which hold enough for that time, so that the next read brings many items.
const (
	retryRefill = time.Second
	refillRest  = time.Millisecond
)

// Run commits, refills and keeps order until [Relay.Shutdown] has finished. If ctx
// is done first, Run shuts down with no budget: what runs is cancelled and what
// waits stays in the store. It may be called once.
func (r *Relay) Run(ctx context.Context) error {
	r.markRunning()
	// Numbers up to these were given by earlier runs; later ones reach the queues
	// by their own commit.
	old, err := r.cfg.Store.Counts(ctx)
	if err != nil {
		close(r.served)
		return fmt.Errorf("relay: open store: %w", err)
	}
	r.lastOut, r.lastOld = old.LastOutbox, old.LastInbox
	r.interrupted = r.cfg.Interrupted != nil && r.cfg.Interrupted()
	g, gctx := errgroup.WithContext(r.writerCtx)
	g.Go(func() error { return wrap("commit", r.writer.Run(r.writerCtx)) })
	g.Go(func() error { return wrap("seed", r.seed(gctx, old)) })
	g.Go(func() error { r.refillLoop(gctx); return nil })
	stop := context.AfterFunc(ctx, func() {
		done, cancel := context.WithCancel(context.WithoutCancel(ctx))
		cancel()
		r.stop(done)
	})
	defer stop()
	err = g.Wait()
	close(r.served)
	if r.isStopping() {
		<-r.stopped
	}
	return err
}

func wrap(op string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("relay: %s: %w", op, err)
}

// seed lists what an earlier run left in the store. Deliveries are accepted and
// acknowledged meanwhile; they line up behind.
func (r *Relay) seed(ctx context.Context, old store.Counts) error {
	defer r.endSeeding()
	firsts := make(map[convKey]struct{})
	err := eachHead(ctx, r.cfg.Store.InboxHeads, old.LastInbox, func(h store.Head) {
		if r.interrupted {
			r.suspect(firsts, h)
		}
		if l := r.laneOrOrphan(h); l != nil {
			l.feed.seed(h.Conversation, h.Seq)
		}
	})
	if err != nil {
		return err
	}
	return eachHead(ctx, r.cfg.Store.OutboxHeads, old.LastOutbox, func(h store.Head) {
		r.outFeed.seed(convKey{h.Installation, h.Conversation}, h.Seq)
	})
}

// suspect remembers a message that may have been handled by a run that was
// interrupted: the oldest one of a conversation, as they are handled in turn.
func (r *Relay) suspect(firsts map[convKey]struct{}, h store.Head) {
	k := convKey{h.Installation, h.Conversation}
	if _, known := firsts[k]; known {
		return
	}
	firsts[k] = struct{}{}
	r.mu.Lock()
	r.begun[h.Seq] = struct{}{}
	r.mu.Unlock()
}

// mayHaveRun tells whether a message from the store may have been handled by a run
// that was interrupted, beyond the tries that are recorded. Synchronous ones are
// handled out of turn; one that still waits for its next try has not begun it.
func (r *Relay) mayHaveRun(p store.Pending) bool {
	if !r.interrupted || p.Seq > r.lastOld || p.At.After(time.Now()) {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	_, begun := r.begun[p.Seq]
	return begun || p.Message.Synchronous()
}

func eachHead(
	ctx context.Context,
	list func(context.Context, store.Seq, int) ([]store.Head, error),
	last store.Seq, fn func(store.Head),
) error {
	for after := store.Seq(0); after < last; {
		heads, err := list(ctx, after, seedPage)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil || len(heads) == 0 {
			return err
		}
		for _, h := range heads {
			if h.Seq <= last {
				fn(h)
			}
		}
		after = heads[len(heads)-1].Seq
	}
	return nil
}

func (r *Relay) markRunning() {
	r.mu.Lock()
	r.running = true
	r.mu.Unlock()
}

func (r *Relay) laneOrOrphan(h store.Head) *Lane {
	r.mu.Lock()
	defer r.mu.Unlock()
	if l := r.lanes[h.Installation]; l != nil {
		return l
	}
	r.orphans[h.Installation] = append(r.orphans[h.Installation], h)
	return nil
}

func (r *Relay) endSeeding() {
	r.mu.Lock()
	r.seeded = true
	for id, heads := range r.orphans {
		r.cfg.Logger.Warn("stored messages belong to an installation that is not configured",
			"installation", string(id), "messages", len(heads))
	}
	r.mu.Unlock()
	for _, l := range r.allLanes() {
		l.feed.endSeeding()
	}
	r.outFeed.endSeeding()
	r.wake()
}

// refillLoop moves what waits in the store into the queues as they get room.
func (r *Relay) refillLoop(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.wakeup:
		}
		read, err := r.refill(ctx)
		if err != nil && ctx.Err() == nil {
			r.cfg.Logger.Error("reading stored items failed", "error", err)
			r.wake()
			rest(ctx, retryRefill)
		} else if read {
			rest(ctx, refillRest)
		}
	}
}

func rest(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

func (r *Relay) refill(ctx context.Context) (read bool, err error) {
	r.wakeStale()
	for _, l := range r.allLanes() {
		if l.feed.spilled.Load() == 0 {
			continue
		}
		some, err := l.feed.refill(ctx)
		read = read || some
		if err != nil {
			return read, err
		}
	}
	some, err := r.outFeed.refill(ctx)
	return read || some, err
}

// Nudge has every message that waits for a handler tried now: somebody may be there
// who can be asked, see [router.Error]. It does not block.
func (r *Relay) Nudge() {
	for _, l := range r.allLanes() {
		l.queue.Wake()
	}
	r.sync.Wake()
}

// NudgeSome is Nudge for about n of the messages that found nobody: there is room for
// so many. It takes them from any installation.
func (r *Relay) NudgeSome(n int) {
	unreached := func(t *task) bool { return t.waiting }
	n -= r.sync.WakeSome(n, unreached)
	lanes := r.allLanes()
	for i := range lanes {
		if n <= 0 {
			return
		}
		share := (n + len(lanes) - i - 1) / (len(lanes) - i)
		n -= lanes[i].queue.WakeSome(share, unreached)
	}
}

// Report is the account of a stop.
type Report struct {
	// Drained tells that everything in the queues ended inside the budget.
	Drained bool
	// Unfinished names the messages and replies that were cut off. With a durable
	// store they run after the next start; with the memory store they are lost.
	Unfinished []Unfinished
	// Stored counts what is left in the store: inbox, outbox.
	Inbox, Outbox int64
	Took          time.Duration
}

// Unfinished is one item that a stop cut off.
type Unfinished struct {
	Direction    string // "in" or "out"
	Installation message.InstallationID
	Conversation message.ConversationID
	ID           message.ID
}

// Shutdown takes nothing more, lets queued work end until ctx is done, cancels
// the rest, and flushes the store's writer. It returns at ctx's end even if a
// handler ignores its context. Sessions are to be stopped before, so that the
// acks they owe go out. Later calls give the same report.
func (r *Relay) Shutdown(ctx context.Context) Report {
	return r.stop(ctx)
}

func (r *Relay) stop(ctx context.Context) Report {
	r.mu.Lock()
	if r.stopping {
		r.mu.Unlock()
		<-r.stopped
		return r.report
	}
	r.stopping = true
	running := r.running
	r.mu.Unlock()

	began := time.Now()
	rep := r.drain(ctx)
	r.stopWriter()
	if running {
		<-r.served
	}
	r.releaseWatchers()
	r.countLeft(&rep)
	rep.Took = time.Since(began)
	r.report = rep
	close(r.stopped)
	return rep
}

// drain ends the queues in the order of the pipeline, so that replies made by
// the last handlers still go out.
func (r *Relay) drain(ctx context.Context) Report {
	lanes := r.allLanes()
	if r.cfg.Durable {
		r.leaving.Store(true)
		defer r.keepAwake(lanes)()
	}
	oks := make([]bool, len(lanes)+1)
	var g errgroup.Group
	g.Go(func() error { oks[len(lanes)] = drainQueue(ctx, r.sync); return nil })
	for i, l := range lanes {
		l.closed.Store(true)
		g.Go(func() error { oks[i] = drainQueue(ctx, l.queue); return nil })
	}
	_ = g.Wait() // the functions return nil
	for _, l := range lanes {
		l.mute.Store(true)
	}
	oks = append(oks, drainQueue(ctx, r.out))
	r.mu.Lock()
	defer r.mu.Unlock()
	return Report{Drained: !slices.Contains(oks, false), Unfinished: r.unfinished}
}

// cutGrace is how long before the end of its time a stop cuts runs off, so that
// those that obey return and their try is noted before the writer ends.
const cutGrace = 25 * time.Millisecond

// drainQueue ends a queue within ctx, and tells whether everything in it ended by
// itself.
func drainQueue[K comparable, J any](ctx context.Context, q *dispatch.Dispatcher[K, J]) bool {
	early, cancel := ctx, func() {}
	if end, ok := ctx.Deadline(); ok {
		early, cancel = context.WithDeadline(ctx, end.Add(-cutGrace))
	}
	defer cancel()
	if q.DrainAndClose(early) {
		return true
	}
	_ = q.Drain(ctx) // what ignores its context is left behind
	return false
}

// wakeEvery is how often held items are woken while the relay leaves: one may be
// held just after it was decided to leave them.
const wakeEvery = 20 * time.Millisecond

// keepAwake wakes held items, which then leave, until it is told to stop.
func (r *Relay) keepAwake(lanes []*Lane) (stop func()) {
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(wakeEvery)
		defer tick.Stop()
		for {
			for _, l := range lanes {
				l.queue.Wake()
			}
			r.sync.Wake()
			r.out.Wake()
			select {
			case <-done:
				return
			case <-tick.C:
			}
		}
	}()
	return func() {
		close(done)
		<-ended
	}
}

// cutOff notes an item that a stop did not let end.
func (r *Relay) cutOff(res dispatch.Result, item interface{ unfinished() Unfinished }) {
	if !res.Abandoned {
		return
	}
	r.mu.Lock()
	r.unfinished = append(r.unfinished, item.unfinished())
	r.mu.Unlock()
}

func (r *Relay) countLeft(rep *Report) {
	c, err := r.cfg.Store.Counts(context.Background())
	if err != nil {
		r.cfg.Logger.Warn("counting what is left in the store failed", "error", err)
		return
	}
	rep.Inbox, rep.Outbox = c.Inbox, c.Outbox
}
