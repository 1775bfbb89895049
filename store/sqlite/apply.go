package sqlite

import (
	"fmt"
	"slices"
	"time"

	"github.com/penstock-io/penstock/message"
	"github.com/penstock-io/penstock/store"
)

// apply does one op and gives its own outcome.
func (g *group) apply(op store.Op) error {
	switch op := op.(type) {
	case *store.Append:
		return g.append(op)
	case *store.Finish:
		return g.finish(op)
	case *store.Postpone:
		return g.postpone(op)
	case *store.Bury:
		return g.bury(store.BoxInbox, op.Seq, op.Attempts, op.Reason)
	case *store.Add:
		op.Seqs = g.replies(op.Replies)
		return nil
	case *store.Begin:
		return g.attempt(op)
	case *store.Sent:
		return g.sent(op)
	case *store.Again:
		return g.again(op)
	case *store.Discard:
		return g.bury(store.BoxOutbox, op.Seq, op.Attempts, op.Reason)
	case *store.Requeue:
		return g.requeue(op)
	case *store.Purge:
		return g.purge(op)
	}
	return fmt.Errorf("%w: %T is not known", store.ErrInvalid, op)
}

func (g *group) append(op *store.Append) error {
	op.Seq, op.State = 0, store.StateNew
	m := op.Message
	if m == nil {
		return fmt.Errorf("%w: append without a message", store.ErrInvalid)
	}
	k := idKey{m.Installation, m.ID}
	if first := g.known(store.BoxInbox, k); first != 0 {
		op.Seq, op.State = first, g.stateOf(first)
		return nil
	}
	op.Seq = g.put(store.BoxInbox, item{key: k, conv: m.Conversation.ID, message: m})
	if op.Bury != "" {
		return g.bury(store.BoxInbox, op.Seq, 0, op.Bury)
	}
	return nil
}

// stateOf is where a message that was appended before stands.
func (g *group) stateOf(seq store.Seq) store.State {
	switch {
	case g.find(store.BoxInbox, seq) != nil:
		return store.StatePending
	case g.isDead(store.BoxInbox, seq):
		return store.StateDead
	}
	return store.StateDone
}

func (g *group) finish(op *store.Finish) error {
	op.ReplySeqs = nil
	it := g.find(store.BoxInbox, op.Seq)
	if it == nil {
		return store.ErrNotFound
	}
	it.gone = true
	g.sides[store.BoxInbox].done++
	op.ReplySeqs = g.replies(op.Replies)
	how := endDone
	if op.Unrouted {
		how = endUnrouted
	}
	g.ends.add(end{box: store.BoxInbox, seq: op.Seq, how: how, replies: op.ReplySeqs})
	return nil
}

// replies puts replies into the outbox and gives their numbers.
func (g *group) replies(replies []message.Outbound) []store.Seq {
	if len(replies) == 0 {
		return nil
	}
	seqs := make([]store.Seq, len(replies))
	for i := range replies {
		o := &replies[i]
		k := idKey{o.Installation, o.ID}
		if seqs[i] = g.known(store.BoxOutbox, k); seqs[i] == 0 {
			seqs[i] = g.put(store.BoxOutbox, item{key: k, conv: o.Conversation, reply: o})
		}
	}
	return seqs
}

func (g *group) postpone(op *store.Postpone) error {
	it := g.find(store.BoxInbox, op.Seq)
	if it == nil {
		return store.ErrNotFound
	}
	it.attempts, it.at, it.reason = op.Attempts, millis(op.At), op.Reason
	it.changed, it.timed = true, true
	return nil
}

func (g *group) attempt(op *store.Begin) error {
	it := g.find(store.BoxOutbox, op.Seq)
	if it == nil {
		return store.ErrNotFound
	}
	it.state, it.attempts, it.changed = store.StateSending, op.Attempts, true
	return nil
}

