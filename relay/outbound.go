package relay

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"golang.org/x/time/rate"

	"github.com/penstock-io/penstock/dispatch"
	"github.com/penstock-io/penstock/message"
	"github.com/penstock-io/penstock/store"
)

// parkFor is how long an installation that may not send waits between tries.
const parkFor = 5 * time.Minute

// detachedHold is the wait before an item whose installation is not attached is
// looked at again.
const detachedHold = time.Minute

// step is where an outbox item stands between two runs.
type step uint8

const (
	stepWait  step = iota // before an attempt: time, limits
	stepBegin             // the attempt is being recorded
	stepSend              // the attempt is recorded: send
)

// outTask is one reply on its way out. It is used by one goroutine at a time.
type outTask struct {
	// immutable
	relay *Relay
	seq   store.Seq
	reply *message.Outbound

	since     time.Time // when it was made, or requeued
	step      step
	attempts  int
	waits     int // times that the platform told it to wait
	notBefore time.Time
	admitted  bool // the rate limits have let it pass

	run     completer // the current run
	retryIn time.Duration
	reason  string
}

func (t *outTask) key() convKey { return convKey{t.reply.Installation, t.reply.Conversation} }

func (t *outTask) unfinished() Unfinished {
	return Unfinished{
		Direction: "out", Installation: t.reply.Installation,
		Conversation: t.reply.Conversation, ID: t.reply.ID,
	}
}

// queueReplies puts newly stored replies into their queues and returns how many
// there were. Numbers only grow and commits are told in order, so one that is not
// above all before it belongs to a reply that was known already. It is called on
// the writer's goroutine.
func (r *Relay) queueReplies(replies []message.Outbound, seqs []store.Seq, s *Sending) (fresh int) {
	for i := range replies {
		if seqs[i] <= r.lastOut {
			s.ended(message.Receipt{}, ErrKnown)
			continue
		}
		r.lastOut = seqs[i]
		fresh++
		r.count.replies.Add(1)
		r.watch(seqs[i], s)
		t := &outTask{relay: r, seq: seqs[i], reply: &replies[i], since: replies[i].CreatedAt}
		r.outFeed.admit(t.key(), t.seq, t)
	}
	return fresh
}

func (r *Relay) loadOut(
	ctx context.Context, seqs []store.Seq,
) (map[store.Seq]*outTask, error) {
	found, err := r.cfg.Store.LoadOutbox(ctx, seqs...)
	if err != nil {
		return nil, err
	}
	tasks := make(map[store.Seq]*outTask, len(found))
	for i := range found {
		tasks[found[i].Seq] = r.loadedReply(ctx, &found[i])
	}
	return tasks, nil
}

func (r *Relay) loadedReply(ctx context.Context, o *store.Outgoing) *outTask {
	t := &outTask{
		relay: r, seq: o.Seq, reply: &o.Reply, attempts: o.Attempts, notBefore: o.At,
		since: r.revivedAt(ctx, o.Seq, o.Reply.CreatedAt),
	}
	if o.State == store.StateSending {
		r.count.uncertain.Add(1)
		r.cfg.Logger.Warn("the process ended while a reply was being sent; it may have arrived",
			"installation", string(o.Reply.Installation), "reply_id", string(o.Reply.ID),
			"conversation", string(o.Reply.Conversation), "attempt", o.Attempts,
			"policy", string(r.cfg.Uncertain))
		if r.cfg.Uncertain == UncertainDiscard {
			t.reason = discardUncertain
		}
	}
	return t
}

