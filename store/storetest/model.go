package storetest

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/penstock-io/penstock/message"
	"github.com/penstock-io/penstock/store"
)

// model is what a store should hold, told in the plainest way. Items are in the
// order of their numbers, dead letters in that of their burial.
type model struct {
	inbox  []store.Pending
	outbox []store.Outgoing
	dead   []store.Dead
	ids    map[idKey]*place // messages
	known  map[idKey]store.Seq
	counts store.Counts
}

type idKey struct {
	in message.InstallationID
	id message.ID
}

type place struct {
	seq   store.Seq
	state store.State
}

func newModel() *model {
	return &model{ids: map[idKey]*place{}, known: map[idKey]store.Seq{}}
}

// apply checks what the store says of an op that it has just committed, and does
// the same.
func (m *model) apply(t require.TestingT, op store.Op) {
	switch op := op.(type) {
	case *store.Append:
		m.append(t, op)
	case *store.Finish:
		if m.settle(t, op, op.Seq, store.StateDone) != nil {
			m.counts.Done++
			m.reply(t, op.Replies, op.ReplySeqs)
		}
	case *store.Postpone:
		if i := m.findInbox(t, op, op.Seq); i >= 0 {
			m.inbox[i].Attempts, m.inbox[i].At = op.Attempts, op.At
		}
	case *store.Bury:
		if msg := m.settle(t, op, op.Seq, store.StateDead); msg != nil {
			m.bury(store.Dead{Seq: op.Seq, Message: msg, Attempts: op.Attempts, Reason: op.Reason})
		}
	case *store.Add:
		require.NoError(t, op.Result())
		m.reply(t, op.Replies, op.Seqs)
	case *store.Requeue:
		m.requeue(t, op)
	case *store.Purge:
		m.purge(t, op)
	default:
		m.applyOutbox(t, op)
	}
}

func (m *model) applyOutbox(t require.TestingT, op store.Op) {
	switch op := op.(type) {
	case *store.Begin:
		if i := m.findOutbox(t, op, op.Seq); i >= 0 {
			m.outbox[i].State, m.outbox[i].Attempts = store.StateSending, op.Attempts
		}
	case *store.Sent:
		if i := m.findOutbox(t, op, op.Seq); i >= 0 {
			m.outbox = slices.Delete(m.outbox, i, i+1)
			m.counts.Sent++
		}
	case *store.Again:
		if i := m.findOutbox(t, op, op.Seq); i >= 0 {
			o := &m.outbox[i]
			o.State, o.Attempts, o.At = store.StatePending, op.Attempts, op.At
		}
	case *store.Discard:
		if i := m.findOutbox(t, op, op.Seq); i >= 0 {
			r := m.outbox[i].Reply
			m.outbox = slices.Delete(m.outbox, i, i+1)
			m.bury(store.Dead{Seq: op.Seq, Reply: &r, Attempts: op.Attempts, Reason: op.Reason})
		}
	}
}

func (m *model) append(t require.TestingT, op *store.Append) {
	require.NoError(t, op.Result())
	key := idKey{op.Message.Installation, op.Message.ID}
	if first, ok := m.ids[key]; ok {
		require.Equal(t, *first, place{op.Seq, op.State}, "a duplicate tells of the first copy")
		return
	}
	require.Equal(t, store.StateNew, op.State)
	require.Greater(t, op.Seq, m.counts.LastInbox, "a number was used again")
	m.counts.LastInbox = op.Seq
	at := &place{op.Seq, store.StatePending}
	if key.id != "" {
		m.ids[key] = at
	}
	if op.Bury != "" {
		at.state = store.StateDead
		m.bury(store.Dead{Seq: op.Seq, Message: op.Message, Reason: op.Bury})
		return
	}
	m.inbox = append(m.inbox, store.Pending{Seq: op.Seq, Message: op.Message})
}

// settle takes an item out of the inbox, and gives its message.
func (m *model) settle(
	t require.TestingT, op store.Op, seq store.Seq, state store.State,
) *message.Inbound {
	i := m.findInbox(t, op, seq)
	if i < 0 {
		return nil
	}
	msg := m.inbox[i].Message
	m.inbox = slices.Delete(m.inbox, i, i+1)
	if p, ok := m.ids[idKey{msg.Installation, msg.ID}]; ok {
		p.state = state
	}
	return msg
}

// exhume takes out a dead letter, nil if the op should not have found one.
func (m *model) exhume(t require.TestingT, op store.Op, b store.Box, seq store.Seq) *store.Dead {
	i := result(t, op, slices.IndexFunc(m.dead, func(d store.Dead) bool {
		return d.Seq == seq && (d.Message != nil) == (b == store.BoxDeadIn)
	}))
	if i < 0 {
		return nil
	}
	d := m.dead[i]
	m.dead = slices.Delete(m.dead, i, i+1)
	if d.Message == nil {
		m.counts.DeadOutbox--
		return &d
	}
	m.counts.DeadInbox--
	if p, ok := m.ids[idKey{d.Message.Installation, d.Message.ID}]; ok && p.seq == seq {
		p.state = store.StateDone
	}
	return &d
}

