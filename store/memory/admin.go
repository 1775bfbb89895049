package memory

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/penstock-io/penstock/message"
	"github.com/penstock-io/penstock/store"
)

// itemLocked shows an item of the inbox or the outbox.
func (s *Store) itemLocked(b store.Box, seq store.Seq) (it store.Item, ok bool) {
	it.Box, it.Seq = b, seq
	switch b {
	case store.BoxInbox:
		in := s.inbox.get(seq)
		if in == nil {
			return it, false
		}
		it.Message, it.State = in.message, store.StatePending
		it.Attempts, it.At, it.Reason, it.Since = in.attempts, in.at, in.reason, s.time(in.added)
	case store.BoxOutbox:
		out := s.outbox.get(seq)
		if out == nil {
			return it, false
		}
		it.Reply, it.State = out.reply, out.state
		it.Attempts, it.At, it.Reason, it.Since = out.attempts, out.at, out.reason, s.time(out.added)
	default:
		n := s.findLetterLocked(b, seq)
		if n == 0 {
			return it, false
		}
		d := s.dead.get(n)
		it.Message, it.Reply, it.State = d.Message, d.Reply, store.StateDead
		it.Attempts, it.Since, it.Reason = d.Attempts, d.At, d.Reason
	}
	describe(&it)
	return it, true
}

// describe takes the names of an item out of what it holds.
func describe(it *store.Item) {
	if m := it.Message; m != nil {
		it.ID, it.Installation, it.Conversation = m.ID, m.Installation, m.Conversation.ID
		return
	}
	it.ID, it.Installation = it.Reply.ID, it.Reply.Installation
	it.Conversation = it.Reply.Conversation
}

// time is the way back from age.
func (s *Store) time(age int64) time.Time { return s.start.Add(time.Duration(age)) }

// findLetterLocked gives the number under which a dead letter was buried, 0 if it
// is not there.
func (s *Store) findLetterLocked(b store.Box, seq store.Seq) store.Seq {
	for n, l := range s.dead.backward() {
		if l.Seq == seq && (l.Message != nil) == (b == store.BoxDeadIn) {
			return n
		}
	}
	return 0
}

// List implements store.Admin. Commits wait for it.
func (s *Store) List(ctx context.Context, q store.Query) ([]store.Entry, error) {
	if err := s.rlock(ctx); err != nil {
		return nil, err
	}
	defer s.mu.RUnlock()
	var entries []store.Entry
	if q.Limit <= 0 {
		return nil, nil
	}
	for _, seq := range s.numbersLocked(q) {
		it, ok := s.itemLocked(q.Box, seq)
		if ok && selects(q, &it.Entry) {
			entries = append(entries, it.Entry)
		}
		if len(entries) == q.Limit {
			break
		}
	}
	return entries, nil
}

// numbersLocked gives the numbers that a query may select, in order.
func (s *Store) numbersLocked(q store.Query) (seqs []store.Seq) {
	switch q.Box {
	case store.BoxInbox:
		for seq := range s.inbox.above(q.After) {
			seqs = append(seqs, seq)
		}
	case store.BoxOutbox:
		for seq := range s.outbox.above(q.After) {
			seqs = append(seqs, seq)
		}
	case store.BoxDeadIn, store.BoxDeadOut:
		for _, l := range s.dead.backward() {
			if l.Seq > q.After && (l.Message != nil) == (q.Box == store.BoxDeadIn) {
				seqs = append(seqs, l.Seq)
			}
		}
		slices.SortFunc(seqs, cmp.Compare)
	}
	return seqs
}

func selects(q store.Query, e *store.Entry) bool {
	return (q.Installation == "" || q.Installation == e.Installation) &&
		(q.Conversation == "" || q.Conversation == e.Conversation) &&
		(q.State == 0 || q.State == e.State) &&
		strings.Contains(e.Reason, q.Reason) &&
		(q.Since.IsZero() || !e.Since.Before(q.Since)) &&
		(q.Until.IsZero() || e.Since.Before(q.Until))
}

// Show implements store.Admin.
func (s *Store) Show(ctx context.Context, b store.Box, seq store.Seq) (store.Item, error) {
	if err := s.rlock(ctx); err != nil {
		return store.Item{}, err
	}
	defer s.mu.RUnlock()
	it, ok := s.itemLocked(b, seq)
	if !ok {
		return store.Item{}, store.ErrNotFound
	}
	return it, nil
}