// runSend moves an item one step on: it waits for its time and the limits, has
// its attempt recorded, then sends.
func (r *Relay) runSend(ctx context.Context, dt *dispatch.Task[convKey, *outTask]) dispatch.Outcome {
	t := dt.Job
	t.run = dt
	if r.isPurgedReply(ctx, t.seq) {
		return dispatch.Failed(store.ErrNotFound)
	}
	if t.step == stepSend {
		return t.send(ctx)
	}
	if r.leaving.Load() {
		return r.leave()
	}
	if why := t.hopeless(); why != "" {
		return t.discard(why, errors.New(why))
	}
	if wait := t.wait(); wait > 0 {
		return dispatch.Hold(wait)
	}
	t.step = stepBegin
	t.attempts++
	return t.submit(&store.Begin{Seq: t.seq, Attempts: t.attempts})
}

// hopeless tells why an item must not be sent, empty if it may be.
func (t *outTask) hopeless() string {
	if t.reason != "" {
		return t.reason
	}
	if time.Since(t.since) > t.relay.cfg.SendTTL {
		return discardExpired
	}
	if t.relay.partFailed(t.key(), t.reply) {
		return discardPart
	}
	return ""
}

// wait is how long the item may not be sent yet, for whatever reason.
func (t *outTask) wait() time.Duration {
	if d := time.Until(t.notBefore); d > 0 {
		return d
	}
	l := t.relay.lane(t.reply.Installation)
	if l == nil {
		return detachedHold
	}
	if d := time.Until(time.Unix(0, l.parked.Load())); d > 0 {
		return d
	}
	if t.admitted {
		return 0
	}
	t.admitted = true
	wait := max(delay(l.limit), delay(t.relay.chatLimiter(t.key())))
	if wait > 0 { // also for one that a purge wakes
		t.notBefore = time.Now().Add(wait)
	}
	return wait
}

func delay(l *rate.Limiter) time.Duration {
	if l == nil {
		return 0
	}
	return l.Reserve().Delay()
}

func (t *outTask) submit(op store.Op) dispatch.Outcome {
	if t.relay.writer.Submit(op, t) != nil {
		return t.relay.leave()
	}
	return dispatch.Detach()
}

// Committed implements store.Completer for the ops of this reply.
func (t *outTask) Committed(op store.Op, err error) {
	if err != nil {
		t.uncommitted(op, err)
		return
	}
	switch op := op.(type) {
	case *store.Begin:
		t.step = stepSend
		t.run.Complete(dispatch.Hold(0))
	case *store.Sent:
		t.relay.count.sent.Add(1)
		t.ended("")
		t.relay.tellWatcher(t.seq, op.Receipt, nil)
		t.run.Complete(dispatch.Done())
	case *store.Again:
		t.relay.count.resends.Add(1)
		t.step, t.admitted = stepWait, false
		t.run.Complete(t.relay.hold(t.retryIn))
	case *store.Discard:
		t.relay.count.discarded[t.reason].Add(1)
		t.ended(t.reason)
		t.relay.tellWatcher(t.seq, message.Receipt{}, &DeadError{t.reason})
		t.run.Complete(dispatch.Failed(errors.New(t.reason)))
	}
}

// uncommitted handles a failed commit. What the platform said is known, so the
// same record is tried again and nothing is sent twice; a send that was not
// recorded does not take place.
func (t *outTask) uncommitted(op store.Op, err error) {
	if errors.Is(err, store.ErrNotFound) || errors.Is(err, store.ErrClosed) {
		t.run.Complete(dispatch.Failed(err))
		return
	}
	t.relay.cfg.Logger.Error("the state of a reply could not be stored",
		"installation", string(t.reply.Installation), "reply_id", string(t.reply.ID), "error", err)
	if _, ok := op.(*store.Begin); ok {
		t.step = stepWait
		t.attempts--
		t.run.Complete(t.relay.hold(t.relay.cfg.RetryBase))
		return
	}
	time.AfterFunc(t.relay.cfg.RetryBase, func() {
		if serr := t.relay.writer.Submit(op, t); serr != nil {
			t.run.Complete(dispatch.Failed(serr))
		}
	})
}