func (m *model) requeue(t require.TestingT, op *store.Requeue) {
	d := m.exhume(t, op, op.Box, op.Seq)
	switch {
	case d == nil:
	case d.Message != nil:
		require.Greater(t, op.NewSeq, m.counts.LastInbox)
		m.counts.LastInbox = op.NewSeq
		m.inbox = append(m.inbox, store.Pending{Seq: op.NewSeq, Message: d.Message})
		if id := d.Message.ID; id != "" {
			m.ids[idKey{d.Message.Installation, id}] = &place{op.NewSeq, store.StatePending}
		}
	default:
		require.Greater(t, op.NewSeq, m.counts.LastOutbox)
		m.counts.LastOutbox = op.NewSeq
		m.outbox = append(m.outbox, store.Outgoing{
			Seq: op.NewSeq, Reply: *d.Reply, State: store.StatePending,
		})
		if d.Reply.ID != "" {
			m.known[idKey{d.Reply.Installation, d.Reply.ID}] = op.NewSeq
		}
	}
}

func (m *model) purge(t require.TestingT, op *store.Purge) {
	switch op.Box {
	case store.BoxInbox:
		m.settle(t, op, op.Seq, store.StateDone)
	case store.BoxOutbox:
		if i := m.findOutbox(t, op, op.Seq); i >= 0 {
			m.outbox = slices.Delete(m.outbox, i, i+1)
		}
	default:
		m.exhume(t, op, op.Box, op.Seq)
	}
}

func (m *model) bury(d store.Dead) {
	m.dead = append(m.dead, d)
	if d.Message != nil {
		m.counts.DeadInbox++
	} else {
		m.counts.DeadOutbox++
	}
}

func (m *model) reply(t require.TestingT, replies []message.Outbound, seqs []store.Seq) {
	require.Len(t, seqs, len(replies))
	for i, r := range replies {
		key := idKey{r.Installation, r.ID}
		if first, ok := m.known[key]; ok {
			require.Equal(t, first, seqs[i], "a known reply has the first one's number")
			continue
		}
		require.Greater(t, seqs[i], m.counts.LastOutbox, "a number was used again")
		m.counts.LastOutbox = seqs[i]
		if r.ID != "" {
			m.known[key] = seqs[i]
		}
		m.outbox = append(m.outbox, store.Outgoing{
			Seq: seqs[i], Reply: r, State: store.StatePending,
		})
	}
}

func (m *model) findInbox(t require.TestingT, op store.Op, seq store.Seq) int {
	return result(t, op, slices.IndexFunc(m.inbox, func(p store.Pending) bool {
		return p.Seq == seq
	}))
}

func (m *model) findOutbox(t require.TestingT, op store.Op, seq store.Seq) int {
	return result(t, op, slices.IndexFunc(m.outbox, func(o store.Outgoing) bool {
		return o.Seq == seq
	}))
}

// result checks that an op failed exactly if its item is not there.
func result(t require.TestingT, op store.Op, i int) int {
	if i < 0 {
		require.ErrorIs(t, op.Result(), store.ErrNotFound, "%T", op)
	} else {
		require.NoError(t, op.Result(), "%T", op)
	}
	return i
}

// genOp draws an op on few ids and low numbers, so that they often meet.
func genOp() *rapid.Generator[store.Op] {
	ids := rapid.SampledFrom([]message.ID{"", "a", "b", "c", "d", "e", "f", "g"})
	bots := rapid.SampledFrom([]message.InstallationID{bot, otherBot})
	return rapid.Custom(func(t *rapid.T) store.Op {
		seq := store.Seq(rapid.IntRange(0, 12).Draw(t, "seq"))
		attempts := rapid.IntRange(0, 9).Draw(t, "attempts")
		reason := rapid.SampledFrom([]string{"busy", "bad"}).Draw(t, "reason")
		replies := make([]message.Outbound, rapid.IntRange(0, 2).Draw(t, "replies"))
		for i := range replies {
			replies[i] = outbound(ids.Draw(t, "reply"))
			replies[i].Installation = bots.Draw(t, "bot")
		}
		box := store.Box(rapid.IntRange(0, 3).Draw(t, "box"))
		switch rapid.IntRange(0, 11).Draw(t, "op") {
		case 0, 1:
			return &store.Append{Message: of(bots.Draw(t, "bot"), inbound(ids.Draw(t, "id")))}
		case 2:
			return &store.Append{Message: inbound(ids.Draw(t, "id")), Bury: reason}
		case 3:
			return &store.Finish{Seq: seq, Replies: replies}
		case 4:
			return &store.Postpone{Seq: seq, Attempts: attempts, At: noon, Reason: reason}
		case 5:
			return &store.Bury{Seq: seq, Attempts: attempts, Reason: reason}
		case 6:
			return &store.Add{Replies: replies}
		case 7:
			return &store.Begin{Seq: seq, Attempts: attempts}
		case 8:
			return &store.Again{Seq: seq, Attempts: attempts, At: noon, Reason: reason}
		case 9:
			return &store.Requeue{Box: store.BoxDeadIn + box%2, Seq: seq}
		case 10:
			return &store.Purge{Box: box, Seq: seq}
		}
		if attempts < 5 {
			return &store.Sent{Seq: seq}
		}
		return &store.Discard{Seq: seq, Attempts: attempts, Reason: reason}
	})
}

