package memory

import (
	"fmt"
	"time"

	"github.com/penstock-io/penstock/message"
	"github.com/penstock-io/penstock/store"
)

func inboundSize(m *message.Inbound) int64 { return int64(len(m.Raw)) + itemCost }

func (s *Store) appendLocked(op *store.Append, now time.Time) error {
	op.Seq, op.State = 0, store.StateNew
	m := op.Message
	if m == nil {
		return fmt.Errorf("%w: append without a message", store.ErrInvalid)
	}
	var print fingerprint
	if m.ID != "" {
		print = s.received.print(m.Installation, m.ID)
		if first, ok := s.received.find(print, s.age(now)); ok {
			op.Seq, op.State = first.seq, s.stateLocked(first)
			return nil
		}
	}
	size := inboundSize(m)
	if op.Bury == "" && s.fullLocked(1, size) {
		return store.ErrFull
	}
	s.counts.LastInbox++
	op.Seq = s.counts.LastInbox
	if m.ID != "" {
		s.received.add(print, known{op.Seq, op.Bury != ""}, s.age(now))
	}
	if op.Bury != "" {
		s.letterLocked(store.Dead{Seq: op.Seq, Message: m, At: now, Reason: op.Bury}, size)
		return nil
	}
	s.inbox.put(op.Seq, inboxItem{message: m, added: s.age(now)})
	s.bytes += size
	return nil
}

// stateLocked is where a message that was appended before stands.
func (s *Store) stateLocked(first known) store.State {
	switch {
	case first.dead:
		return store.StateDead
	case s.inbox.get(first.seq) != nil:
		return store.StatePending
	}
	return store.StateDone
}

func (s *Store) finishLocked(op *store.Finish, now time.Time) error {
	op.ReplySeqs = nil
	item := s.inbox.get(op.Seq)
	if item == nil {
		return store.ErrNotFound
	}
	s.leaveInboxLocked(op.Seq, item.message, false)
	s.counts.Done++
	op.ReplySeqs = s.repliesLocked(op.Replies, now)
	return nil
}

func (s *Store) postponeLocked(op *store.Postpone) error {
	item := s.inbox.get(op.Seq)
	if item == nil {
		return store.ErrNotFound
	}
	item.attempts, item.at, item.reason = op.Attempts, op.At, op.Reason
	return nil
}

func (s *Store) buryLocked(op *store.Bury, now time.Time) error {
	item := s.inbox.get(op.Seq)
	if item == nil {
		return store.ErrNotFound
	}
	m := item.message
	s.leaveInboxLocked(op.Seq, m, true)
	s.letterLocked(store.Dead{
		Seq: op.Seq, Message: m, Attempts: op.Attempts, At: now, Reason: op.Reason,
	}, inboundSize(m))
	return nil
}

func (s *Store) leaveInboxLocked(seq store.Seq, m *message.Inbound, dead bool) {
	s.inbox.remove(seq)
	s.bytes -= inboundSize(m)
	// Only what dies or has outlived the window changes what is known of an id.
	if m.ID != "" && (dead || s.received.order.get(seq) == nil) {
		s.received.settle(s.received.print(m.Installation, m.ID), known{seq, dead})
	}
}
