package relay

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/penstock-io/penstock/message"
	"github.com/penstock-io/penstock/router"
	"github.com/penstock-io/penstock/store"
)

// Errors of an operator's commands.
var (
	// ErrNoAdmin means that the store cannot be looked into.
	ErrNoAdmin = errors.New("relay: the store has no administration")
	// ErrNoRoute means that no route has the name that was asked for.
	ErrNoRoute = errors.New("relay: no such route")
	// ErrNoInstallation means that an installation is not attached.
	ErrNoInstallation = errors.New("relay: no such installation")
	// ErrBusy means that too many replays wait for their turn.
	ErrBusy = errors.New("relay: too many replays are waiting")
)

// maxReplays bounds the messages that wait to be handled by a route of their own.
const maxReplays = 100_000

// Replayed tells what came of a replay.
type Replayed struct {
	// Seq is the message's number in the inbox, a new one for a dead letter.
	Seq store.Seq
	// Done is set when the handler has run and its outcome is stored; without it
	// the message waits for its turn.
	Done bool
	// Replies is how many replies a replay that is done put into the outbox.
	Replies int
}

// Requeue gives a dead letter another chance: it goes to the end of its queue at
// once, under the number that is returned, with no attempts made. One whose
// installation is not attached waits in the store. It blocks until the change is
// committed; an error leaves the letter as it is, except that of ctx, after which
// the change may hold or not. store.ErrNotFound means that there is no such
// letter, store.ErrFull that the store has no room.
func (r *Relay) Requeue(ctx context.Context, box store.Box, seq store.Seq) (store.Seq, error) {
	return r.requeue(ctx, box, seq, "")
}

// Replay has a message handled by the route of that name, whatever it matches: a
// pending one at its turn, a dead letter at the end of its conversation's queue.
// The choice is kept in memory and goes for every attempt until the message ends;
// after a restart the routes decide again. A run under way is not changed. It
// blocks until the change is committed.
func (r *Relay) Replay(
	ctx context.Context, box store.Box, seq store.Seq, route string,
) (Replayed, error) {
	if r.cfg.Route == nil || r.cfg.Route(route) == nil {
		return Replayed{}, fmt.Errorf("%w: %q", ErrNoRoute, route)
	}
	if r.choices.Load() >= maxReplays {
		return Replayed{}, ErrBusy
	}
	switch box {
	case store.BoxDeadIn:
		fresh, err := r.requeue(ctx, box, seq, route)
		return Replayed{Seq: fresh}, err
	case store.BoxInbox:
		return Replayed{Seq: seq}, r.replayPending(ctx, seq, route)
	}
	return Replayed{}, fmt.Errorf("replay from %s: %w", box, store.ErrInvalid)
}

// replayPending chooses a route for a message that waits. The choice is made
// first: if the message ends meanwhile, either its end finds the choice, or the
// message is not found here.
func (r *Relay) replayPending(ctx context.Context, seq store.Seq, route string) error {
	r.chooseRoute(seq, route)
	found, err := r.cfg.Store.LoadInbox(ctx, seq)
	if err == nil && len(found) == 0 {
		err = store.ErrNotFound
	}
	if err != nil {
		r.forgetRoute(seq)
		return fmt.Errorf("replay: %w", err)
	}
	return nil
}

func (r *Relay) requeue(
	ctx context.Context, box store.Box, seq store.Seq, route string,
) (store.Seq, error) {
	if !box.Dead() {
		return 0, fmt.Errorf("requeue from %s: %w", box, store.ErrInvalid)
	}
	item, err := r.show(ctx, box, seq)
	if err != nil {
		return 0, fmt.Errorf("requeue: %w", err)
	}
	op := &store.Requeue{Box: box, Seq: seq}
	err = r.commit(ctx, op, func() {
		r.requeued(op, store.Head{
			Seq: op.NewSeq, Installation: item.Installation, Conversation: item.Conversation,
		}, route)
	})
	if err != nil {
		return 0, fmt.Errorf("requeue: %w", err)
	}
	return op.NewSeq, nil
}

