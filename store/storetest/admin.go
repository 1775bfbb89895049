package storetest

import (
	"context"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/penstock-io/penstock/message"
	"github.com/penstock-io/penstock/store"
)

// admin is the operator's side of the store.
func (e *env) admin() store.Admin {
	e.Helper()
	a, ok := e.store.(store.Admin)
	require.True(e, ok, "a store is a store.Admin too")
	return a
}

func (e *env) list(q store.Query) []store.Seq {
	e.Helper()
	if q.Limit == 0 {
		q.Limit = all
	}
	entries, err := e.admin().List(e.Context(), q)
	require.NoError(e, err)
	ns := make([]store.Seq, 0, len(entries))
	for _, entry := range entries {
		require.Equal(e, q.Box, entry.Box)
		ns = append(ns, entry.Seq)
	}
	return ns
}

// boxes fills each box: numbers 1 and 2 are pending and sending, 3 and 4 dead.
func (e *env) boxes() {
	e.Helper()
	in := e.append(inbound("a"), of(otherBot, inbound("b")), inbound("c"), inbound("d"))
	out := e.add("a", "b", "c", "d")
	e.commit(
		&store.Postpone{Seq: in[0], Attempts: 2, At: noon, Reason: "handler is busy"},
		&store.Bury{Seq: in[3], Attempts: 8, Reason: "gave up: busy"},
		&store.Bury{Seq: in[2], Attempts: 1, Reason: "gave up: bad"},
		&store.Again{Seq: out[0], Attempts: 1, At: noon, Reason: "too fast"},
		&store.Begin{Seq: out[1], Attempts: 3},
		&store.Discard{Seq: out[3], Attempts: 5, Reason: "no robot"},
		&store.Discard{Seq: out[2], Attempts: 5, Reason: "no chat"},
	)
}

func testList(e *env) {
	before := time.Now().Add(-time.Second)
	e.boxes()
	soon := time.Now().Add(time.Hour)
	for _, c := range []struct {
		why  string
		q    store.Query
		want []store.Seq
	}{
		{"inbox", store.Query{Box: store.BoxInbox}, []store.Seq{1, 2}},
		{"outbox", store.Query{Box: store.BoxOutbox}, []store.Seq{1, 2}},
		{"dead in, by number", store.Query{Box: store.BoxDeadIn}, []store.Seq{3, 4}},
		{"dead out, by number", store.Query{Box: store.BoxDeadOut}, []store.Seq{3, 4}},
		{"no such box", store.Query{Box: 99}, []store.Seq{}},
		{"of a bot", store.Query{Installation: otherBot}, []store.Seq{2}},
		{"dead of a bot", store.Query{Box: store.BoxDeadIn, Installation: otherBot}, []store.Seq{}},
		{"of a chat", store.Query{Conversation: "cid/a"}, []store.Seq{1}},
		{"dead of a chat", store.Query{Box: store.BoxDeadOut, Conversation: "cid/d"}, []store.Seq{4}},
		{"pending", store.Query{State: store.StatePending}, []store.Seq{1, 2}},
		{"sending", store.Query{Box: store.BoxOutbox, State: store.StateSending}, []store.Seq{2}},
		{"dead", store.Query{Box: store.BoxDeadIn, State: store.StateDead}, []store.Seq{3, 4}},
		{"dead where none is", store.Query{State: store.StateDead}, []store.Seq{}},
		{"reason", store.Query{Reason: "busy"}, []store.Seq{1}},
		{"dead by reason", store.Query{Box: store.BoxDeadIn, Reason: "up: b"}, []store.Seq{3, 4}},
		{"by another reason", store.Query{Box: store.BoxDeadIn, Reason: "bad"}, []store.Seq{3}},
		{"reason is no pattern", store.Query{Box: store.BoxDeadIn, Reason: "%"}, []store.Seq{}},
		{"since", store.Query{Since: before}, []store.Seq{1, 2}},
		{"since later", store.Query{Since: soon}, []store.Seq{}},
		{"until", store.Query{Box: store.BoxDeadIn, Until: soon}, []store.Seq{3, 4}},
		{"until sooner", store.Query{Box: store.BoxDeadIn, Until: before}, []store.Seq{}},
		{"after", store.Query{After: 1}, []store.Seq{2}},
		{"dead after", store.Query{Box: store.BoxDeadIn, After: 3}, []store.Seq{4}},
		{"one", store.Query{Limit: 1}, []store.Seq{1}},
		{"none", store.Query{Limit: -1}, []store.Seq{}},
	} {
		require.Equal(e, c.want, e.list(c.q), c.why)
	}
}