func (t *outTask) send(ctx context.Context) dispatch.Outcome {
	r := t.relay
	l := r.lane(t.reply.Installation)
	if l == nil {
		return t.again(detachedHold, errors.New("installation is not attached"))
	}
	began := time.Now()
	receipt, err := l.send(ctx, *t.reply)
	if h := r.cfg.Hooks.SendTried; h != nil {
		h(t.reply, time.Since(began), err)
	}
	if err == nil {
		t.forgetPart()
		return t.submit(&store.Sent{Seq: t.seq, Receipt: receipt})
	}
	return t.failed(l, err)
}

// send makes one attempt; a panic of the sender may have come after the request.
func (l *Lane) send(ctx context.Context, o message.Outbound) (r message.Receipt, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &message.SendError{
				Landed: message.LandedMaybe, Code: "panic",
				Err: &dispatch.PanicError{Value: v, Stack: debug.Stack()},
			}
		}
	}()
	return (*l.sender.Load()).Send(ctx, o)
}

// failed decides what a failed send means: the one place that does.
func (t *outTask) failed(l *Lane, err error) dispatch.Outcome {
	r := t.relay
	var se *message.SendError
	if !errors.As(err, &se) {
		se = &message.SendError{Landed: message.LandedNo, Next: message.NextAgain, Err: err}
	}
	if se.Landed == message.LandedMaybe {
		r.count.uncertain.Add(1)
		if r.cfg.Uncertain == UncertainDiscard {
			return t.discard(discardUncertain, err)
		}
	}
	switch se.Next {
	case message.NextNever:
		return t.discard(discardNever, err)
	case message.NextPark:
		l.park(max(parkFor, se.After), err)
		t.attempts-- // the installation failed, not the reply
		return t.again(max(parkFor, se.After), err)
	case message.NextWait:
		t.waits++
		t.attempts-- // the platform has not judged the reply
		return t.again(se.After*time.Duration(min(t.waits, 10)), err)
	}
	if t.attempts >= r.cfg.SendAttempts {
		return t.discard(discardAttempts, err)
	}
	return t.again(r.sendWait(t.attempts), err)
}

func (l *Lane) park(d time.Duration, err error) {
	l.parked.Store(time.Now().Add(d).UnixNano())
	if old := l.parkedFor.Swap(&err); old == nil {
		l.log.Error("the platform refuses every reply of this installation", "error", err)
	}
}

// sendWait is the wait after the n-th attempt, n from 1, up to a tenth longer.
func (r *Relay) sendWait(n int) time.Duration {
	d := r.cfg.SendWaits[min(max(n, 1), len(r.cfg.SendWaits))-1]
	return d + jitter(d/10)
}

func (t *outTask) again(wait time.Duration, err error) dispatch.Outcome {
	t.retryIn = wait
	t.notBefore = time.Now().Add(wait)
	t.relay.cfg.Logger.Warn("a reply was not sent and will be tried again",
		"installation", string(t.reply.Installation), "conversation", string(t.reply.Conversation),
		"reply_id", string(t.reply.ID), "attempt", t.attempts, "wait", wait, "error", err)
	return t.submit(&store.Again{
		Seq: t.seq, Attempts: t.attempts, At: t.notBefore, Reason: err.Error(),
	})
}

func (t *outTask) discard(why string, err error) dispatch.Outcome {
	t.reason = why
	t.relay.failPart(t.key(), t.reply)
	t.relay.cfg.Logger.Error("a reply became a dead letter",
		"installation", string(t.reply.Installation), "conversation", string(t.reply.Conversation),
		"reply_id", string(t.reply.ID), "attempt", t.attempts, "reason", why, "error", err)
	return t.submit(&store.Discard{
		Seq: t.seq, Attempts: t.attempts, Reason: fmt.Sprintf("%s: %v", why, err),
	})
}

func (t *outTask) ended(dead string) {
	if h := t.relay.cfg.Hooks.SendEnded; h != nil {
		h(t.reply, dead)
	}
}
