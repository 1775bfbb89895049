package storetest

import (
	"github.com/stretchr/testify/require"

	"github.com/penstock-io/penstock/message"
	"github.com/penstock-io/penstock/store"
)

func testDuplicates(e *env) {
	pending, postponed := e.one("pending"), e.one("postponed")
	done, buried := e.one("done"), e.one("buried")
	born := &store.Append{Message: inbound("born dead"), Bury: "defect"}
	e.commit(
		&store.Postpone{Seq: postponed, Attempts: 1, At: noon},
		&store.Finish{Seq: done, Replies: outbounds("r")},
		&store.Bury{Seq: buried},
		born,
	)
	for _, c := range []struct {
		id    message.ID
		seq   store.Seq
		state store.State
	}{
		{"pending", pending, store.StatePending},
		{"postponed", postponed, store.StatePending},
		{"done", done, store.StateDone},
		{"buried", buried, store.StateDead},
		{"born dead", born.Seq, store.StateDead},
	} {
		seq, state := e.copyOf(inbound(c.id))
		require.Equal(e, c.state, state, "state of the first %q", c.id)
		require.Equal(e, c.seq, seq, "number of the first %q", c.id)
	}
	require.Equal(e, []store.Seq{pending, postponed}, seqs(e.inbox()))

	e.commit(&store.Finish{Seq: pending})
	_, state := e.copyOf(inbound("pending"))
	require.Equal(e, store.StateDone, state, "the state is that of now")
}

func testDuplicatesInOneGroup(e *env) {
	first, second := &store.Append{Message: inbound("a")}, &store.Append{Message: inbound("a")}
	other := &store.Append{Message: of(otherBot, inbound("a"))}
	e.commit(first, second, other)
	require.Equal(e, store.StateNew, first.State)
	require.Equal(e, store.StatePending, second.State)
	require.Equal(e, first.Seq, second.Seq)
	require.Equal(e, store.StateNew, other.State, "of another installation")
	require.Equal(e, []store.Seq{first.Seq, other.Seq}, seqs(e.inbox()))

	e.commit(&store.Finish{Seq: first.Seq}, second, &store.Bury{Seq: other.Seq}, first)
	require.Equal(e, store.StateDone, second.State)
	require.Equal(e, store.StateDone, first.State)
	again := &store.Append{Message: of(otherBot, inbound("a"))}
	dead := &store.Append{Message: inbound("b"), Bury: "defect"}
	copied := &store.Append{Message: inbound("b")}
	e.commit(again, dead, copied)
	require.Equal(e, store.StateDead, again.State)
	require.Equal(e, store.StateDead, copied.State)
	require.Equal(e, dead.Seq, copied.Seq)
}

func testDuplicateChangesNothing(e *env) {
	n := e.one("a")
	e.commit(&store.Postpone{Seq: n, Attempts: 3, At: noon})
	before := e.counts()
	changed := inbound("a")
	changed.Text, changed.Conversation.ID = "edited", "elsewhere"
	seq, state := e.copyOf(changed)
	require.Equal(e, n, seq)
	require.Equal(e, store.StatePending, state, "the conversation is no part of an id")
	op := &store.Append{Message: changed, Bury: "defect"}
	e.commit(op)
	require.Equal(e, store.StatePending, op.State)
	require.Empty(e, e.dead())
	p := e.pending(n)
	require.Equal(e, 3, p.Attempts)
	requireInbound(e, inbound("a"), p.Message)
	require.Equal(e, before, e.counts())
	require.Greater(e, e.one("b"), n)
}

func testIDsAreExact(e *env) {
	ids := []message.ID{
		"a", "A", "a ", " a", "a\x00", "\x00a", "\u00e4", "a\u0308", "%", "_", "'", "\"", "--",
		"1", "01", "1.0", "1e0", "msg/+==", "\xff", "\xfe",
	}
	for _, id := range ids {
		_, state := e.copyOf(inbound(id))
		require.Equal(e, store.StateNew, state, "id %q", id)
	}
	for _, id := range ids {
		_, state := e.copyOf(inbound(id))
		require.Equal(e, store.StatePending, state, "id %q", id)
	}
	_, state := e.copyOf(of("ab", inbound("c")))
	require.Equal(e, store.StateNew, state)
	_, state = e.copyOf(of("a", inbound("bc")))
	require.Equal(e, store.StateNew, state, "installation and id do not run together")
	_, state = e.copyOf(of("AB", inbound("c")))
	require.Equal(e, store.StateNew, state, "nor is case ignored in installations")
}

func testNoID(e *env) {
	first := e.append(inbound(""), inbound(""))
	second := &store.Append{Message: inbound(""), Bury: "defect"}
	e.commit(second)
	require.Equal(e, store.StateNew, second.State, "no id is no duplicate")
	e.commit(&store.Finish{Seq: first[0], Replies: outbounds("", "")}, &store.Bury{Seq: first[1]})
	require.Len(e, e.append(inbound("")), 1)
	e.add("", "")
	require.Len(e, e.outbox(), 4)
	require.Len(e, e.inbox(), 1)
	require.Len(e, e.dead(), 2)
}
