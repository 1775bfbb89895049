package relay

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/penstock-io/penstock/dispatch"
	"github.com/penstock-io/penstock/message"
	"github.com/penstock-io/penstock/router"
	"github.com/penstock-io/penstock/store"
)

type inTask = dispatch.Task[message.ConversationID, *task]

// task is one message on its way from the session to its end. It is used by one
// goroutine at a time: session, writer, worker, writer.
type task struct {
	// immutable
	lane    *Lane
	msg     *message.Inbound
	ack     message.Ack // nil for a message loaded from the store
	offered time.Time
	sync    bool
	// settled is set by whoever acknowledges a synchronous message first.
	settled atomic.Bool
	timer   *time.Timer // acknowledges a synchronous message that takes too long
	// expected is set on a synchronous message whose answer is remembered for copies.
	expected bool

	append    store.Append
	seq       store.Seq
	attempts  int
	notBefore time.Time

	finish store.Finish // the op of a run that went well
	// run is the current run, which the commit of its outcome completes.
	run completer
	// waiting is set once the store knows that nobody is there to be asked.
	waiting  bool
	unstored bool // it was logged that an outcome could not be committed
	// retryIn is the wait that the op being committed announces.
	retryIn time.Duration
	reason  string // why the message is being buried
}

// completer ends a run that was detached; it is a *dispatch.Task.
type completer interface{ Complete(dispatch.Outcome) }

func (t *task) claim() claimKey { return claimKey{t.lane.id, t.msg.ID} }

func (t *task) unfinished() Unfinished {
	return Unfinished{
		Direction: "in", Installation: t.lane.id,
		Conversation: t.msg.Conversation.ID, ID: t.msg.ID,
	}
}

// duplicate acknowledges a copy of a message that is ours already.
func (t *task) duplicate() {
	t.lane.relay.count.duplicates.Add(1)
	if t.sync && t.lane.relay.answers.join(t) {
		return
	}
	t.settle(message.Accept, nil)
}

// firstCopy is told what became of the copy that this one waited for.
func (t *task) firstCopy(committed bool) {
	if committed {
		t.duplicate()
		return
	}
	t.settle(message.Retry, nil)
}

// settle answers the platform. A session that has ended takes the answer no more;
// the platform then pushes again and the copy is recognised.
func (t *task) settle(v message.Verdict, body []byte) {
	if t.ack == nil || t.settled.Swap(true) {
		return
	}
	_ = t.ack.Settle(v, body)
	if h := t.lane.relay.cfg.Hooks.Acked; h != nil && v == message.Accept {
		h(time.Since(t.offered))
	}
	if t.expected {
		t.lane.relay.answers.give(t.claim(), v, body)
	}
}

// refused gives the claim back and lets the platform push again.
func (t *task) refused(err error) error {
	r := t.lane.relay
	why := refusal(err)
	if errors.Is(err, store.ErrFull) {
		why = refusedQueue
	}
	r.count.refused[why].Add(1)
	r.seen.Release(t.claim())
	if errors.Is(err, store.ErrClosed) {
		return ErrClosed
	}
	t.lane.fail(err)
	t.settle(message.Retry, nil)
	return nil
}

// Committed implements store.Completer for the ops of this message.
func (t *task) Committed(op store.Op, err error) {
	switch op := op.(type) {
	case *store.Append:
		t.appended(op, err)
	case *store.Finish:
		t.finished(op, err)
	case *store.Postpone:
		t.postponed(op, err)
	case *store.Bury:
		t.buried(op, err)
	}
}

func (t *task) appended(op *store.Append, err error) {
	r := t.lane.relay
	if err != nil {
		r.count.refused[refusal(err)].Add(1)
		r.seen.Release(t.claim())
		t.lane.fail(fmt.Errorf("store message: %w", err))
		t.settle(message.Retry, nil)
		return
	}
	t.lane.recover()
	if t.sync && op.State == store.StateNew {
		t.expected = true
		r.answers.expect(t.claim()) // before copies that wait learn of the commit
	}
	r.seen.Commit(t.claim())
	switch {
	case op.State != store.StateNew:
		t.duplicate()
	case op.Bury != "":
		r.count.accepted.Add(1)
		t.settle(message.Accept, nil)
		t.end(deadDefect, op.Bury)
	default:
		r.count.accepted.Add(1)
		t.seq = op.Seq
		t.begin()
	}
}

// begin puts a stored message into its queue.
func (t *task) begin() {
	if t.sync && t.beginSync() {
		return
	}
	t.settle(message.Accept, nil)
	t.lane.feed.admit(t.msg.Conversation.ID, t.seq, t)
}

