package storetest

import (
	"github.com/stretchr/testify/require"

	"github.com/penstock-io/penstock/message"
	"github.com/penstock-io/penstock/store"
)

// bound is the number of items that the store of testBounded has room for.
const bound = 3

func testBounded(e *env) {
	ns := e.append(inbound("a"), inbound("b"), inbound("c"))
	full := &store.Append{Message: inbound("d")}
	copied := &store.Append{Message: inbound("a")}
	buried := &store.Append{Message: inbound("e"), Bury: "defect"}
	add := &store.Add{Replies: outbounds("x")}
	e.try(full, copied, buried, add)
	require.ErrorIs(e, full.Result(), store.ErrFull)
	require.NoError(e, copied.Result())
	require.Equal(e, store.StatePending, copied.State, "a duplicate is one also when full")
	require.NoError(e, buried.Result(), "a dead letter needs no room")
	require.ErrorIs(e, add.Result(), store.ErrFull)
	require.Empty(e, add.Seqs)
	require.Equal(e, ns, seqs(e.inbox()))

	finish := &store.Finish{Seq: ns[0], Replies: outbounds("r1", "r2", "r3")}
	e.try(finish, full)
	require.NoError(e, finish.Result(), "an answer is never refused")
	require.Len(e, e.outbox(), 3)
	require.ErrorIs(e, full.Result(), store.ErrFull, "replies that cannot leave hold messages up")
	known := &store.Add{Replies: outbounds("r2")}
	e.commit(known)
	require.Equal(e, finish.ReplySeqs[1:2], known.Seqs, "nothing new needs no room")

	for _, n := range finish.ReplySeqs {
		e.commit(&store.Sent{Seq: n})
	}
	two := &store.Add{Replies: outbounds("x", "y")}
	e.try(two)
	require.ErrorIs(e, two.Result(), store.ErrFull)
	require.Empty(e, e.outbox(), "all of an Add or nothing")
	e.commit(full)
	require.Equal(e, store.StateNew, full.State, "what was refused has not been seen")
	require.Equal(e, []store.Seq{ns[1], ns[2], full.Seq}, seqs(e.inbox()))
	require.Equal(e, full.Seq, e.counts().LastInbox)
	e.commit(&store.Bury{Seq: ns[1]}, &store.Bury{Seq: ns[2]}, two)
	require.Len(e, two.Seqs, 2, "room comes back at once, inside the group")
	require.Equal(e, []message.ConversationID{"cid/x", "cid/y"}, []message.ConversationID{
		e.outbox()[0].Conversation, e.outbox()[1].Conversation,
	})
}
