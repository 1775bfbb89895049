package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"

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
	seq                 store.Seq
	state, attempts, at int64
	body                sql.RawBytes // valid until the next row
}

// loadAll calls each for those of the items that are there. One statement reads one
// state of the file, and one costs about as much as what it reads of many items.
func (s *Store) loadAll(
	ctx context.Context, b store.Box, seqs []store.Seq, each func(loaded) error,
) error {
	return s.reads(ctx, func() error {
		if len(seqs) == 0 {
			return nil
		}
		rows, err := s.read.load[b].QueryContext(ctx, jsonList(seqs))
		if err != nil {
			return err
		}
		return scan(rows, func() error {
			var l loaded
			if err := rows.Scan(&l.seq, &l.state, &l.attempts, &l.at, &l.body); err != nil {
				return err
			}
			return each(l)
		})
	})
}

// jsonList is how a statement takes a list of numbers.
func jsonList(seqs []store.Seq) string {
	text := []byte{'['}
	for i, seq := range seqs {
		if i > 0 {
			text = append(text, ',')
		}
		text = strconv.AppendInt(text, int64(seq), 10)
	}
	return string(append(text, ']'))
}

func notFound(err error) error {
	if errors.Is(err, sql.ErrNoRows) {
		return store.ErrNotFound
	}
	return err
}

// LoadInbox implements store.Store.
func (s *Store) LoadInbox(
	ctx context.Context, seqs ...store.Seq,
) (items []store.Pending, err error) {
	err = s.loadAll(ctx, store.BoxInbox, seqs, func(l loaded) error {
		m, err := readInbound(l.body)
		if err != nil {
			return fmt.Errorf("message %d: %w", l.seq, err)
		}
		items = append(items, store.Pending{
			Seq: l.seq, Message: m, Attempts: int(l.attempts), At: fromMillis(l.at),
		})
		return nil
	})
	return items, err
}

// LoadOutbox implements store.Store.
func (s *Store) LoadOutbox(
	ctx context.Context, seqs ...store.Seq,
) (items []store.Outgoing, err error) {
	err = s.loadAll(ctx, store.BoxOutbox, seqs, func(l loaded) error {
		o, err := readOutbound(l.body)
		if err != nil {
			return fmt.Errorf("reply %d: %w", l.seq, err)
		}
		items = append(items, store.Outgoing{
			Seq: l.seq, Reply: *o, State: fromState(l.state), Attempts: int(l.attempts),
			At: fromMillis(l.at),
		})
		return nil
	})
	return items, err
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