func testListPages(e *env) {
	e.boxes()
	entries, err := e.admin().List(e.Context(), store.Query{Limit: 1})
	require.NoError(e, err)
	require.Len(e, entries, 1)
	got := entries[0]
	require.WithinDuration(e, time.Now(), got.Since, time.Minute)
	requireTime(e, noon, got.At)
	got.Since, got.At = time.Time{}, time.Time{}
	require.Equal(e, store.Entry{
		Seq: 1, ID: "a", Installation: bot, Conversation: "cid/a",
		State: store.StatePending, Attempts: 2, Reason: "handler is busy",
	}, got)
	entries, err = e.admin().List(e.Context(), store.Query{Box: store.BoxDeadOut, After: 3, Limit: 9})
	require.NoError(e, err)
	require.Len(e, entries, 1)
	got = entries[0]
	require.WithinDuration(e, time.Now(), got.Since, time.Minute)
	got.Since = time.Time{}
	require.Equal(e, store.Entry{
		Box: store.BoxDeadOut, Seq: 4, ID: "d", Installation: bot, Conversation: "cid/d",
		State: store.StateDead, Attempts: 5, Reason: "no robot",
	}, got)
}

func testShow(e *env) {
	full, reply := filled[message.Inbound](), *filled[message.Outbound]()
	n := e.append(full)[0]
	add := &store.Add{Replies: []message.Outbound{reply}}
	e.commit(add)
	it, err := e.admin().Show(e.Context(), store.BoxInbox, n)
	require.NoError(e, err)
	require.Nil(e, it.Reply)
	require.Equal(e, full.ID, it.ID)
	requireInbound(e, full, it.Message)
	it, err = e.admin().Show(e.Context(), store.BoxOutbox, add.Seqs[0])
	require.NoError(e, err)
	require.Nil(e, it.Message)
	require.Equal(e, reply.ID, it.ID)
	requireOutbound(e, reply, *it.Reply)

	e.commit(&store.Bury{Seq: n, Reason: "bad"})
	it, err = e.admin().Show(e.Context(), store.BoxDeadIn, n)
	require.NoError(e, err)
	require.Equal(e, "bad", it.Reason)
	requireInbound(e, full, it.Message)
	for _, b := range []store.Box{store.BoxInbox, store.BoxDeadOut, 99} {
		_, err = e.admin().Show(e.Context(), b, n)
		require.ErrorIs(e, err, store.ErrNotFound, "%v", b)
	}
}

func testRequeue(e *env) {
	full := filled[message.Inbound]()
	n := e.append(full)[0]
	e.one("b")
	e.commit(&store.Bury{Seq: n, Attempts: 8, Reason: "bad"})
	op := &store.Requeue{Box: store.BoxDeadIn, Seq: n}
	e.commit(op)
	require.Greater(e, op.NewSeq, store.Seq(2), "a new number, at the end")
	require.Empty(e, e.dead())
	p := e.pending(op.NewSeq)
	require.Zero(e, p.Attempts)
	require.True(e, p.At.IsZero())
	requireInbound(e, full, p.Message)
	require.Equal(e, store.Head{
		Seq: op.NewSeq, Installation: full.Installation, Conversation: full.Conversation.ID,
	}, e.inbox()[1])
	c := e.counts()
	require.Equal(e, store.Counts{Inbox: 2, LastInbox: op.NewSeq}, c)
	seq, state := e.copyOf(full)
	require.Equal(e, op.NewSeq, seq, "a copy is one of the item that is there")
	require.Equal(e, store.StatePending, state)
	e.commit(&store.Finish{Seq: op.NewSeq})
	seq, state = e.copyOf(full)
	require.Equal(e, op.NewSeq, seq)
	require.Equal(e, store.StateDone, state)

	again := &store.Requeue{Box: store.BoxDeadIn, Seq: n, NewSeq: 5}
	e.try(again)
	require.ErrorIs(e, again.Result(), store.ErrNotFound)
	require.Zero(e, again.NewSeq)
	for _, b := range []store.Box{store.BoxInbox, store.BoxOutbox, 99} {
		bad := &store.Requeue{Box: b, Seq: 2}
		e.try(bad)
		require.ErrorIs(e, bad.Result(), store.ErrInvalid, "%v", b)
	}
}

