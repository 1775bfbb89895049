package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/penstock-io/penstock/message"
	"github.com/penstock-io/penstock/store"
)

// reads runs a read, unless the store is closed or ctx is done.
func (s *Store) reads(ctx context.Context, read func() error) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("sqlite: read: %w", err)
	}
	s.reading.RLock()
	defer s.reading.RUnlock()
	if s.gone {
		return store.ErrClosed
	}
	err := read()
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return fmt.Errorf("sqlite: read: %w", ctx.Err())
	case errors.Is(err, store.ErrNotFound):
		return store.ErrNotFound
	}
	return fmt.Errorf("sqlite: read: %w", explain(err))
}

// InboxHeads implements store.Store.
func (s *Store) InboxHeads(ctx context.Context, after store.Seq, limit int) ([]store.Head, error) {
	return s.heads(ctx, store.BoxInbox, after, limit)
}

// OutboxHeads implements store.Store.
func (s *Store) OutboxHeads(ctx context.Context, after store.Seq, limit int) ([]store.Head, error) {
	return s.heads(ctx, store.BoxOutbox, after, limit)
}

func (s *Store) heads(
	ctx context.Context, b store.Box, after store.Seq, limit int,
) (heads []store.Head, err error) {
	err = s.reads(ctx, func() error {
		if limit <= 0 {
			return nil
		}
		rows, err := s.read.heads[b].QueryContext(ctx, int64(after), int64(limit))
		if err != nil {
			return err
		}
		return scan(rows, func() error {
			var seq int64
			var in, conv string
			if err := rows.Scan(&seq, &in, &conv); err != nil {
				return err
			}
			h := store.Head{Seq: store.Seq(seq), Conversation: message.ConversationID(conv)}
			// The few installations share their names.
			if h.Installation = message.InstallationID(in); len(heads) > 0 {
				if last := heads[len(heads)-1].Installation; last == h.Installation {
					h.Installation = last
				}
			}
			heads = append(heads, h)
			return nil
		})
	})
	return heads, err
}

// scan calls each for every row and closes rows.
func scan(rows *sql.Rows, each func() error) (err error) {
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		if err := each(); err != nil {
			return err
		}
	}
	return rows.Err()
}

// loaded is an item as it lies in the file.
type loaded struct {
	state, attempts, at int64
	body                []byte
}

func (s *Store) load1(ctx context.Context, b store.Box, seq store.Seq) (l loaded, err error) {
	err = s.reads(ctx, func() error {
		row := s.read.load[b].QueryRowContext(ctx, int64(seq))
		return notFound(row.Scan(&l.state, &l.attempts, &l.at, &l.body))
	})
	return l, err
}

func notFound(err error) error {
	if errors.Is(err, sql.ErrNoRows) {
		return store.ErrNotFound
	}
	return err
}

// LoadInbox implements store.Store.
func (s *Store) LoadInbox(ctx context.Context, seq store.Seq) (store.Pending, error) {
	l, err := s.load1(ctx, store.BoxInbox, seq)
	if err != nil {
		return store.Pending{}, err
	}
	m, err := readInbound(l.body)
	if err != nil {
		return store.Pending{}, fmt.Errorf("message %d: %w", seq, err)
	}
	return store.Pending{
		Seq: seq, Message: m, Attempts: int(l.attempts), At: fromMillis(l.at),
	}, nil
}

// LoadOutbox implements store.Store.
func (s *Store) LoadOutbox(ctx context.Context, seq store.Seq) (store.Outgoing, error) {
	l, err := s.load1(ctx, store.BoxOutbox, seq)
	if err != nil {
		return store.Outgoing{}, err
	}
	o, err := readOutbound(l.body)
	if err != nil {
		return store.Outgoing{}, fmt.Errorf("reply %d: %w", seq, err)
	}
	return store.Outgoing{
		Seq: seq, Reply: *o, State: fromState(l.state), Attempts: int(l.attempts),
		At: fromMillis(l.at),
	}, nil
}

// DeadLetters implements store.Store.
func (s *Store) DeadLetters(ctx context.Context, limit int) (letters []store.Dead, err error) {
	err = s.reads(ctx, func() error {
		if limit <= 0 {
			return nil
		}
		rows, err := s.readers.QueryContext(ctx, deadLetters, int64(limit))
		if err != nil {
			return err
		}
		return scan(rows, func() error {
			var box, seq, attempts, at int64
			var d store.Dead
			var body []byte
			if err := rows.Scan(&box, &seq, &attempts, &at, &d.Reason, &body); err != nil {
				return err
			}
			d.Seq, d.Attempts, d.At = store.Seq(seq), int(attempts), fromMillis(at)
			if d.Message, d.Reply, err = readItem(store.Box(box), body); err != nil {
				return fmt.Errorf("dead letter %d: %w", seq, err)
			}
			letters = append(letters, d)
			return nil
		})
	})
	return letters, err
}

// readItem reads a message or a reply.
func readItem(b store.Box, body []byte) (m *message.Inbound, o *message.Outbound, err error) {
	if b == store.BoxOutbox {
		o, err = readOutbound(body)
	} else {
		m, err = readInbound(body)
	}
	return m, o, err
}

// Counts implements store.Store.
func (s *Store) Counts(ctx context.Context) (c store.Counts, err error) {
	err = s.reads(ctx, func() error {
		s.mu.RLock()
		defer s.mu.RUnlock()
		in, out := &s.boxes[store.BoxInbox], &s.boxes[store.BoxOutbox]
		c = store.Counts{
			Inbox: in.count, Outbox: out.count, DeadInbox: in.dead, DeadOutbox: out.dead,
			Done: in.done, Sent: out.done, LastInbox: in.last, LastOutbox: out.last,
		}
		return nil
	})
	return c, err
}
