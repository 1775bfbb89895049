package ops

import (
	"fmt"

	"github.com/penstock-io/penstock/message"
	"github.com/penstock-io/penstock/store"
)

var boxes = []store.Box{store.BoxInbox, store.BoxOutbox, store.BoxDeadIn, store.BoxDeadOut}

// parseBox reads the word for a box.
func parseBox(word string) (store.Box, error) {
	for _, b := range boxes {
		if b.String() == word {
			return b, nil
		}
	}
	return 0, badRequest("%q is none of inbox, outbox, dead_in, dead_out", word)
}

// revived is the box that an item of box is in after a requeue.
func revived(box store.Box) store.Box {
	switch box {
	case store.BoxDeadIn:
		return store.BoxInbox
	case store.BoxDeadOut:
		return store.BoxOutbox
	}
	return box
}

// String gives the form in which messages to people name an item.
func (r Ref) String() string { return fmt.Sprintf("%s %d", r.Box, r.Seq) }

// parse gives the store's form of a query, or says what is wrong with it.
func (q *Query) parse() (store.Query, error) {
	box, err := parseBox(q.Box)
	if err != nil {
		return store.Query{}, err
	}
	sq := store.Query{
		Box: box, Installation: q.Installation, Conversation: q.Conversation,
		Reason: q.Reason, Since: q.Since, Until: q.Until, After: q.After, Limit: MaxPage,
	}
	if q.Limit > 0 {
		sq.Limit = min(q.Limit, MaxPage)
	}
	switch q.State {
	case "":
	case store.StatePending.String():
		sq.State = store.StatePending
	case store.StateSending.String():
		sq.State = store.StateSending
	default:
		return store.Query{}, badRequest("state %q is neither pending nor sending", q.State)
	}
	if sq.State != store.StateNew && box.Dead() {
		return store.Query{}, badRequest("a dead letter has no state to select by")
	}
	return sq, nil
}

// entry gives the form that is shown.
func entry(e *store.Entry) Entry {
	return Entry{
		Box: e.Box.String(), Seq: e.Seq, ID: e.ID,
		Installation: e.Installation, Conversation: e.Conversation,
		State: e.State.String(), Attempts: e.Attempts,
		Since: e.Since, NextAttempt: e.At, Reason: e.Reason,
	}
}

// item gives the form that is shown, without what must not be.
func item(it *store.Item) Item {
	out := Item{Entry: entry(&it.Entry)}
	if it.Message != nil {
		m := *it.Message // the store's own is not to be changed
		m.Raw = hideWebhooks(m.Raw)
		out.Message = &m
	}
	if it.Reply != nil {
		out.Reply = reply(it.Reply)
	}
	return out
}

// reply leaves the address out.
func reply(o *message.Outbound) *Reply {
	return &Reply{
		Format: o.Format, Title: o.Title, Text: o.Text, Mentions: o.Mentions,
		MentionAll: o.MentionAll, Card: o.Card, InReplyTo: o.InReplyTo,
		Part: o.Part, Parts: o.Parts, CreatedAt: o.CreatedAt, HasTarget: len(o.Target) > 0,
	}
}
