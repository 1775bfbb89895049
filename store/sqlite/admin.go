package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/penstock-io/penstock/message"
	"github.com/penstock-io/penstock/store"
)

// filter is a WHERE clause under construction.
type filter struct {
	terms []string
	args  []any
}

func (f *filter) add(term string, arg any) {
	f.terms = append(f.terms, term)
	f.args = append(f.args, arg)
}

// filterOf turns a query into a clause.
func filterOf(q store.Query) filter {
	var f filter
	f.add("seq > ?", int64(q.After))
	since := "added"
	if q.Box.Dead() {
		f.add("box = ?", int64(alive(q.Box)))
		since = "at"
	} else if q.State != 0 {
		f.add("state = ?", state(q.State))
	}
	if q.Installation != "" {
		f.add("inst = ?", string(q.Installation))
	}
	if q.Conversation != "" {
		f.add("conv = ?", string(q.Conversation))
	}
	if q.Reason != "" {
		f.add("instr(reason, ?) > 0", q.Reason)
	}
	if !q.Since.IsZero() {
		f.add(since+" >= ?", q.Since.UnixMilli())
	}
	if !q.Until.IsZero() {
		f.add(since+" < ?", q.Until.UnixMilli())
	}
	return f
}

// nothing tells that no item can be selected.
func nothing(q store.Query) bool {
	switch {
	case q.Limit <= 0, q.Box > store.BoxDeadOut:
		return true
	case q.State == 0:
		return false
	case q.Box.Dead():
		return q.State != store.StateDead
	}
	return q.State != store.StatePending &&
		(q.State != store.StateSending || q.Box != store.BoxOutbox)
}

// List implements store.Admin. It looks at the rows of the box in order until it
// has enough, so a query that selects little takes a while in a large box.
func (s *Store) List(ctx context.Context, q store.Query) (entries []store.Entry, err error) {
	err = s.reads(ctx, func() error {
		if nothing(q) {
			return nil
		}
		f := filterOf(q)
		f.args = append(f.args, int64(q.Limit))
		rows, err := s.readers.QueryContext(ctx, s.showText(q.Box)+" WHERE "+
			strings.Join(f.terms, " AND ")+" ORDER BY seq LIMIT ?", f.args...)
		if err != nil {
			return err
		}
		return scan(rows, func() error {
			item, err := scanItem(rows, q.Box)
			entries = append(entries, item.Entry)
			return err
		})
	})
	if err != nil {
		return nil, err
	}
	return entries, nil
}

func (s *Store) showText(b store.Box) string {
	if b.Dead() {
		return showDead
	}
	return s.boxes[b].text.show
}

// scanItem reads a row of texts.show or showDead.
func scanItem(row interface{ Scan(...any) error }, b store.Box) (it store.Item, err error) {
	var seq, st, attempts, added, at int64
	var in, conv string
	var body []byte
	err = row.Scan(&seq, &in, &conv, &st, &attempts, &added, &at, &it.Reason, &body)
	if err != nil {
		return it, err
	}
	it.Box, it.Seq, it.Attempts = b, store.Seq(seq), int(attempts)
	it.Installation, it.Conversation = message.InstallationID(in), message.ConversationID(conv)
	it.Since, it.At, it.State = fromMillis(added), fromMillis(at), fromState(st)
	if b.Dead() {
		it.State = store.StateDead
		b = alive(b)
	}
	if it.Message, it.Reply, err = readItem(b, body); err != nil {
		return it, fmt.Errorf("item %d: %w", seq, err)
	}
	if it.Message != nil {
		it.ID = it.Message.ID
	} else {
		it.ID = it.Reply.ID
	}
	return it, nil
}

// Show implements store.Admin.
func (s *Store) Show(ctx context.Context, b store.Box, seq store.Seq) (it store.Item, err error) {
	err = s.reads(ctx, func() error {
		if b > store.BoxDeadOut {
			return store.ErrNotFound
		}
		text, args := s.showText(b)+" WHERE seq = ?", []any{int64(seq)}
		if b.Dead() {
			text, args = text+" AND box = ?", append(args, int64(alive(b)))
		}
		it, err = scanItem(s.readers.QueryRowContext(ctx, text, args...), b)
		return notFound(err)
	})
	return it, err
}

// Trace implements store.Admin. How an item ended is looked for in all ends that
// are kept.
func (s *Store) Trace(
	ctx context.Context, in message.InstallationID, id message.ID,
) (h store.History, err error) {
	err = s.reads(ctx, func() (err error) {
		commits := s.candidates(idKey{in, id})
		tx, err := s.readers.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, ignoreDone(tx.Rollback())) }()
		t := tracer{ctx, tx, s}
		h, err = t.message(commits, idKey{in, id})
		return err
	})
	return h, err
}

func ignoreDone(err error) error {
	if errors.Is(err, sql.ErrTxDone) {
		return nil
	}
	return err
}

func (s *Store) candidates(k idKey) []int64 {
	s.mu.RLock()
	defer s.mu.RUnlock()
	x := &s.boxes[store.BoxInbox].ids
	return x.candidates(x.hash(k), s.last, nil)
}