// testRequeueReply does all of it in one group.
func testRequeueReply(e *env) {
	ns := e.add("a", "b")
	first := &store.Requeue{Box: store.BoxDeadOut, Seq: ns[0]}
	twice := &store.Requeue{Box: store.BoxDeadOut, Seq: ns[0]}
	known := &store.Add{Replies: outbounds("a")}
	e.try(&store.Discard{Seq: ns[0], Attempts: 5, Reason: "bad"}, first, twice, known)
	require.NoError(e, first.Result())
	require.ErrorIs(e, twice.Result(), store.ErrNotFound)
	require.Equal(e, first.NewSeq, known.Seqs[0])
	require.Equal(e, []store.Seq{ns[1], first.NewSeq}, seqs(e.outbox()))
	require.Equal(e, store.StatePending, e.outgoing(first.NewSeq).State)
	requireOutbound(e, outbound("a"), e.outgoing(first.NewSeq).Reply)
	require.Empty(e, e.dead())

	e.commit(&store.Discard{Seq: ns[1], Reason: "bad"})
	second := &store.Requeue{Box: store.BoxDeadOut, Seq: ns[1]}
	e.commit(second)
	e.commit(&store.Sent{Seq: second.NewSeq}, &store.Sent{Seq: first.NewSeq})
	require.Empty(e, e.outbox())
	require.Equal(e, int64(2), e.counts().Sent)
}

func testPurge(e *env) {
	e.boxes()
	for _, op := range []*store.Purge{
		{Box: store.BoxInbox, Seq: 1},
		{Box: store.BoxOutbox, Seq: 2},
		{Box: store.BoxDeadIn, Seq: 3},
		{Box: store.BoxDeadOut, Seq: 4},
	} {
		e.commit(op)
		require.NotContains(e, e.list(store.Query{Box: op.Box}), op.Seq)
		again := &store.Purge{Box: op.Box, Seq: op.Seq}
		e.try(again)
		require.ErrorIs(e, again.Result(), store.ErrNotFound, "%v", op.Box)
	}
	require.Equal(e, store.Counts{
		Inbox: 1, Outbox: 1, DeadInbox: 1, DeadOutbox: 1, LastInbox: 4, LastOutbox: 4,
	}, e.counts(), "what was purged is neither done nor sent")
	late := &store.Finish{Seq: 1}
	bad := &store.Purge{Box: 99, Seq: 1}
	e.try(late, bad)
	require.ErrorIs(e, late.Result(), store.ErrNotFound)
	require.ErrorIs(e, bad.Result(), store.ErrInvalid)
	for id, seq := range map[message.ID]store.Seq{"a": 1, "c": 3} {
		got, state := e.copyOf(inbound(id))
		require.Equal(e, seq, got, "its id stays known")
		require.Equal(e, store.StateDone, state)
	}
}

func (e *env) trace(id message.ID) store.History {
	e.Helper()
	h, err := e.admin().Trace(e.Context(), bot, id)
	require.NoError(e, err)
	return h
}

func testTrace(e *env) {
	n := e.one("a")
	dead := e.one("dead")
	h := e.trace("a")
	require.Equal(e, store.History{Seq: n, State: store.StatePending, Received: h.Received}, h)
	require.WithinDuration(e, time.Now(), h.Received, time.Minute)
	e.commit(
		&store.Postpone{Seq: n, Attempts: 3, At: noon, Reason: "busy"},
		&store.Bury{Seq: dead, Attempts: 8, Reason: "bad"},
	)
	h = e.trace("a")
	requireTime(e, noon, h.At)
	require.Equal(e, 3, h.Attempts)
	require.Equal(e, "busy", h.Reason)
	h = e.trace("dead")
	require.Equal(e, dead, h.Seq)
	require.Equal(e, store.StateDead, h.State)
	require.Equal(e, 8, h.Attempts)
	require.Equal(e, "bad", h.Reason)
	require.WithinDuration(e, time.Now(), h.Ended, time.Minute)

	e.commit(&store.Finish{Seq: n}, &store.Append{Message: inbound("")})
	h = e.trace("a")
	require.Equal(e, store.StateDone, h.State)
	if e.history {
		require.WithinDuration(e, time.Now(), h.Ended, time.Minute)
	}
	e.commit(&store.Finish{Seq: e.one("lost"), Unrouted: true}, &store.Append{Message: inbound("")})
	h = e.trace("lost")
	require.Equal(e, store.StateDone, h.State)
	if e.history {
		require.Equal(e, store.ReasonUnrouted, h.Reason)
	}
	e.commit(&store.Purge{Box: store.BoxDeadIn, Seq: dead})
	h = e.trace("dead")
	require.Equal(e, store.StateDone, h.State)
	if e.history {
		require.Equal(e, store.ReasonPurged, h.Reason)
	}
	for id, in := range map[message.ID]message.InstallationID{"a": otherBot, "b": bot, "": bot} {
		_, err := e.admin().Trace(e.Context(), in, id)
		require.ErrorIs(e, err, store.ErrNotFound, "%q", id)
	}
}

