package relay

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"github.com/penstock-io/penstock/dedup"
	"github.com/penstock-io/penstock/dispatch"
	"github.com/penstock-io/penstock/message"
	"github.com/penstock-io/penstock/store"
)

// Lane is one installation's way through the relay. It outlives sessions and
// credentials, so that a redial changes nothing about the order.
type Lane struct {
	// immutable
	relay *Relay
	id    message.InstallationID
	log   *slog.Logger
	queue *dispatch.Dispatcher[message.ConversationID, *task]
	feed  *feed[message.ConversationID, *task]
	limit *rate.Limiter // of sends, nil for none

	sender atomic.Pointer[Sender]
	closed atomic.Bool
	// mute is set when nothing may be sent any more, which is when no handler runs.
	mute atomic.Bool
	// trouble is why deliveries cannot be taken at present, nil if they can.
	trouble atomic.Pointer[error]
	// parked is until when nothing is sent, in unix nanoseconds, and why.
	parked    atomic.Int64
	parkedFor atomic.Pointer[error]
}

// SetSender replaces the sender, for changed credentials. Sends in flight end
// with the old one; a sender that was parked by the platform starts afresh.
func (l *Lane) SetSender(s Sender) {
	l.sender.Store(&s)
	l.parked.Store(0)
	l.parkedFor.Store(nil)
	l.relay.out.Wake() // what waits for the old one need not wait any more
}

// Trouble tells why the lane cannot take deliveries or send replies at present:
// the store's last error, or the platform's refusal; nil if all is well.
func (l *Lane) Trouble() error {
	if p := l.trouble.Load(); p != nil {
		return *p
	}
	if p := l.parkedFor.Load(); p != nil && time.Now().UnixNano() < l.parked.Load() {
		return *p
	}
	return nil
}

// Queue gives the numbers of the lane's queue.
func (l *Lane) Queue() dispatch.Stats { return l.queue.Stats() }

// Waiting is the number of messages that wait in the store for room in the queue.
func (l *Lane) Waiting() int64 { return l.feed.spilled.Load() }

// Detach ends the lane: deliveries are refused, queued messages run until ctx is
// done, the rest stays in the store for the next Attach or start.
func (l *Lane) Detach(ctx context.Context) bool {
	l.closed.Store(true)
	ok := l.queue.DrainAndClose(ctx)
	l.mute.Store(true)
	r := l.relay
	r.mu.Lock()
	delete(r.lanes, l.id)
	r.mu.Unlock()
	l.feed.close(l.strand)
	r.mu.Lock()
	left := len(r.orphans[l.id])
	r.mu.Unlock()
	if left > 0 {
		l.log.Info("messages wait in the store until the installation is back", "messages", left)
	}
	return ok
}

// ended is told of each message that has left the queue. One that the end of the
// lane has cut off is kept for the next lane.
func (l *Lane) ended(t *inTask, res dispatch.Result) {
	switch {
	case !res.Abandoned && !errors.Is(res.Err, errLeft):
	case l.relay.isStopping():
		l.relay.cutOff(res, t.Job)
	default:
		l.strand(t.Key, t.Job.seq)
	}
}

// strand notes a message that is only in the store for the installation's next
// lane. Until the end of Detach that is this one, whose feed gives it up then.
func (l *Lane) strand(k message.ConversationID, seq store.Seq) {
	h := store.Head{Seq: seq, Installation: l.id, Conversation: k}
	if next := l.relay.laneOrOrphan(h); next != nil {
		next.feed.seed(k, seq)
	}
}

// Accept takes a delivery from a session: it is acknowledged once its message is
// committed. Accept does not block. An error means that the delivery was not
// taken and will not be settled by the relay.
func (l *Lane) Accept(_ context.Context, d message.Delivery) error {
	r := l.relay
	r.count.offered.Add(1)
	if l.closed.Load() {
		r.count.refused[refusedClosed].Add(1)
		return ErrClosed
	}
	t := l.newTask(d)
	state := r.seen.Claim(t.claim())
	if state == dedup.InFlight {
		// The first copy may have ended since, so this asks once more.
		state = r.seen.Join(t.claim(), t.firstCopy)
	}
	switch state {
	case dedup.Seen:
		t.duplicate()
		return nil
	case dedup.InFlight:
		return nil
	}
	if err := r.writer.Submit(&t.append, t); err != nil {
		return t.refused(err)
	}
	return nil
}

// newTask makes the record that a message keeps through the whole pipeline.
func (l *Lane) newTask(d message.Delivery) *task {
	m := d.Message
	if m.ID == "" {
		m.ID = message.ID("gen-" + rand.Text())
	}
	if m.ReceivedAt.IsZero() {
		m.ReceivedAt = time.Now()
	}
	m.Schema = message.Schema
	m.Attempt = 1 // so that the first attempt needs no copy
	m.Installation = l.id
	t := &task{lane: l, msg: m, ack: d.Ack, offered: time.Now()}
	if m.Synchronous() && d.Defect == "" {
		m.AnswerBy = t.offered.Add(l.relay.cfg.SyncWithin)
		t.sync = true
	}
	t.append.Message = m
	if d.Defect != "" {
		t.append.Bury = deadDefect + ":" + d.Defect
	}
	return t
}

func (l *Lane) load(ctx context.Context, seqs []store.Seq) (map[store.Seq]*task, error) {
	found, err := l.relay.cfg.Store.LoadInbox(ctx, seqs...)
	if err != nil {
		return nil, err
	}
	tasks := make(map[store.Seq]*task, len(found))
	for _, p := range found {
		t := &task{lane: l, msg: p.Message, seq: p.Seq, attempts: p.Attempts, notBefore: p.At}
		if l.relay.mayHaveRun(p) {
			t.attempts++ // a try that came to no end is one
		}
		tasks[p.Seq] = t
	}
	return tasks, nil
}

func (l *Lane) stuck(t *dispatch.Task[message.ConversationID, *task]) {
	l.log.Warn("handler ignores its deadline; its conversation is held",
		"conversation", string(t.Key), "message_id", string(t.Job.msg.ID))
}

func (l *Lane) fail(err error) {
	if old := l.trouble.Swap(&err); old == nil {
		l.log.Error("messages cannot be stored and are not acknowledged", "error", err)
	}
}

func (l *Lane) recover() {
	if l.trouble.Load() == nil {
		return
	}
	if old := l.trouble.Swap(nil); old != nil {
		l.log.Info("messages are stored again")
	}
}

func refusal(err error) string {
	switch {
	case errors.Is(err, store.ErrFull):
		return refusedFull
	case errors.Is(err, store.ErrClosed):
		return refusedClosed
	default:
		return refusedStore
	}
}
