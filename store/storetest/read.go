package storetest

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/stretchr/testify/require"

	"github.com/penstock-io/penstock/message"
	"github.com/penstock-io/penstock/store"
)

type headsFunc = func(context.Context, store.Seq, int) ([]store.Head, error)

func testHeads(e *env) {
	const items = 100
	var in, out []store.Seq
	for i := range items {
		id := message.ID(fmt.Sprint("m", i))
		in = append(in, e.one(id))
		out = append(out, e.add(id)...)
	}
	checkPages(e, e.store.InboxHeads, in)
	checkPages(e, e.store.OutboxHeads, out)
	// Holes, at both ends and of many sizes.
	var ops []store.Op
	keep := func(i int) bool { return i == 50 || i > 60 && i < 90 && i%7 == 0 }
	for i := range items {
		if !keep(i) {
			ops = append(ops, &store.Finish{Seq: in[i]}, &store.Sent{Seq: out[i]})
		}
	}
	e.commit(ops...)
	checkPages(e, e.store.InboxHeads, kept(in, keep))
	checkPages(e, e.store.OutboxHeads, kept(out, keep))
}

func kept(ns []store.Seq, keep func(int) bool) []store.Seq {
	var left []store.Seq
	for i, n := range ns {
		if keep(i) {
			left = append(left, n)
		}
	}
	return left
}

func checkPages(e *env, list headsFunc, want []store.Seq) {
	e.Helper()
	get := func(after store.Seq, limit int) []store.Seq {
		heads, err := list(e.Context(), after, limit)
		require.NoError(e, err)
		return seqs(heads)
	}
	for _, limit := range []int{1, 7, 33, len(want), all} {
		var paged []store.Seq
		for after := store.Seq(0); ; {
			page := get(after, limit)
			require.LessOrEqual(e, len(page), limit)
			if len(page) == 0 {
				break
			}
			require.Greater(e, page[0], after, "a page starts above the number given")
			paged = append(paged, page...)
			after = page[len(page)-1]
		}
		require.Equal(e, want, paged, "in pages of %d", limit)
	}
	last := want[len(want)-1]
	for after := store.Seq(-1); after <= last+1; after++ {
		i, found := slices.BinarySearch(want, after)
		if found {
			i++
		}
		require.Equal(e, append([]store.Seq{}, want[i:]...), get(after, all), "after %d", after)
	}
	require.Equal(e, want, get(math.MinInt64, all))
	require.Empty(e, get(math.MaxInt64, all))
	require.Empty(e, get(0, 0))
	require.Empty(e, get(0, -1))
}

func testLoadMany(e *env) {
	const items = 200
	var in, out []store.Seq
	for i := range items {
		id := message.ID(fmt.Sprint("m", i))
		in = append(in, e.one(id))
		out = append(out, e.add(id)...)
	}
	var ops []store.Op
	keep := func(i int) bool { return i%3 != 0 }
	for i := range items {
		if !keep(i) {
			ops = append(ops, &store.Finish{Seq: in[i]}, &store.Discard{Seq: out[i]})
		}
	}
	e.commit(append(ops, &store.Postpone{Seq: in[1], Attempts: 7}, &store.Begin{Seq: out[1]})...)
	p, err := e.store.LoadInbox(e.Context(), asked(in)...)
	require.NoError(e, err)
	o, err := e.store.LoadOutbox(e.Context(), asked(out)...)
	require.NoError(e, err)
	require.Equal(e, 7, p[0].Attempts)
	require.Equal(e, store.StateSending, o[0].State)
	var inbox, outbox []store.Seq
	for i := range p {
		inbox, outbox = append(inbox, p[i].Seq), append(outbox, o[i].Seq)
		require.Equal(e, p[i].Message.ID, o[i].Reply.ID, "each is what its number says")
	}
	require.Equal(e, kept(in, keep), inbox)
	require.Equal(e, kept(out, keep), outbox)
	p, err = e.store.LoadInbox(e.Context())
	require.NoError(e, err)
	require.Empty(e, p)
}

