package storetest

import (
	"slices"
	"strings"

	"github.com/stretchr/testify/require"

	"github.com/penstock-io/penstock/message"
	"github.com/penstock-io/penstock/store"
)

func testAppend(e *env) {
	require.Equal(e, store.Counts{}, e.counts())
	require.Empty(e, e.inbox())
	require.Empty(e, e.outbox())
	require.Empty(e, e.dead())

	first := e.append(inbound("a"), inbound("b"))
	second := e.append(inbound("c"))
	got := append(slices.Clone(first), second...)
	require.Equal(e, store.Seq(1), got[0], "numbers start at 1")
	require.IsIncreasing(e, got)

	heads := e.inbox()
	require.Equal(e, got, seqs(heads))
	for i, id := range []message.ID{"a", "b", "c"} {
		m := inbound(id)
		require.Equal(e, store.Head{
			Seq: got[i], Installation: m.Installation, Conversation: m.Conversation.ID,
		}, heads[i])
		p := e.pending(got[i])
		requireInbound(e, m, p.Message)
		require.Zero(e, p.Attempts)
		require.True(e, p.At.IsZero())
	}
	require.Equal(e, store.Counts{Inbox: 3, LastInbox: got[2]}, e.counts())
}

func testAppendKeepsEverything(e *env) {
	m := filled[message.Inbound]()
	n := e.append(m)[0]
	requireInbound(e, m, e.pending(n).Message)
	require.Equal(e, []store.Head{{
		Seq: n, Installation: m.Installation, Conversation: m.Conversation.ID,
	}}, e.inbox())
	bare := &message.Inbound{ID: "bare"}
	n = e.append(bare)[0]
	requireInbound(e, bare, e.pending(n).Message)
}

func testAppendKeepsRawBytes(e *env) {
	raws := []message.Raw{
		"", " { \"a\" :\t1 }\n", "not json", `"a json string"`, `{"a":"<&>"}`, `{"a":1,"a":2}`,
		"\x00\xff\xfe", "null", message.Raw(strings.Repeat("long ", 300_000)),
	}
	for _, raw := range raws {
		m := inbound("")
		m.Raw = raw
		seq := e.append(m)[0]
		requireInbound(e, m, e.pending(seq).Message)
		e.commit(&store.Bury{Seq: seq, Reason: "raw"})
		requireInbound(e, m, e.dead()[0].Message)
	}
}

func testAppendBuried(e *env) {
	before := e.one("before")
	op := &store.Append{Message: inbound("bad"), Bury: "not JSON"}
	e.commit(op)
	require.Equal(e, store.StateNew, op.State)
	require.Greater(e, op.Seq, before)
	require.Greater(e, e.one("after"), op.Seq, "it has a number of its own")
	e.noInbox(op.Seq)
	require.NotContains(e, seqs(e.inbox()), op.Seq)
	dead := e.dead()
	require.Len(e, dead, 1)
	require.Equal(e, op.Seq, dead[0].Seq)
	require.Equal(e, "not JSON", dead[0].Reason)
	require.Nil(e, dead[0].Reply)
	require.False(e, dead[0].At.IsZero())
	requireInbound(e, inbound("bad"), dead[0].Message)
	c := e.counts()
	require.Equal(e, int64(2), c.Inbox)
	require.Equal(e, int64(1), c.DeadInbox)
	e.try(&store.Bury{Seq: op.Seq})
	require.Len(e, e.dead(), 1, "it is dead already")
}

func testFinish(e *env) {
	ns := e.append(inbound("a"), inbound("b"), inbound("c"))
	op := &store.Finish{Seq: ns[1]}
	e.commit(op)
	require.Empty(e, op.ReplySeqs)
	e.noInbox(ns[1])
	require.Equal(e, []store.Seq{ns[0], ns[2]}, seqs(e.inbox()))
	require.Equal(e, store.Counts{Inbox: 2, Done: 1, LastInbox: ns[2]}, e.counts())

	again := &store.Finish{Seq: ns[1], Replies: outbounds("r")}
	e.try(again)
	require.ErrorIs(e, again.Result(), store.ErrNotFound)
	require.Empty(e, again.ReplySeqs)
	require.Empty(e, e.outbox(), "an op that failed leaves nothing behind")
	require.Equal(e, int64(1), e.counts().Done)
	require.Len(e, e.add("r"), 1)
	require.Len(e, e.outbox(), 1, "nor is the id of its reply known")
}

func testFinishKeepsReplies(e *env) {
	full := *filled[message.Outbound]()
	n := e.one("a")
	replies := append(outbounds("x", "y"), full)
	op := &store.Finish{Seq: n, Replies: replies}
	e.commit(op)
	require.Len(e, op.ReplySeqs, 3)
	require.Equal(e, store.Seq(1), op.ReplySeqs[0], "the outbox counts apart")
	require.IsIncreasing(e, op.ReplySeqs)
	heads := e.outbox()
	require.Equal(e, op.ReplySeqs, seqs(heads))
	for i, want := range replies {
		require.Equal(e, store.Head{
			Seq: op.ReplySeqs[i], Installation: want.Installation, Conversation: want.Conversation,
		}, heads[i])
		o := e.outgoing(op.ReplySeqs[i])
		requireOutbound(e, want, o.Reply)
		require.Equal(e, store.StatePending, o.State)
		require.Zero(e, o.Attempts)
		require.True(e, o.At.IsZero())
	}
	require.Equal(e, store.Counts{
		Outbox: 3, Done: 1, LastInbox: n, LastOutbox: op.ReplySeqs[2],
	}, e.counts())
}

func testPostpone(e *env) {
	ns := e.append(inbound("a"), inbound("b"))
	e.commit(&store.Postpone{Seq: ns[0], Attempts: 1, At: noon, Reason: "busy"})
	e.commit(&store.Postpone{Seq: ns[0], Attempts: 2, At: noon.Add(1), Reason: "busy"})
	require.Equal(e, ns, seqs(e.inbox()), "it keeps its place, and is listed before its time")
	p := e.pending(ns[0])
	require.Equal(e, 2, p.Attempts)
	requireTime(e, noon, p.At)
	requireInbound(e, inbound("a"), p.Message)
	require.Zero(e, e.pending(ns[1]).Attempts)
	require.Equal(e, store.Counts{Inbox: 2, LastInbox: ns[1]}, e.counts())
	e.commit(&store.Finish{Seq: ns[0]})
	require.Equal(e, ns[1:], seqs(e.inbox()))
}

func testBury(e *env) {
	ns := e.append(inbound("a"), inbound("b"))
	e.commit(&store.Bury{Seq: ns[0], Attempts: 8, Reason: "handler: " + odd})
	e.noInbox(ns[0])
	require.Equal(e, ns[1:], seqs(e.inbox()))
	dead := e.dead()
	require.Len(e, dead, 1)
	require.Equal(e, ns[0], dead[0].Seq)
	require.Equal(e, 8, dead[0].Attempts)
	require.Equal(e, "handler: "+odd, dead[0].Reason)
	require.False(e, dead[0].At.IsZero())
	require.Nil(e, dead[0].Reply)
	requireInbound(e, inbound("a"), dead[0].Message)
	require.Equal(e, store.Counts{Inbox: 1, DeadInbox: 1, LastInbox: ns[1]}, e.counts())
}
