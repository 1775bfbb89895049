package storetest

import (
	"github.com/stretchr/testify/require"

	"github.com/penstock-io/penstock/message"
	"github.com/penstock-io/penstock/store"
)

var durable = []test{
	{"KeepsItems", testKeepsItems},
	{"KeepsIDs", testKeepsIDs},
	{"KeepsNumbers", testKeepsNumbers},
	{"KeepsNoFailedGroup", testKeepsNoFailedGroup},
}

func testKeepsItems(e *env) {
	full := filled[message.Inbound]()
	reply := *filled[message.Outbound]()
	in := e.append(full, inbound("b"), inbound("done"), inbound("dead"))
	add := &store.Add{Replies: append(outbounds("x", "y", "sent", "dead"), reply)}
	e.commit(add)
	out := add.Seqs
	e.commit(
		&store.Postpone{Seq: in[0], Attempts: 3, At: noon, Reason: "busy"},
		&store.Finish{Seq: in[2]},
		&store.Bury{Seq: in[3], Attempts: 8, Reason: "bad"},
		&store.Begin{Seq: out[0], Attempts: 2},
		&store.Again{Seq: out[1], Attempts: 1, At: noon, Reason: "slow"},
		&store.Sent{Seq: out[2]},
		&store.Discard{Seq: out[3], Attempts: 5, Reason: "gone"},
	)
	before := e.dead()
	for range 2 {
		e.again()
		require.Equal(e, in[:2], seqs(e.inbox()))
		require.Equal(e, []store.Seq{out[0], out[1], out[4]}, seqs(e.outbox()))
		p := e.pending(in[0])
		require.Equal(e, 3, p.Attempts)
		requireTime(e, noon, p.At)
		requireInbound(e, full, p.Message)
		require.True(e, e.pending(in[1]).At.IsZero())
		o := e.outgoing(out[0])
		require.Equal(e, store.StateSending, o.State, "an attempt that was begun is still begun")
		require.Equal(e, 2, o.Attempts)
		o = e.outgoing(out[1])
		require.Equal(e, store.StatePending, o.State)
		requireTime(e, noon, o.At)
		requireOutbound(e, reply, e.outgoing(out[4]).Reply)
		requireDead(e, before, e.dead())
		require.Equal(e, store.Counts{
			Inbox: 2, Outbox: 3, DeadInbox: 1, DeadOutbox: 1, LastInbox: in[3], LastOutbox: out[4],
		}, e.counts(), "Done and Sent count since the store opened")
	}
}

func requireDead(e *env, want, got []store.Dead) {
	e.Helper()
	require.Len(e, got, len(want))
	for i, d := range got {
		require.Equal(e, want[i].Seq, d.Seq)
		require.Equal(e, want[i].Attempts, d.Attempts)
		require.Equal(e, want[i].Reason, d.Reason)
		requireTime(e, want[i].At, d.At)
		require.Equal(e, want[i].Message == nil, d.Message == nil)
		require.Equal(e, want[i].Reply == nil, d.Reply == nil)
		if d.Message != nil {
			requireInbound(e, want[i].Message, d.Message)
		}
		if d.Reply != nil {
			requireOutbound(e, *want[i].Reply, *d.Reply)
		}
	}
}

func testKeepsIDs(e *env) {
	ids := []message.ID{"pending", "done", "dead", "a\x00", "\u00e4"}
	in := e.append(
		inbound(ids[0]), inbound(ids[1]), inbound(ids[2]), inbound(ids[3]), inbound(ids[4]))
	out := e.add("r", "sent", "discarded")
	e.commit(
		&store.Finish{Seq: in[1]}, &store.Bury{Seq: in[2]},
		&store.Sent{Seq: out[1]}, &store.Discard{Seq: out[2]},
	)
	want := []store.State{
		store.StatePending, store.StateDone, store.StateDead, store.StatePending, store.StatePending,
	}
	for range 2 {
		e.again()
		for i, id := range ids {
			seq, state := e.copyOf(inbound(id))
			require.Equal(e, want[i], state, "id %q", id)
			require.Equal(e, in[i], seq, "id %q", id)
		}
		require.Equal(e, out, e.add("r", "sent", "discarded"))
	}
	require.Len(e, e.outbox(), 1)
}

// testKeepsNumbers empties the store and reopens it: what was the largest number
// must not be looked up among the rows that are left.
func testKeepsNumbers(e *env) {
	in, out := e.append(inbound("a"), inbound("b")), e.add("x", "y")
	e.commit(
		&store.Finish{Seq: in[0]}, &store.Finish{Seq: in[1]},
		&store.Sent{Seq: out[0]}, &store.Sent{Seq: out[1]},
	)
	for round := range 3 {
		e.again()
		c := e.counts()
		require.Equal(e, store.Counts{LastInbox: in[len(in)-1], LastOutbox: out[len(out)-1]}, c)
		id := message.ID('k' + rune(round))
		n, r := e.one(id), e.add(id)[0]
		require.Greater(e, n, in[len(in)-1])
		require.Greater(e, r, out[len(out)-1])
		e.commit(&store.Finish{Seq: n}, &store.Sent{Seq: r})
		in, out = append(in, n), append(out, r)
	}
}

func testKeepsNoFailedGroup(e *env) {
	n := e.one("a")
	op := &store.Append{Message: inbound("b")}
	group := []store.Op{&store.Finish{Seq: n, Replies: outbounds("r")}, op}
	require.Error(e, e.store.Commit(cancelled(e.Context()), group))
	e.again()
	require.Equal(e, store.Counts{Inbox: 1, LastInbox: n}, e.counts())
	e.commit(group...)
	require.Equal(e, store.StateNew, op.State)
	e.again()
	require.Equal(e, []store.Seq{op.Seq}, seqs(e.inbox()))
	require.Len(e, e.outbox(), 1)
}