// run is one attempt of the handler, on a worker.
func (l *Lane) run(ctx context.Context, dt *inTask) dispatch.Outcome {
	t := dt.Job
	if l.relay.leaving.Load() {
		return l.relay.leave()
	}
	if l.relay.isPurged(ctx, t.seq) {
		return dispatch.Failed(store.ErrNotFound)
	}
	// A purge wakes every message that waits; this one's time may not have come.
	if wait := time.Until(t.notBefore); wait > 0 {
		return dispatch.Hold(wait)
	}
	t.run = dt
	return t.attempt(ctx, nil)
}

// attempt runs the handler and submits what comes of it; the run ends when that
// is committed. answered is told of a result before it is committed, and may change
// it; it takes no pointer, since that would cost every message a piece of memory.
func (t *task) attempt(
	ctx context.Context, answered func(router.Result, error) router.Result,
) dispatch.Outcome {
	r := t.lane.relay
	t.attempts++
	m := t.msg
	if m.Attempt != t.attempts {
		c := *m // handlers of earlier attempts may still read the old one
		c.Attempt = t.attempts
		t.msg, m = &c, &c
	}
	began := time.Now()
	res, err := handle(ctx, r.handler(t.seq), m)
	t.tellPanic(err)
	if h := r.cfg.Hooks.Handled; h != nil {
		h(m, began.Sub(m.ReceivedAt), time.Since(began), err)
	}
	if err != nil && t.lane.cutOff(ctx) {
		t.noteCutOff()
		return r.leave()
	}
	if err != nil && ctx.Err() != nil && r.isPurged(context.WithoutCancel(ctx), t.seq) {
		return dispatch.Failed(store.ErrNotFound)
	}
	if answered != nil {
		res = answered(res, err)
	}
	if router.IsUnreached(err) {
		return t.unreached(err)
	}
	t.waiting = false
	if r.writer.Submit(t.outcome(res, err), t) != nil {
		return r.leave()
	}
	return dispatch.Detach()
}

// cutOff tells whether a stop or the end of the lane has ended a run. A deadline
// that passes while the lane drains is the handler's own failure: what is queued
// behind it still runs.
func (l *Lane) cutOff(ctx context.Context) bool {
	err := ctx.Err()
	return err != nil && (l.relay.isStopping() ||
		l.closed.Load() && errors.Is(err, context.Canceled))
}

// unreachedWait is the wait for somebody who can be asked, unless Relay.Nudge ends
// it or the error asks for another.
const unreachedWait = 5 * time.Second

// unreached puts a message back that nobody could be asked to handle. Only the
// first of such tries is committed, so that operators see why the message waits:
// the others would tell the store nothing new.
func (t *task) unreached(err error) dispatch.Outcome {
	r := t.lane.relay
	t.attempts--
	t.retryIn, t.notBefore = cmp.Or(router.RetryAfter(err), unreachedWait), time.Time{}
	r.count.unreached.Add(1)
	if t.waiting {
		return r.hold(t.retryIn)
	}
	t.waiting = true
	t.lane.log.Info("nobody is there to handle a message; it waits",
		"message_id", string(t.msg.ID), "conversation", string(t.msg.Conversation.ID), "error", err)
	op := &store.Postpone{Seq: t.seq, Attempts: t.attempts, At: time.Now(), Reason: err.Error()}
	if r.writer.Submit(op, t) != nil {
		return r.leave()
	}
	return dispatch.Detach()
}

// noteCutOff records that a stop cut a try off, for the count of tries. Nobody waits
// for it: without it the next start counts one try less.
func (t *task) noteCutOff() {
	_ = t.lane.relay.writer.Submit(&store.Postpone{
		Seq: t.seq, Attempts: t.attempts, At: time.Now(), Reason: "cut off by a stop",
	}, nil)
}

// errLeft is how a run ends whose item stays in the store for the next start.
var errLeft = errors.New("left in the store")

func (r *Relay) leave() dispatch.Outcome {
	r.count.left.Add(1)
	return dispatch.Failed(errLeft)
}

// hold makes an item run again after d, or leaves it to the next start.
func (r *Relay) hold(d time.Duration) dispatch.Outcome {
	if r.leaving.Load() {
		return r.leave()
	}
	return dispatch.Hold(d)
}

// handle runs the handler; a panic is an error like any other.
func handle(
	ctx context.Context, h router.Handler, m *message.Inbound,
) (res router.Result, err error) {
	defer func() {
		if v := recover(); v != nil {
			res, err = router.Result{}, &dispatch.PanicError{Value: v, Stack: debug.Stack()}
		}
	}()
	return h.Handle(ctx, m)
}

