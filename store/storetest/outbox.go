package storetest

import (
	"github.com/stretchr/testify/require"

	"github.com/penstock-io/penstock/message"
	"github.com/penstock-io/penstock/store"
)

func testAdd(e *env) {
	ns := e.add("a", "b")
	require.Equal(e, store.Seq(1), ns[0], "numbers start at 1")
	ns = append(ns, e.add("c")...)
	require.IsIncreasing(e, ns)
	require.Equal(e, ns, seqs(e.outbox()))
	requireOutbound(e, outbound("b"), e.outgoing(ns[1]).Reply)
	require.Equal(e, store.Counts{Outbox: 3, LastOutbox: ns[2]}, e.counts())
	empty := &store.Add{}
	e.commit(empty)
	require.Empty(e, empty.Seqs)
}

func testAddKnown(e *env) {
	ns := e.add("a", "b", "a", "sent", "dead")
	require.Equal(e, ns[0], ns[2], "known from the same op")
	sent, dead := ns[3], ns[4]
	e.commit(&store.Begin{Seq: ns[0], Attempts: 1}, &store.Sent{Seq: sent}, &store.Discard{Seq: dead})
	changed := outbound("a")
	changed.Text = "edited"
	op := &store.Add{Replies: append(outbounds("b", "sent", "new", "dead"), changed)}
	same := &store.Add{Replies: outbounds("new")}
	e.commit(op, same)
	require.Equal(e, []store.Seq{ns[1], sent, op.Seqs[2], dead, ns[0]}, op.Seqs)
	require.Equal(e, op.Seqs[2:3], same.Seqs)
	require.Equal(e, []store.Seq{ns[0], ns[1], op.Seqs[2]}, seqs(e.outbox()))
	o := e.outgoing(ns[0])
	require.Equal(e, store.StateSending, o.State, "what is known is not touched")
	require.Equal(e, 1, o.Attempts)
	requireOutbound(e, outbound("a"), o.Reply)

	other := outbound("a")
	other.Installation = otherBot
	op = &store.Add{Replies: []message.Outbound{other}}
	e.commit(op)
	require.Greater(e, op.Seqs[0], same.Seqs[0], "ids count by installation")
	seq, state := e.copyOf(inbound("a"))
	require.Equal(e, store.StateNew, state, "and apart from those of messages")
	require.Equal(e, store.Seq(1), seq)
}

func testFinishKnownReply(e *env) {
	known := e.add("r1")[0]
	n := e.one("a")
	op := &store.Finish{Seq: n, Replies: outbounds("r1", "r2", "r2")}
	e.commit(op)
	require.Equal(e, []store.Seq{known, op.ReplySeqs[1], op.ReplySeqs[1]}, op.ReplySeqs)
	require.Equal(e, []store.Seq{known, op.ReplySeqs[1]}, seqs(e.outbox()))
	require.Equal(e, op.ReplySeqs[1:2], e.add("r2"), "known to Add as well")
}

func testSending(e *env) {
	ns := e.add("a", "b")
	e.commit(&store.Begin{Seq: ns[0], Attempts: 1})
	o := e.outgoing(ns[0])
	require.Equal(e, store.StateSending, o.State)
	require.Equal(e, 1, o.Attempts)
	require.Equal(e, ns, seqs(e.outbox()), "an item that is being sent is listed")

	e.commit(&store.Again{Seq: ns[0], Attempts: 1, At: noon, Reason: "too fast"})
	o = e.outgoing(ns[0])
	require.Equal(e, store.StatePending, o.State)
	require.Equal(e, 1, o.Attempts)
	requireTime(e, noon, o.At)
	require.Equal(e, ns, seqs(e.outbox()), "it keeps its place")

	e.commit(&store.Begin{Seq: ns[0], Attempts: 2})
	e.commit(&store.Begin{Seq: ns[0], Attempts: 3})
	o = e.outgoing(ns[0])
	require.Equal(e, store.StateSending, o.State)
	require.Equal(e, 3, o.Attempts)
	requireOutbound(e, outbound("a"), o.Reply)
	require.Equal(e, store.Counts{Outbox: 2, LastOutbox: ns[1]}, e.counts())

	e.commit(&store.Sent{Seq: ns[0], Receipt: message.Receipt{ID: "platform", Route: "webhook"}})
	e.noOutbox(ns[0])
	require.Equal(e, ns[1:], seqs(e.outbox()))
	require.Equal(e, store.Counts{Outbox: 1, Sent: 1, LastOutbox: ns[1]}, e.counts())
	e.commit(&store.Sent{Seq: ns[1]})
	require.Empty(e, e.outbox(), "Sent needs no Begin")
}

func testDiscard(e *env) {
	full := *filled[message.Outbound]()
	op := &store.Add{Replies: []message.Outbound{full, outbound("b")}}
	e.commit(op)
	e.commit(&store.Begin{Seq: op.Seqs[0], Attempts: 5})
	e.commit(&store.Discard{Seq: op.Seqs[0], Attempts: 5, Reason: "no such robot"})
	e.noOutbox(op.Seqs[0])
	require.Equal(e, op.Seqs[1:], seqs(e.outbox()))
	dead := e.dead()
	require.Len(e, dead, 1)
	require.Equal(e, op.Seqs[0], dead[0].Seq)
	require.Equal(e, 5, dead[0].Attempts)
	require.Equal(e, "no such robot", dead[0].Reason)
	require.False(e, dead[0].At.IsZero())
	require.Nil(e, dead[0].Message)
	require.NotNil(e, dead[0].Reply)
	requireOutbound(e, full, *dead[0].Reply)
	require.Equal(e, store.Counts{Outbox: 1, DeadOutbox: 1, LastOutbox: op.Seqs[1]}, e.counts())
}