func testTraceReplies(e *env) {
	replies := outbounds("pending", "sending", "sent", "dead", "purged")
	for i := range replies {
		replies[i].InReplyTo = "a"
	}
	e.add("elsewhere")
	op := &store.Finish{Seq: e.one("a"), Replies: replies}
	e.commit(op)
	ns := op.ReplySeqs
	e.commit(
		&store.Again{Seq: ns[0], Attempts: 1, At: noon, Reason: "too fast"},
		&store.Begin{Seq: ns[1], Attempts: 2},
		&store.Sent{Seq: ns[2], Receipt: message.Receipt{ID: "r1", Route: "webhook", Warning: "odd"}},
		&store.Discard{Seq: ns[3], Attempts: 5, Reason: "no chat"},
		&store.Purge{Box: store.BoxOutbox, Seq: ns[4]},
	)
	got := map[store.Seq]store.ReplyHistory{}
	for _, r := range e.trace("a").Replies {
		got[r.Seq] = r
	}
	require.Equal(e, store.StatePending, got[ns[0]].State)
	require.Equal(e, 1, got[ns[0]].Attempts)
	require.Equal(e, "too fast", got[ns[0]].Reason)
	requireTime(e, noon, got[ns[0]].At)
	require.Equal(e, store.StateSending, got[ns[1]].State)
	require.Equal(e, store.StateDead, got[ns[3]].State)
	require.Equal(e, "no chat", got[ns[3]].Reason)
	require.Equal(e, 5, got[ns[3]].Attempts)
	if !e.history {
		require.Len(e, got, 3)
		return
	}
	require.Len(e, got, 5)
	require.Equal(e, store.ReplyHistory{
		Seq: ns[2], State: store.StateDone, Ended: got[ns[2]].Ended,
		Receipt: message.Receipt{ID: "r1", Route: "webhook", Warning: "odd"},
	}, got[ns[2]])
	require.WithinDuration(e, time.Now(), got[ns[2]].Ended, time.Minute)
	require.Equal(e, store.ReasonPurged, got[ns[4]].Reason)
}

// testTraceSends finds replies that no handler has returned, by their ids.
func testTraceSends(e *env) {
	e.one("other")
	n := e.one("a")
	sends := outbounds("a/send-1", "a/send-2", "a/2", "b/send-3")
	for i := range sends {
		sends[i].InReplyTo = "a"
	}
	sends[3].InReplyTo = "b"
	op := &store.Add{Replies: sends[:1]}
	e.commit(op)
	e.commit(&store.Finish{Seq: n})
	later := &store.Add{Replies: sends[1:]}
	e.commit(later)
	e.commit(&store.Sent{Seq: op.Seqs[0], Receipt: message.Receipt{ID: "r1"}})
	var got []store.Seq
	for _, r := range e.trace("a").Replies {
		got = append(got, r.Seq)
	}
	require.Contains(e, got, later.Seqs[0])
	require.NotContains(e, got, later.Seqs[2])
	if e.history {
		require.Equal(e, []store.Seq{op.Seqs[0], later.Seqs[0]}, got)
		require.Equal(e, "r1", e.trace("a").Replies[0].Receipt.ID)
	}
	require.Empty(e, e.trace("other").Replies)
}

// testTraceRequeued follows a reply that was given up to its new number.
func testTraceRequeued(e *env) {
	replies := outbounds("r", "a/send-1")
	for i := range replies {
		replies[i].InReplyTo = "a"
	}
	op := &store.Finish{Seq: e.one("a"), Replies: replies}
	e.commit(op)
	var moved []*store.Requeue
	for _, seq := range op.ReplySeqs {
		e.commit(&store.Discard{Seq: seq, Attempts: 1, Reason: "bad"})
		again := &store.Requeue{Box: store.BoxDeadOut, Seq: seq}
		e.commit(again)
		moved = append(moved, again)
	}
	require.Len(e, e.trace("a").Replies, 2)
	e.commit(&store.Sent{Seq: moved[0].NewSeq, Receipt: message.Receipt{ID: "r1"}})
	if !e.history {
		return
	}
	got := e.trace("a").Replies
	require.Len(e, got, 2)
	require.Equal(e, moved[0].NewSeq, got[0].Seq)
	require.Equal(e, "r1", got[0].Receipt.ID)
	require.Equal(e, moved[1].NewSeq, got[1].Seq)
	require.Equal(e, store.StatePending, got[1].State)
}

// adminReads calls each reading method of store.Admin.
func adminReads(ctx context.Context, a store.Admin) map[string]error {
	errs := map[string]error{}
	_, errs["List"] = a.List(ctx, store.Query{Limit: 1})
	_, errs["Show"] = a.Show(ctx, store.BoxInbox, 1)
	_, errs["Trace"] = a.Trace(ctx, bot, "a")
	return errs
}
