package memory

import (
	"context"
	"fmt"
	"slices"

	"github.com/penstock-io/penstock/store"
)

// rlock begins a read, unless the store is closed or ctx is done.
func (s *Store) rlock(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("memory: read: %w", err)
	}
	s.mu.RLock()
	if s.closed {
		s.mu.RUnlock()
		return store.ErrClosed
	}
	return nil
}

// InboxHeads implements store.Store.
func (s *Store) InboxHeads(ctx context.Context, after store.Seq, limit int) ([]store.Head, error) {
	if err := s.rlock(ctx); err != nil {
		return nil, err
	}
	defer s.mu.RUnlock()
	return heads(&s.inbox, after, limit, func(seq store.Seq, item *inboxItem) store.Head {
		m := item.message
		return store.Head{
			Seq: seq, Installation: m.Installation, Conversation: m.Conversation.ID,
		}
	}), nil
}

// OutboxHeads implements store.Store.
func (s *Store) OutboxHeads(ctx context.Context, after store.Seq, limit int) ([]store.Head, error) {
	if err := s.rlock(ctx); err != nil {
		return nil, err
	}
	defer s.mu.RUnlock()
	return heads(&s.outbox, after, limit, func(seq store.Seq, item *outboxItem) store.Head {
		o := item.reply
		return store.Head{Seq: seq, Installation: o.Installation, Conversation: o.Conversation}
	}), nil
}

func heads[T any](
	items *series[T], after store.Seq, limit int, head func(store.Seq, *T) store.Head,
) []store.Head {
	if limit <= 0 {
		return nil
	}
	page := make([]store.Head, 0, min(limit, items.len))
	for seq, item := range items.above(after) {
		page = append(page, head(seq, item))
		if len(page) == limit {
			break
		}
	}
	return page
}

// LoadInbox implements store.Store.
func (s *Store) LoadInbox(ctx context.Context, seqs ...store.Seq) ([]store.Pending, error) {
	if err := s.rlock(ctx); err != nil {
		return nil, err
	}
	defer s.mu.RUnlock()
	return loaded(&s.inbox, seqs, func(seq store.Seq, item *inboxItem) store.Pending {
		return store.Pending{
			Seq: seq, Message: item.message, Attempts: item.attempts, At: item.at,
		}
	}), nil
}

// LoadOutbox implements store.Store.
func (s *Store) LoadOutbox(ctx context.Context, seqs ...store.Seq) ([]store.Outgoing, error) {
	if err := s.rlock(ctx); err != nil {
		return nil, err
	}
	defer s.mu.RUnlock()
	return loaded(&s.outbox, seqs, func(seq store.Seq, item *outboxItem) store.Outgoing {
		return store.Outgoing{
			Seq: seq, Reply: *item.reply, State: item.state, Attempts: item.attempts, At: item.at,
		}
	}), nil
}

func loaded[T, L any](
	items *series[T], seqs []store.Seq, load func(store.Seq, *T) L,
) []L {
	seqs = slices.Compact(slices.Sorted(slices.Values(seqs)))
	found := make([]L, 0, len(seqs))
	for _, seq := range seqs {
		if item := items.get(seq); item != nil {
			found = append(found, load(seq, item))
		}
	}
	return found
}

// DeadLetters implements store.Store.
func (s *Store) DeadLetters(ctx context.Context, limit int) ([]store.Dead, error) {
	if err := s.rlock(ctx); err != nil {
		return nil, err
	}
	defer s.mu.RUnlock()
	if limit <= 0 {
		return nil, nil
	}
	page := make([]store.Dead, 0, min(limit, s.dead.len))
	for _, l := range s.dead.backward() {
		page = append(page, l.Dead)
		if len(page) == limit {
			break
		}
	}
	return page, nil
}

// Counts implements store.Store.
func (s *Store) Counts(ctx context.Context) (store.Counts, error) {
	if err := s.rlock(ctx); err != nil {
		return store.Counts{}, err
	}
	defer s.mu.RUnlock()
	c := s.counts
	c.Inbox, c.Outbox = int64(s.inbox.len), int64(s.outbox.len)
	return c, nil
}