// asked gives numbers in no order, some of them twice, and some that are unknown.
func asked(ns []store.Seq) []store.Seq {
	ns = append(slices.Clone(ns), ns[len(ns)/2:]...)
	slices.Reverse(ns)
	return append(ns, 0, -1, math.MaxInt64, math.MinInt64)
}

func testDeadLetters(e *env) {
	in := e.append(inbound("a"), inbound("b"), inbound("c"))
	out := e.add("x", "y")
	e.commit(&store.Bury{Seq: in[2], Reason: "1"}, &store.Discard{Seq: out[1], Reason: "2"})
	e.commit(&store.Bury{Seq: in[0], Reason: "3"})
	e.commit(
		&store.Append{Message: inbound("d"), Bury: "4"},
		&store.Discard{Seq: out[0], Reason: "5"},
		&store.Bury{Seq: in[1], Reason: "6"},
	)
	want := []string{"6", "5", "4", "3", "2", "1"}
	for limit := range 8 {
		dead, err := e.store.DeadLetters(e.Context(), limit)
		require.NoError(e, err)
		require.Len(e, dead, min(limit, len(want)))
		for i, d := range dead {
			require.Equal(e, want[i], d.Reason, "the last buried comes first")
			require.NotEqual(e, d.Message == nil, d.Reply == nil)
		}
	}
	dead, err := e.store.DeadLetters(e.Context(), -1)
	require.NoError(e, err)
	require.Empty(e, dead)
}

func testCounts(e *env) {
	in := e.append(inbound("a"), inbound("b"), inbound("c"), inbound("d"))
	e.commit(
		&store.Finish{Seq: in[0], Replies: outbounds("1", "2", "3")},
		&store.Finish{Seq: in[1]},
		&store.Bury{Seq: in[2]},
		&store.Append{Message: inbound("e"), Bury: "defect"},
		&store.Append{Message: inbound("a")},
	)
	out := seqs(e.outbox())
	e.commit(&store.Sent{Seq: out[0]}, &store.Discard{Seq: out[1]}, &store.Begin{Seq: out[2]})
	c := e.counts()
	require.Greater(e, c.LastInbox, in[3])
	require.Equal(e, store.Counts{
		Inbox: 1, Outbox: 1, DeadInbox: 2, DeadOutbox: 1, Done: 2, Sent: 1,
		LastInbox: c.LastInbox, LastOutbox: out[2],
	}, c)
	require.Equal(e, int64(5), c.Inbox+c.DeadInbox+c.Done, "what came in is somewhere")
	require.Equal(e, int64(3), c.Outbox+c.DeadOutbox+c.Sent)
}

// reads calls each reading method.
func reads(ctx context.Context, s store.Store) map[string]error {
	errs := map[string]error{}
	_, errs["InboxHeads"] = s.InboxHeads(ctx, 0, all)
	_, errs["OutboxHeads"] = s.OutboxHeads(ctx, 0, all)
	_, errs["LoadInbox"] = s.LoadInbox(ctx, 1)
	_, errs["LoadOutbox"] = s.LoadOutbox(ctx, 1)
	_, errs["DeadLetters"] = s.DeadLetters(ctx, all)
	_, errs["Counts"] = s.Counts(ctx)
	if a, ok := s.(store.Admin); ok {
		maps.Copy(errs, adminReads(ctx, a))
	}
	return errs
}

func testReadCancelled(e *env) {
	e.one("a")
	e.add("r")
	for name, err := range reads(cancelled(e.Context()), e.store) {
		require.ErrorIs(e, err, context.Canceled, name)
	}
	for name, err := range reads(e.Context(), e.store) {
		require.NoError(e, err, name)
	}
}

func testClosed(e *env) {
	e.one("a")
	e.add("r")
	require.NoError(e, e.store.Close())
	for name, err := range reads(e.Context(), e.store) {
		require.ErrorIs(e, err, store.ErrClosed, name)
	}
	op := &store.Append{Message: inbound("b")}
	require.ErrorIs(e, e.store.Commit(e.Context(), []store.Op{op}), store.ErrClosed)
	require.ErrorIs(e, e.store.Commit(e.Context(), nil), store.ErrClosed)
	require.NoError(e, e.store.Close(), "closing again does nothing")
}
