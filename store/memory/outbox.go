package memory

import (
	"time"

	"github.com/penstock-io/penstock/message"
	"github.com/penstock-io/penstock/store"
)

func outboundSize(o *message.Outbound) int64 {
	return int64(len(o.Title)+len(o.Text)+len(o.Card)+len(o.Target)) + itemCost
}

func (s *Store) addLocked(op *store.Add, now time.Time) error {
	op.Seqs = nil
	count, bytes := 0, int64(0)
	for i := range op.Replies {
		o := &op.Replies[i]
		if !s.knownLocked(o, now) {
			count++
			bytes += outboundSize(o)
		}
	}
	if count > 0 && s.fullLocked(count, bytes) {
		return store.ErrFull
	}
	op.Seqs = s.repliesLocked(op.Replies, now)
	return nil
}

// repliesLocked puts replies into the outbox and gives their numbers.
func (s *Store) repliesLocked(replies []message.Outbound, now time.Time) []store.Seq {
	if len(replies) == 0 {
		return nil
	}
	seqs := make([]store.Seq, len(replies))
	for i := range replies {
		seqs[i] = s.replyLocked(&replies[i], now)
	}
	return seqs
}

func (s *Store) replyLocked(o *message.Outbound, now time.Time) store.Seq {
	var print fingerprint
	if o.ID != "" {
		print = s.replied.print(o.Installation, o.ID)
		if first, ok := s.replied.find(print, s.age(now)); ok {
			return first.seq
		}
	}
	s.counts.LastOutbox++
	seq := s.counts.LastOutbox
	if o.ID != "" {
		s.replied.add(print, known{seq: seq}, s.age(now))
	}
	s.outbox.put(seq, outboxItem{reply: o, state: store.StatePending, added: s.age(now)})
	s.bytes += outboundSize(o)
	return seq
}

func (s *Store) knownLocked(o *message.Outbound, now time.Time) bool {
	if o.ID == "" {
		return false
	}
	_, ok := s.replied.find(s.replied.print(o.Installation, o.ID), s.age(now))
	return ok
}

func (s *Store) beginLocked(op *store.Begin) error {
	item := s.outbox.get(op.Seq)
	if item == nil {
		return store.ErrNotFound
	}
	item.state, item.attempts = store.StateSending, op.Attempts
	return nil
}

func (s *Store) sentLocked(op *store.Sent) error {
	item := s.outbox.get(op.Seq)
	if item == nil {
		return store.ErrNotFound
	}
	s.leaveOutboxLocked(op.Seq, item.reply)
	s.counts.Sent++
	return nil
}

func (s *Store) againLocked(op *store.Again) error {
	item := s.outbox.get(op.Seq)
	if item == nil {
		return store.ErrNotFound
	}
	item.state, item.attempts = store.StatePending, op.Attempts
	item.at, item.reason = op.At, op.Reason
	return nil
}

func (s *Store) discardLocked(op *store.Discard, now time.Time) error {
	item := s.outbox.get(op.Seq)
	if item == nil {
		return store.ErrNotFound
	}
	o := item.reply
	s.leaveOutboxLocked(op.Seq, o)
	s.letterLocked(store.Dead{
		Seq: op.Seq, Reply: o, Attempts: op.Attempts, At: now, Reason: op.Reason,
	}, outboundSize(o))
	return nil
}

func (s *Store) leaveOutboxLocked(seq store.Seq, o *message.Outbound) {
	s.outbox.remove(seq)
	s.bytes -= outboundSize(o)
	if o.ID != "" && s.replied.order.get(seq) == nil {
		s.replied.settle(s.replied.print(o.Installation, o.ID), known{seq: seq})
	}
}