func (g *group) again(op *store.Again) error {
	it := g.find(store.BoxOutbox, op.Seq)
	if it == nil {
		return store.ErrNotFound
	}
	it.state, it.attempts = store.StatePending, op.Attempts
	it.at, it.reason = millis(op.At), op.Reason
	it.changed, it.timed = true, true
	return nil
}

func (g *group) sent(op *store.Sent) error {
	it := g.find(store.BoxOutbox, op.Seq)
	if it == nil {
		return store.ErrNotFound
	}
	it.gone = true
	g.sides[store.BoxOutbox].done++
	g.ends.add(end{box: store.BoxOutbox, seq: op.Seq, how: endDone, receipt: op.Receipt})
	return nil
}

// alive gives the box of items that a box of dead letters belongs to.
func alive(b store.Box) store.Box {
	if b == store.BoxDeadOut {
		return store.BoxOutbox
	}
	return store.BoxInbox
}

func (g *group) requeue(op *store.Requeue) error {
	op.NewSeq = 0
	if !op.Box.Dead() {
		return fmt.Errorf("%w: nothing to requeue in box %v", store.ErrInvalid, op.Box)
	}
	b := alive(op.Box)
	it, err := g.exhume(b, op.Seq, true)
	if err != nil {
		return err
	}
	op.NewSeq = g.put(b, it)
	g.ends.add(end{box: b, seq: op.Seq, how: endRequeued, replies: []store.Seq{op.NewSeq}})
	return nil
}

func (g *group) purge(op *store.Purge) error {
	switch {
	case op.Box.Dead():
		if _, err := g.exhume(alive(op.Box), op.Seq, false); err != nil {
			return err
		}
		g.ends.add(end{box: alive(op.Box), seq: op.Seq, how: endPurged})
		return nil
	case op.Box > store.BoxOutbox:
		return fmt.Errorf("%w: there is no %v", store.ErrInvalid, op.Box)
	}
	it := g.find(op.Box, op.Seq)
	if it == nil {
		return store.ErrNotFound
	}
	it.gone = true
	g.ends.add(end{box: op.Box, seq: op.Seq, how: endPurged})
	return nil
}

// exhume takes out a dead letter and gives what it was. Its id is looked for only
// if it is wanted, so that a letter that cannot be read can still be purged.
func (g *group) exhume(b store.Box, seq store.Seq, wantID bool) (it item, err error) {
	for i := range g.letters {
		if l := &g.letters[i]; l.box == b && l.seq == seq && !l.left {
			it = item{key: l.key, conv: l.conv, message: l.message, reply: l.reply, body: l.body}
			if wantID {
				err = it.readID(b)
			}
			l.left = err == nil
			return it, err
		}
	}
	gone := exhumed{b, seq}
	if slices.Contains(g.exhumed, gone) {
		return it, store.ErrNotFound
	}
	found, err := g.w.one(getDead, []any{int64(b), int64(seq)}, it.fromRow)
	switch {
	case err != nil:
		g.fail(err)
		return it, err
	case !found:
		return it, store.ErrNotFound
	}
	if wantID {
		if err := it.readID(b); err != nil {
			return it, err
		}
	}
	g.exhumed = append(g.exhumed, gone)
	return it, nil
}

// fromRow takes installation, conversation and body of a row.
func (it *item) fromRow(r row) {
	it.key.in = message.InstallationID(r.text(0))
	it.conv = message.ConversationID(r.text(1))
	it.body = r.bytes(2)
}

// readID finds the id of an item that was read from a table.
func (it *item) readID(b store.Box) (err error) {
	if it.body != nil {
		it.key.id, err = idOf(b, it.body)
	}
	return err
}

// idOf reads the id of an item.
func idOf(b store.Box, body []byte) (message.ID, error) {
	if b == store.BoxOutbox {
		o, err := readOutbound(body)
		if err != nil {
			return "", err
		}
		return o.ID, nil
	}
	m, err := readInbound(body)
	if err != nil {
		return "", err
	}
	return m.ID, nil
}

// millis is how times are kept; 0 is no time.
func millis(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

func fromMillis(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}