// tracer reads one state of the file.
type tracer struct {
	ctx context.Context // of the one call that it lives for
	tx  *sql.Tx
	s   *Store
}

func (t tracer) message(commits []int64, k idKey) (h store.History, err error) {
	if k.id == "" {
		return h, store.ErrNotFound
	}
	var first int64
	for _, commit := range commits {
		seq, at, err := t.given(commit, k)
		if err != nil {
			return h, err
		}
		if seq > h.Seq {
			h.Seq, h.Received, first = seq, fromMillis(at), commit
		}
	}
	if h.Seq == 0 {
		return h, store.ErrNotFound
	}
	r, e, err := t.item(store.BoxInbox, h.Seq)
	if err != nil {
		return h, err
	}
	h.State, h.Attempts, h.At, h.Ended, h.Reason = r.State, r.Attempts, r.At, r.Ended, r.Reason
	sent, err := t.sent(first, h.Received.Add(sentWithin), k)
	if err != nil {
		return h, err
	}
	for _, seq := range append(e.replies, sent...) {
		r, err := t.reply(seq)
		if err != nil {
			return h, err
		}
		if slices.ContainsFunc(h.Replies, func(o store.ReplyHistory) bool { return o.Seq == r.Seq }) {
			continue // it was found under its old number, too
		}
		h.Replies = append(h.Replies, r)
	}
	return h, nil
}

// reply tells where a reply stands, under the number that it has now.
func (t tracer) reply(seq store.Seq) (r store.ReplyHistory, err error) {
	for next := seq; ; { // numbers only grow
		var e end
		if r, e, err = t.item(store.BoxOutbox, next); err != nil || e.how != endRequeued {
			return r, err
		}
		if len(e.replies) != 1 || e.replies[0] <= next {
			return r, nil
		}
		next = e.replies[0]
	}
}

// sentWithin is how long after a message replies are looked for that its handler has
// not returned: reply addresses are good for 90 minutes.
const sentWithin = 2 * time.Hour

// sent gives the replies to a message that were sent on their own, by their ids. It
// reads what was committed between the message and until.
func (t tracer) sent(first int64, until time.Time, k idKey) (found []store.Seq, err error) {
	rows, err := t.tx.QueryContext(t.ctx, laterReplies, first, until.UnixMilli())
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var ids sql.RawBytes
		if err := rows.Scan(&ids); err != nil {
			return nil, err
		}
		err = readIDs(ids, func(seq store.Seq, id idKey) {
			if id.in == k.in && id.id.IsReplyTo(k.id) {
				found = append(found, seq)
			}
		})
		if err != nil {
			return nil, err
		}
	}
	return found, rows.Err()
}

// given is box.given for a reader.
func (t tracer) given(commit int64, k idKey) (seq store.Seq, at int64, err error) {
	var ids []byte
	row := t.tx.QueryRowContext(t.ctx, t.s.boxes[store.BoxInbox].text.ids, commit)
	if err := row.Scan(&at, &ids); err != nil {
		return 0, 0, ignoreNoRows(err)
	}
	err = readIDs(ids, func(n store.Seq, other idKey) {
		if other == k {
			seq = n
		}
	})
	return seq, at, err
}

func ignoreNoRows(err error) error {
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	return err
}

// item tells where an item stands, whether it is there, dead or gone.
func (t tracer) item(b store.Box, seq store.Seq) (r store.ReplyHistory, e end, err error) {
	r.Seq = seq
	it, err := scanItem(t.tx.QueryRowContext(t.ctx, t.s.boxes[b].text.show+" WHERE seq = ?",
		int64(seq)), b)
	if err == nil {
		r.State, r.Attempts, r.At, r.Reason = it.State, it.Attempts, it.At, it.Reason
		return r, e, nil
	} else if !errors.Is(err, sql.ErrNoRows) {
		return r, e, err
	}
	var attempts, at int64
	row := t.tx.QueryRowContext(t.ctx, deadState, int64(b), int64(seq))
	err = row.Scan(&attempts, &at, &r.Reason)
	if err == nil {
		r.State, r.Attempts, r.Ended = store.StateDead, int(attempts), fromMillis(at)
		return r, e, nil
	} else if !errors.Is(err, sql.ErrNoRows) {
		return r, e, err
	}
	e, at, err = t.end(b, seq)
	r.State, r.Ended, r.Receipt = store.StateDone, fromMillis(at), e.receipt
	switch e.how {
	case endPurged:
		r.Reason = store.ReasonPurged
	case endUnrouted:
		r.Reason = store.ReasonUnrouted
	}
	return r, e, err
}

// end finds how an item ended, nothing if that is not kept any more.
func (t tracer) end(b store.Box, seq store.Seq) (last end, at int64, err error) {
	rows, err := t.tx.QueryContext(t.ctx, t.s.boxes[b].text.ended, int64(seq))
	if err != nil {
		return last, 0, err
	}
	err = scan(rows, func() error {
		var when int64
		var items []byte
		if err := rows.Scan(&when, &items); err != nil || at != 0 {
			return err
		}
		return readEnds(items, func(e end) bool {
			if e.box == b && e.seq == seq {
				last, at = e, when
			}
			return true
		})
	})
	return last, at, err
}
