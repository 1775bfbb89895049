package relay

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/penstock-io/penstock/message"
	"github.com/penstock-io/penstock/store"
)

// ErrKnown means that a reply with the same id was accepted before. What became
// of it is not known here; it is not sent again.
var ErrKnown = errors.New("relay: a reply with this id was accepted before")

// DeadError is how a reply ended that will not be sent.
type DeadError struct{ Reason string }

// Error tells the reason.
func (e *DeadError) Error() string { return "reply became a dead letter: " + e.Reason }

// Sending follows a reply that was accepted. Its methods may be called from any
// number of goroutines.
type Sending struct {
	id   message.ID
	done chan struct{} // closed when every part has ended

	mu sync.Mutex // guards the following fields
	// left is the number of parts that have not ended.
	left    int
	receipt message.Receipt // of the last part that ended
	err     error           // the first one
}

// ID is the reply's id.
func (s *Sending) ID() message.ID { return s.id }

// Wait blocks until the platform has taken every part, a part has become a dead
// letter (a *DeadError), or ctx is done. It returns ErrClosed when the relay stops
// first: with a durable store the reply is then sent after the next start.
func (s *Sending) Wait(ctx context.Context) (message.Receipt, error) {
	select {
	case <-s.done:
	case <-ctx.Done():
		return message.Receipt{}, fmt.Errorf("wait for reply %s: %w", s.id, ctx.Err())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.receipt, s.err
}

// ended tells that a part has ended. It may be called on a nil Sending.
func (s *Sending) ended(r message.Receipt, err error) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.receipt = r
	if s.err == nil {
		s.err = err
	}
	if s.left--; s.left == 0 {
		close(s.done)
	}
}

// Send puts a reply into the outbox that no handler's return brings: a handler
// may call it for an answer that comes in pieces, a program for a message of its
// own. It returns when the reply is committed; the reply then takes its turn
// behind the conversation's earlier ones, also when the caller has gone. While a
// stop or Detach waits for handlers that run, they may still send.
//
// Conversation and Text are needed. ID makes a repeated call harmless: the second
// one is ErrKnown. Without a Target the platform's address of the conversation is
// used; [Lane.Address] gives that of a message.
func (l *Lane) Send(ctx context.Context, o message.Outbound) (*Sending, error) {
	if l.mute.Load() {
		return nil, ErrClosed
	}
	o.Installation = l.id
	id, parts := split(*l.sender.Load(), o)
	a := &addition{
		relay:   l.relay,
		sending: &Sending{id: id, done: make(chan struct{}), left: len(parts)},
		told:    make(chan error, 1),
	}
	if err := l.relay.writer.Submit(&store.Add{Replies: parts}, a); err != nil {
		return nil, fmt.Errorf("send: %w", closedError(err))
	}
	select {
	case err := <-a.told:
		if err != nil {
			return nil, fmt.Errorf("send: %w", err)
		}
		return a.sending, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("send: %w", ctx.Err())
	}
}

// split gives a reply of its own what is missing and cuts it into its parts.
func split(s Sender, o message.Outbound) (message.ID, []message.Outbound) {
	if o.ID == "" {
		o.ID = message.ID("send-" + rand.Text())
		if o.InReplyTo != "" {
			o.ID = o.InReplyTo.Reply(rand.Text())
		}
	}
	if o.Format == "" {
		o.Format = message.FormatText
	}
	o.Group, o.Part, o.Parts, o.CreatedAt = o.ID, 1, 1, time.Now()
	return o.ID, s.Split(o)
}

// Address gives the reply address of a message.
func (l *Lane) Address(m *message.Inbound) (message.Target, error) {
	return (*l.sender.Load()).Address(m)
}

func closedError(err error) error {
	if errors.Is(err, store.ErrClosed) {
		return ErrClosed
	}
	return err
}

// addition is a Send that waits for its commit.
type addition struct {
	relay   *Relay
	sending *Sending
	told    chan error // one value, from the writer's goroutine
}

// Committed implements store.Completer.
func (a *addition) Committed(op store.Op, err error) {
	if err == nil {
		add := op.(*store.Add) //nolint:forcetypeassert // submitted by Send only
		if a.relay.queueReplies(add.Replies, add.Seqs, a.sending) == 0 {
			err = ErrKnown
		}
	}
	a.told <- err
}

// watch remembers who waits for a stored reply, if anybody does.
func (r *Relay) watch(seq store.Seq, s *Sending) {
	if s == nil {
		return
	}
	r.mu.Lock()
	r.watched[seq] = s
	r.mu.Unlock()
	r.watchers.Add(1)
}

// tellWatcher tells whoever waits for a reply how it ended.
func (r *Relay) tellWatcher(seq store.Seq, receipt message.Receipt, err error) {
	if r.watchers.Load() == 0 {
		return
	}
	r.mu.Lock()
	s := r.watched[seq]
	delete(r.watched, seq)
	r.mu.Unlock()
	if s != nil {
		r.watchers.Add(-1)
		s.ended(receipt, err)
	}
}

// releaseWatchers tells everybody who still waits that the relay has stopped.
func (r *Relay) releaseWatchers() {
	r.mu.Lock()
	left := r.watched
	r.watched = make(map[store.Seq]*Sending)
	r.mu.Unlock()
	for _, s := range left {
		s.ended(message.Receipt{}, ErrClosed)
	}
}