// outcome decides what a handler's result means for the message.
func (t *task) outcome(res router.Result, err error) store.Op {
	r := t.lane.relay
	switch {
	case err == nil:
		t.finish = store.Finish{Seq: t.seq, Replies: t.lane.replies(t.msg, res.Replies)}
		return &t.finish
	case errors.Is(err, router.ErrNoRoute):
		r.count.noRoute.Add(1)
		if r.cfg.NoRoute == NoRouteDone {
			t.finish = store.Finish{Seq: t.seq, Unrouted: true}
			return &t.finish
		}
		return t.bury(deadNoRoute, err)
	case router.IsPermanent(err):
		return t.bury(deadPermanent, err)
	case t.attempts >= r.cfg.Attempts:
		return t.bury(deadAttempts, err)
	default:
		t.retryIn = max(r.backoff(t.attempts), router.RetryAfter(err))
		t.lane.log.Warn("handler failed and will be tried again",
			"message_id", string(t.msg.ID), "conversation", string(t.msg.Conversation.ID),
			"attempt", t.attempts, "wait", t.retryIn, "error", err)
		t.notBefore = time.Now().Add(t.retryIn)
		return &store.Postpone{
			Seq: t.seq, Attempts: t.attempts, At: t.notBefore, Reason: err.Error(),
		}
	}
}

func (t *task) bury(why string, err error) store.Op {
	t.reason = why
	return &store.Bury{Seq: t.seq, Attempts: t.attempts, Reason: why + ": " + err.Error()}
}

func (t *task) finished(op *store.Finish, err error) {
	if err != nil {
		t.uncommitted(op, err)
		return
	}
	t.lane.relay.forgetRoute(t.seq)
	t.lane.relay.queueReplies(op.Replies, op.ReplySeqs, nil)
	t.lane.relay.count.done.Add(1)
	t.run.Complete(dispatch.Done())
	if h := t.lane.relay.cfg.Hooks.Ended; h != nil {
		h(t.msg, "")
	}
}

func (t *task) postponed(op *store.Postpone, err error) {
	if err != nil {
		t.uncommitted(op, err)
		return
	}
	if !t.waiting {
		t.lane.relay.count.retries.Add(1)
	}
	t.run.Complete(t.lane.relay.hold(t.retryIn))
}

func (t *task) buried(op *store.Bury, err error) {
	if err != nil {
		t.uncommitted(op, err)
		return
	}
	t.lane.relay.forgetRoute(t.seq)
	t.run.Complete(dispatch.Failed(errors.New(t.reason)))
	t.end(t.reason, t.reason, "error", strings.TrimPrefix(op.Reason, t.reason+": "))
}

// end counts a message that became a dead letter and logs it, with what else there
// is to say.
func (t *task) end(kind, reason string, more ...any) {
	r := t.lane.relay
	r.count.dead[kind].Add(1)
	t.lane.log.With(more...).Error("message became a dead letter", "message_id", string(t.msg.ID),
		"conversation", string(t.msg.Conversation.ID), "attempt", t.attempts, "reason", reason)
	if h := r.cfg.Hooks.Ended; h != nil {
		h(t.msg, reason)
	}
}

// uncommitted handles a failed commit. What the handler did is known, so the same
// record is tried again and the handler does not run twice; its conversation waits.
// A message that is no longer in the store has been removed by an operator.
func (t *task) uncommitted(op store.Op, err error) {
	if errors.Is(err, store.ErrNotFound) || errors.Is(err, store.ErrClosed) {
		t.run.Complete(dispatch.Failed(err))
		return
	}
	if _, buried := op.(*store.Bury); errors.Is(err, store.ErrInvalid) && !buried {
		op = t.bury(deadPermanent, err) // no later commit would take it
	}
	if !t.unstored {
		t.unstored = true
		t.lane.log.Error("a handler's outcome could not be stored; its conversation waits",
			"message_id", string(t.msg.ID), "attempt", t.attempts, "error", err)
	}
	time.AfterFunc(t.lane.relay.cfg.RetryBase, func() {
		if t.lane.relay.writer.Submit(op, t) != nil {
			t.run.Complete(t.lane.relay.leave())
		}
	})
}

// replies turns what a handler answered into outbox items.
func (l *Lane) replies(m *message.Inbound, replies []message.Reply) []message.Outbound {
	return outbound(*l.sender.Load(), l.log, m, replies)
}

// outbound turns a handler's replies into outbox items. Their ids come from the
// message, so that a handler that runs twice cannot double them.
func outbound(
	s Sender, log *slog.Logger, m *message.Inbound, replies []message.Reply,
) []message.Outbound {
	if len(replies) == 0 {
		return nil
	}
	target, err := s.Address(m)
	if err != nil {
		log.Warn("message has no reply address", "message_id", string(m.ID), "error", err)
	}
	now := time.Now()
	var out []message.Outbound
	for i, reply := range replies {
		if reply.Format == "" {
			reply.Format = message.FormatText
		}
		id := m.ID + "/" + message.ID(strconv.Itoa(i+1))
		out = append(out, s.Split(message.Outbound{
			Reply: reply, ID: id, Group: id, Part: 1, Parts: 1, CreatedAt: now,
			Installation: m.Installation, Conversation: m.Conversation.ID, InReplyTo: m.ID, Target: target,
		})...)
	}
	return out
}

func (r *Relay) isStopping() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.stopping
}