// testModel commits random groups, some of them cancelled, reopens a durable store
// now and then, and compares everything that can be read with the model.
func testModel(t *testing.T, open func(t *testing.T) store.Store, f Features) {
	rapid.Check(t, func(rt *rapid.T) {
		s := open(t)
		defer func() { require.NoError(rt, s.Close()) }()
		m := newModel()
		rt.Repeat(map[string]func(*rapid.T){
			"commit": func(rt *rapid.T) {
				ops := rapid.SliceOfN(genOp(), 1, 8).Draw(rt, "ops")
				require.NoError(rt, s.Commit(t.Context(), ops))
				for _, op := range ops {
					m.apply(rt, op)
				}
			},
			"cancel": func(rt *rapid.T) {
				ops := rapid.SliceOfN(genOp(), 1, 3).Draw(rt, "ops")
				require.Error(rt, s.Commit(cancelled(t.Context()), ops))
			},
			"reopen": func(rt *rapid.T) {
				if !f.Durable || rapid.IntRange(0, 3).Draw(rt, "reopen") > 0 {
					rt.Skip()
				}
				s = f.Reopen(t, s)
				m.counts.Done, m.counts.Sent = 0, 0
			},
			"": func(rt *rapid.T) { m.compare(t, rt, s) },
		})
	})
}

func (m *model) compare(t *testing.T, rt *rapid.T, s store.Store) {
	e := &modelEnv{rt, t, s}
	m.compareInbox(e)
	m.compareOutbox(e)
	dead, err := s.DeadLetters(t.Context(), all)
	require.NoError(rt, err)
	require.Len(rt, dead, len(m.dead))
	for i, want := range m.dead {
		got := dead[len(dead)-1-i]
		require.Equal(rt, summary(want), summary(got))
	}
	counts, err := s.Counts(t.Context())
	require.NoError(rt, err)
	want := m.counts
	want.Inbox, want.Outbox = int64(len(m.inbox)), int64(len(m.outbox))
	require.Equal(rt, want, counts)
}

type modelEnv struct {
	*rapid.T
	outer *testing.T
	store store.Store
}

func (m *model) compareInbox(e *modelEnv) {
	heads, err := e.store.InboxHeads(e.outer.Context(), 0, all)
	require.NoError(e, err)
	require.Len(e, heads, len(m.inbox))
	for i, want := range m.inbox {
		require.Equal(e, store.Head{
			Seq:          want.Seq,
			Installation: want.Message.Installation,
			Conversation: want.Message.Conversation.ID,
		}, heads[i])
		loaded, err := e.store.LoadInbox(e.outer.Context(), want.Seq)
		require.NoError(e, err)
		require.Len(e, loaded, 1)
		got := loaded[0]
		require.Equal(e, want.Attempts, got.Attempts)
		require.True(e, want.At.Equal(got.At))
		require.Equal(e, want.Message.Text, got.Message.Text)
	}
}

func (m *model) compareOutbox(e *modelEnv) {
	heads, err := e.store.OutboxHeads(e.outer.Context(), 0, all)
	require.NoError(e, err)
	require.Len(e, heads, len(m.outbox))
	for i, want := range m.outbox {
		require.Equal(e, store.Head{
			Seq:          want.Seq,
			Installation: want.Reply.Installation,
			Conversation: want.Reply.Conversation,
		}, heads[i])
		loaded, err := e.store.LoadOutbox(e.outer.Context(), want.Seq)
		require.NoError(e, err)
		require.Len(e, loaded, 1)
		got := loaded[0]
		require.Equal(e, want.Attempts, got.Attempts)
		require.Equal(e, want.State, got.State)
		require.True(e, want.At.Equal(got.At))
		require.Equal(e, want.Reply.Text, got.Reply.Text)
	}
}

// summary is what a dead letter must keep, as a word that can be compared.
func summary(d store.Dead) string {
	text := "nothing"
	switch {
	case d.Message != nil && d.Reply == nil:
		text = "message " + d.Message.Text
	case d.Reply != nil && d.Message == nil:
		text = "reply " + d.Reply.Text
	}
	return fmt.Sprint(d.Seq, d.Attempts, d.Reason, text)
}