// requeued puts a revived letter into its queue, on the writer's goroutine: the
// order of the commits is the order of the queue. The queue loads it from the
// store, where what is behind it lines up as well.
func (r *Relay) requeued(op *store.Requeue, h store.Head, route string) {
	if op.Box == store.BoxDeadOut {
		// Its number is above all others; a copy that is added later is known.
		r.lastOut = max(r.lastOut, op.NewSeq)
		r.count.requeuedReplies.Add(1)
		r.outFeed.admitStored(convKey{h.Installation, h.Conversation}, h.Seq)
		return
	}
	r.count.requeued.Add(1)
	if route != "" {
		r.chooseRoute(h.Seq, route)
	}
	if l := r.laneOrOrphan(h); l != nil {
		l.feed.admitStored(h.Conversation, h.Seq)
	}
}

// Purge removes an item for good. A run of it that has not begun when Purge
// returns will not begin; one under way comes to nothing, though a handler may
// have acted and a send may land. The context of a handler under way ends. Whoever waits for a purged reply is told a
// *DeadError. It blocks until the removal is committed; an error leaves the item
// as it is, except that of ctx, after which it may be gone or not.
func (r *Relay) Purge(ctx context.Context, box store.Box, seq store.Seq) error {
	item, err := r.show(ctx, box, seq)
	if err != nil {
		return fmt.Errorf("purge: %w", err)
	}
	// Before the commit, so that a run which begins after it looks into the store.
	switch box {
	case store.BoxInbox:
		raise(&r.purgedIn, seq)
	case store.BoxOutbox:
		raise(&r.purgedOut, seq)
	}
	err = r.commit(ctx, &store.Purge{Box: box, Seq: seq}, func() { r.purged(&item.Entry) })
	if err != nil {
		return fmt.Errorf("purge: %w", err)
	}
	r.cfg.Logger.Info("an item was purged", "box", box.String(), "number", int64(seq),
		"installation", string(item.Installation), "conversation", string(item.Conversation),
		"message_id", string(item.ID))
	return nil
}

// purged takes note of a removal, on the writer's goroutine.
func (r *Relay) purged(e *store.Entry) {
	switch e.Box {
	case store.BoxInbox:
		r.count.purged.Add(1)
		r.forgetRoute(e.Seq)
		r.cancel(e.Installation, e.Seq)
	case store.BoxOutbox:
		r.count.purgedReplies.Add(1)
		r.tellWatcher(e.Seq, message.Receipt{}, &DeadError{store.ReasonPurged})
	case store.BoxDeadIn:
		r.count.purgedDead.Add(1)
	case store.BoxDeadOut:
		r.count.purgedDeadReplies.Add(1)
	}
	if !e.Box.Dead() {
		// It may be waiting for its time; what is behind it need not.
		r.stale.Store(true)
		r.wake()
	}
}

// Running tells which messages are with their handlers, and since when.
func (r *Relay) Running() map[store.Seq]time.Time {
	all := map[store.Seq]time.Time{}
	for _, run := range r.sync.Runs() {
		all[run.Task.Job.seq] = run.Began
	}
	for _, l := range r.allLanes() {
		for _, run := range l.queue.Runs() {
			all[run.Task.Job.seq] = run.Began
		}
	}
	return all
}

// cancel ends the context of a message's handler, if it is under way.
func (r *Relay) cancel(in message.InstallationID, seq store.Seq) {
	for _, run := range r.sync.Runs() {
		if run.Task.Job.seq == seq {
			run.Task.Cancel()
		}
	}
	l := r.lane(in)
	if l == nil {
		return
	}
	for _, run := range l.queue.Runs() {
		if run.Task.Job.seq == seq {
			run.Task.Cancel()
		}
	}
}

// wakeStale wakes what waits in the queues for its time, once for any number of
// purges: what was purged goes, the rest waits on.
func (r *Relay) wakeStale() {
	if !r.stale.Swap(false) {
		return
	}
	for _, l := range r.allLanes() {
		l.queue.Wake()
	}
	r.out.Wake()
}