// Trace implements store.Admin. Of what is done it knows nothing but that; of the
// replies it knows those that have not been sent. Commits wait for it.
func (s *Store) Trace(
	ctx context.Context, in message.InstallationID, id message.ID,
) (h store.History, err error) {
	if err := s.rlock(ctx); err != nil {
		return h, err
	}
	defer s.mu.RUnlock()
	first, ok := s.received.find(s.received.print(in, id), s.age(time.Now()))
	if !ok || id == "" {
		return h, store.ErrNotFound
	}
	h.Seq, h.State = first.seq, s.stateLocked(first)
	if r := s.received.order.get(first.seq); r != nil {
		h.Received = s.time(r.at)
	}
	if it, ok := s.itemLocked(store.BoxInbox, first.seq); ok {
		h.Attempts, h.At, h.Reason = it.Attempts, it.At, it.Reason
	} else if it, ok := s.itemLocked(store.BoxDeadIn, first.seq); ok {
		h.Attempts, h.Ended, h.Reason = it.Attempts, it.Since, it.Reason
	}
	h.Replies = s.repliesToLocked(in, id)
	return h, nil
}

func (s *Store) repliesToLocked(
	in message.InstallationID, id message.ID,
) (replies []store.ReplyHistory) {
	for seq, o := range s.outbox.above(0) {
		if o.reply.Installation == in && o.reply.InReplyTo == id {
			replies = append(replies, store.ReplyHistory{
				Seq: seq, State: o.state, Attempts: o.attempts, At: o.at, Reason: o.reason,
			})
		}
	}
	for _, l := range s.dead.backward() {
		if l.Reply != nil && l.Reply.Installation == in && l.Reply.InReplyTo == id {
			replies = append(replies, store.ReplyHistory{
				Seq: l.Seq, State: store.StateDead, Attempts: l.Attempts, Ended: l.At, Reason: l.Reason,
			})
		}
	}
	slices.SortFunc(replies, func(a, b store.ReplyHistory) int { return cmp.Compare(a.Seq, b.Seq) })
	return replies
}

func (s *Store) requeueLocked(op *store.Requeue, now time.Time) error {
	op.NewSeq = 0
	if !op.Box.Dead() {
		return fmt.Errorf("%w: nothing to requeue in box %v", store.ErrInvalid, op.Box)
	}
	n := s.findLetterLocked(op.Box, op.Seq)
	if n == 0 {
		return store.ErrNotFound
	}
	l := *s.dead.get(n)
	if s.fullLocked(1, l.size) {
		return store.ErrFull
	}
	s.dropLetterLocked(n)
	s.bytes += l.size
	if m := l.Message; m != nil {
		s.counts.LastInbox++
		op.NewSeq = s.counts.LastInbox
		if m.ID != "" {
			s.received.add(s.received.print(m.Installation, m.ID), known{seq: op.NewSeq}, s.age(now))
		}
		s.inbox.put(op.NewSeq, inboxItem{message: m, added: s.age(now)})
		return nil
	}
	o := l.Reply
	s.counts.LastOutbox++
	op.NewSeq = s.counts.LastOutbox
	if o.ID != "" {
		s.replied.add(s.replied.print(o.Installation, o.ID), known{seq: op.NewSeq}, s.age(now))
	}
	s.outbox.put(op.NewSeq, outboxItem{reply: o, state: store.StatePending, added: s.age(now)})
	return nil
}

func (s *Store) purgeLocked(op *store.Purge) error {
	if op.Box > store.BoxDeadOut {
		return fmt.Errorf("%w: there is no %v", store.ErrInvalid, op.Box)
	}
	it, ok := s.itemLocked(op.Box, op.Seq)
	switch {
	case !ok:
		return store.ErrNotFound
	case op.Box == store.BoxInbox:
		s.leaveInboxLocked(op.Seq, it.Message, false)
	case op.Box == store.BoxOutbox:
		s.leaveOutboxLocked(op.Seq, it.Reply)
	default:
		s.dropLetterLocked(s.findLetterLocked(op.Box, op.Seq))
		if m := it.Message; m != nil && m.ID != "" {
			s.received.exhume(s.received.print(m.Installation, m.ID), op.Seq)
		}
	}
	return nil
}
