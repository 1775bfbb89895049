package relay

import (
	"context"
	"time"

	"github.com/penstock-io/penstock/dispatch"
	"github.com/penstock-io/penstock/message"
	"github.com/penstock-io/penstock/router"
	"github.com/penstock-io/penstock/store"
)

// beginSync starts a synchronous message beside the conversation's queue. When
// that lane is full, the message is acknowledged without an answer and takes its
// turn in the ordinary queue.
func (t *task) beginSync() bool {
	left := time.Until(t.msg.AnswerBy)
	t.timer = time.AfterFunc(left, func() { t.settle(message.Accept, nil) })
	err := t.lane.relay.sync.Enqueue(convKey{t.lane.id, t.msg.Conversation.ID}, t)
	if err == nil {
		return true
	}
	t.timer.Stop()
	t.sync = false
	return false // the ordinary queue settles it, and its copies
}

// runSync is one attempt at a synchronous message.
func (r *Relay) runSync(ctx context.Context, dt *dispatch.Task[convKey, *task]) dispatch.Outcome {
	t := dt.Job
	if r.leaving.Load() {
		return r.leave()
	}
	if r.isPurged(ctx, t.seq) {
		t.timer.Stop()
		t.settle(message.Accept, nil)
		return dispatch.Failed(store.ErrNotFound)
	}
	t.run = dt
	return t.attempt(ctx, t.answer)
}

// answer acknowledges with what the handler answered, if there is still time. A
// late answer becomes a reply that changes the card; the result comes back with it.
func (t *task) answer(res router.Result, err error) router.Result {
	t.timer.Stop()
	switch {
	case err != nil && router.IsPermanent(err):
		t.settle(message.Retry, nil)
		return res
	case err != nil:
		t.settle(message.Accept, nil)
		return res
	}
	if !t.settled.Load() {
		t.settle(message.Accept, res.Answer)
		return res
	}
	if len(res.Answer) == 0 {
		return res
	}
	t.lane.relay.answers.give(t.claim(), message.Accept, res.Answer)
	t.lane.relay.count.lateAnswer.Add(1)
	if t.msg.Kind == message.KindCard {
		res.Replies = append(res.Replies, message.Reply{Format: message.FormatCard, Card: res.Answer})
	}
	return res
}
