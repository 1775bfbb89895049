package memory

import (
	"context"
	"fmt"

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
func (s *Store) LoadInbox(ctx context.Context, seq store.Seq) (store.Pending, error) {
	if err := s.rlock(ctx); err != nil {
		return store.Pending{}, err
	}
	defer s.mu.RUnlock()
	item := s.inbox.get(seq)
	if item == nil {
		return store.Pending{}, store.ErrNotFound
	}
	return store.Pending{
		Seq: seq, Message: item.message, Attempts: item.attempts, At: item.at,
	}, nil
}

// LoadOutbox implements store.Store.
func (s *Store) LoadOutbox(ctx context.Context, seq store.Seq) (store.Outgoing, error) {
	if err := s.rlock(ctx); err != nil {
		return store.Outgoing{}, err
	}
	defer s.mu.RUnlock()
	item := s.outbox.get(seq)
	if item == nil {
		return store.Outgoing{}, store.ErrNotFound
	}
	return store.Outgoing{
		Seq: seq, Reply: *item.reply, State: item.state, Attempts: item.attempts, At: item.at,
	}, nil
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