// Send puts a reply into the outbox as [Lane.Send] does, in the lane of its
// installation.
func (r *Relay) Send(ctx context.Context, o message.Outbound) (*Sending, error) {
	l := r.lane(o.Installation)
	if l == nil {
		return nil, fmt.Errorf("send: %w: %q", ErrNoInstallation, o.Installation)
	}
	return l.Send(ctx, o)
}

func (r *Relay) show(ctx context.Context, box store.Box, seq store.Seq) (store.Item, error) {
	if r.admin == nil {
		return store.Item{}, ErrNoAdmin
	}
	return r.admin.Show(ctx, box, seq)
}

// commit submits op and waits for its commit; done is called on the writer's
// goroutine when it holds, also when nobody waits any more.
func (r *Relay) commit(ctx context.Context, op store.Op, done func()) error {
	w := &waiter{done: done, told: make(chan error, 1)}
	if err := r.writer.Submit(op, w); err != nil {
		return closedError(err)
	}
	select {
	case err := <-w.told:
		return closedError(err)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// waiter is an op whose submitter waits.
type waiter struct {
	done func()
	told chan error // one value, from the writer's goroutine
}

// Committed implements store.Completer.
func (w *waiter) Committed(_ store.Op, err error) {
	if err == nil {
		w.done()
	}
	w.told <- err
}

// raise makes mark at least seq.
func raise(mark *atomic.Int64, seq store.Seq) {
	for {
		old := mark.Load()
		if old >= int64(seq) || mark.CompareAndSwap(old, int64(seq)) {
			return
		}
	}
}

// isPurged tells whether a message was removed while it was queued. Only numbers
// up to the highest one that was ever purged need a look into the store.
func (r *Relay) isPurged(ctx context.Context, seq store.Seq) bool {
	if int64(seq) > r.purgedIn.Load() {
		return false
	}
	found, err := r.cfg.Store.LoadInbox(ctx, seq)
	return err == nil && len(found) == 0
}

// isPurgedReply is isPurged for a reply.
func (r *Relay) isPurgedReply(ctx context.Context, seq store.Seq) bool {
	if int64(seq) > r.purgedOut.Load() {
		return false
	}
	found, err := r.cfg.Store.LoadOutbox(ctx, seq)
	return err == nil && len(found) == 0
}

// chooseRoute has a message handled by a route of its own.
func (r *Relay) chooseRoute(seq store.Seq, route string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, known := r.chosen[seq]; !known {
		r.choices.Add(1)
	}
	r.chosen[seq] = route
}

// forgetRoute is called when a message has ended.
func (r *Relay) forgetRoute(seq store.Seq) {
	if r.choices.Load() == 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, ok := r.chosen[seq]; ok {
		delete(r.chosen, seq)
		r.choices.Add(-1)
	}
}

// handler gives the handler of a message: the configured one, or the route that
// was chosen for it. A route that has gone meanwhile is a permanent failure.
func (r *Relay) handler(seq store.Seq) router.Handler {
	if r.choices.Load() == 0 {
		return r.cfg.Handler
	}
	r.mu.Lock()
	route, ok := r.chosen[seq]
	r.mu.Unlock()
	if !ok {
		return r.cfg.Handler
	}
	if h := r.cfg.Route(route); h != nil {
		return h
	}
	return router.HandlerFunc(func(context.Context, *message.Inbound) (router.Result, error) {
		return router.Result{}, &router.Error{
			Permanent: true, Reason: router.ReasonNoRoute,
			Err: fmt.Errorf("%w: %q", ErrNoRoute, route),
		}
	})
}

// revivedAt is when a reply that is too old to be sent was put into the outbox: a
// letter that an operator requeued counts from then.
func (r *Relay) revivedAt(ctx context.Context, seq store.Seq, created time.Time) time.Time {
	if r.admin == nil || time.Since(created) <= r.cfg.SendTTL {
		return created
	}
	item, err := r.admin.Show(ctx, store.BoxOutbox, seq)
	if err != nil || item.Since.Before(created) {
		return created
	}
	return item.Since
}
