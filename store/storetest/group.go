package storetest

import (
	"context"
	"fmt"
	"sync"

	"github.com/stretchr/testify/require"

	"github.com/penstock-io/penstock/message"
	"github.com/penstock-io/penstock/store"
)

// opsOn gives one op of each kind that names an item.
func opsOn(seq store.Seq) (inbox, outbox []store.Op) {
	inbox = []store.Op{
		&store.Finish{Seq: seq, Replies: outbounds("never")},
		&store.Postpone{Seq: seq, Attempts: 1, At: noon},
		&store.Bury{Seq: seq},
	}
	outbox = []store.Op{
		&store.Begin{Seq: seq, Attempts: 1},
		&store.Sent{Seq: seq},
		&store.Again{Seq: seq, Attempts: 1, At: noon},
		&store.Discard{Seq: seq},
	}
	return inbox, outbox
}

func testNotFound(e *env) {
	in := e.append(inbound("done"), inbound("dead"), inbound("stays"))
	out := e.add("sent", "dead", "stays")
	e.commit(
		&store.Finish{Seq: in[0]}, &store.Bury{Seq: in[1]},
		&store.Sent{Seq: out[0]}, &store.Discard{Seq: out[1]},
	)
	before := e.counts()
	for _, side := range []struct {
		numbers []store.Seq
		inbox   bool
	}{
		{[]store.Seq{0, -1, 1 << 40, in[0], in[1]}, true},
		{[]store.Seq{0, -1, 1 << 40, out[0], out[1]}, false},
	} {
		for _, n := range side.numbers {
			ops, outbox := opsOn(n)
			if !side.inbox {
				ops = outbox
			}
			e.try(ops...)
			for _, op := range ops {
				require.ErrorIs(e, op.Result(), store.ErrNotFound, "%T of %d", op, n)
			}
		}
	}
	require.Equal(e, before, e.counts())
	require.Equal(e, in[2:], seqs(e.inbox()))
	require.Equal(e, out[2:], seqs(e.outbox()))
	for _, n := range []store.Seq{0, -1, 1 << 40} {
		e.noInbox(n)
		e.noOutbox(n)
	}

	missing := &store.Finish{Seq: in[0]}
	a, b := &store.Append{Message: inbound("a")}, &store.Append{Message: inbound("b")}
	e.try(a, missing, b)
	require.NoError(e, a.Result())
	require.ErrorIs(e, missing.Result(), store.ErrNotFound)
	require.NoError(e, b.Result(), "one op that fails does not fail its group")
	require.Equal(e, []store.Seq{in[2], a.Seq, b.Seq}, seqs(e.inbox()))
}

func testInvalid(e *env) {
	bad, good := &store.Append{}, &store.Append{Message: inbound("a")}
	e.try(bad, good)
	require.ErrorIs(e, bad.Result(), store.ErrInvalid)
	require.Zero(e, bad.Seq)
	require.NoError(e, good.Result())
	require.Equal(e, []store.Seq{good.Seq}, seqs(e.inbox()))
}

func testResultsAreOverwritten(e *env) {
	finish := &store.Finish{Seq: 1, Replies: outbounds("r")}
	e.try(finish)
	require.ErrorIs(e, finish.Result(), store.ErrNotFound)
	op := &store.Append{Message: inbound("a"), Seq: 77, State: store.StateDead}
	e.commit(op, finish)
	require.Equal(e, store.Seq(1), op.Seq)
	require.Equal(e, store.StateNew, op.State)
	require.Len(e, finish.ReplySeqs, 1)
	e.try(finish)
	require.ErrorIs(e, finish.Result(), store.ErrNotFound)
	require.Empty(e, finish.ReplySeqs)
}

func testGroupInOrder(e *env) {
	in := e.append(inbound("a"), inbound("b"), inbound("c"))
	late := &store.Postpone{Seq: in[0], Attempts: 9, At: noon}
	twice := &store.Finish{Seq: in[1], Replies: outbounds("r2")}
	finish := &store.Finish{Seq: in[1], Replies: outbounds("r1")}
	bury := &store.Bury{Seq: in[2], Attempts: 2}
	add := &store.Add{Replies: outbounds("r1", "r3")}
	e.try(
		&store.Postpone{Seq: in[0], Attempts: 1}, &store.Finish{Seq: in[0]}, late,
		finish, twice,
		&store.Postpone{Seq: in[2], Attempts: 1}, bury,
		add,
	)
	require.ErrorIs(e, late.Result(), store.ErrNotFound)
	require.ErrorIs(e, twice.Result(), store.ErrNotFound)
	require.NoError(e, bury.Result())
	require.Equal(e, finish.ReplySeqs[0], add.Seqs[0])
	require.Equal(e, add.Seqs, seqs(e.outbox()))
	require.Equal(e, 2, e.dead()[0].Attempts)

	r1, r3 := add.Seqs[0], add.Seqs[1]
	gone := &store.Again{Seq: r1, Attempts: 1, At: noon}
	e.try(
		&store.Begin{Seq: r1, Attempts: 1}, &store.Sent{Seq: r1}, gone,
		&store.Begin{Seq: r3, Attempts: 1}, &store.Again{Seq: r3, Attempts: 1, At: noon},
		&store.Begin{Seq: r3, Attempts: 2},
	)
	require.ErrorIs(e, gone.Result(), store.ErrNotFound)
	require.Equal(e, store.StateSending, e.outgoing(r3).State)
	require.Equal(e, 2, e.outgoing(r3).Attempts)
	c := e.counts()
	require.Equal(e, [4]int64{0, 1, 2, 1}, [4]int64{c.Inbox, c.Outbox, c.Done, c.Sent})
}

func testGroupCancelled(e *env) {
	n := e.one("a")
	before := e.counts()
	op := &store.Append{Message: inbound("b")}
	finish := &store.Finish{Seq: n, Replies: outbounds("r")}
	group := []store.Op{op, finish}
	err := e.store.Commit(cancelled(e.Context()), group)
	require.ErrorIs(e, err, context.Canceled)
	require.Equal(e, before, e.counts(), "nothing of the group holds")
	require.Equal(e, []store.Seq{n}, seqs(e.inbox()))

	e.commit(group...)
	require.Equal(e, store.StateNew, op.State, "the id was not remembered either")
	require.Equal(e, []store.Seq{op.Seq}, seqs(e.inbox()))
	require.Equal(e, finish.ReplySeqs, seqs(e.outbox()))
	e.commit()
	require.Len(e, e.inbox(), 1, "an empty group is nothing")
}

func testGroupLarge(e *env) {
	const many = 1_500
	ms := make([]*message.Inbound, many)
	for i := range ms {
		ms[i] = inbound(message.ID(fmt.Sprint("m", i)))
	}
	ns := e.append(ms...)
	require.IsIncreasing(e, ns)
	require.Equal(e, ns, seqs(e.inbox()))
	var ops []store.Op
	for i, n := range ns {
		ops = append(ops, &store.Finish{Seq: n, Replies: outbounds(message.ID(fmt.Sprint("r", i)))})
	}
	e.commit(ops...)
	require.Empty(e, e.inbox())
	require.Len(e, e.outbox(), many)
	for i, h := range e.outbox() {
		require.Equal(e, message.ConversationID(fmt.Sprint("cid/r", i)), h.Conversation)
	}
}

// testReaders reads beside commits that move items about and keep some sums: a
// reader that sees half a group sees a wrong sum.
func testReaders(e *env) {
	const items, groups = 40, 150
	for i := range items {
		e.one(message.ID(fmt.Sprint("first", i)))
	}
	done := make(chan struct{})
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			for {
				e.checkSums(items)
				select {
				case <-done:
					return
				default:
				}
			}
		})
	}
	for g := range groups {
		e.step(g, e.inbox())
	}
	close(done)
	wg.Wait()
	require.Equal(e, int64(items), e.counts().Inbox)
}

// step answers two messages, appends two, and either sends the replies of the step
// before or gives them up. After each there are two replies.
func (e *env) step(g int, pending []store.Head) {
	e.Helper()
	var ops []store.Op
	for _, h := range e.outbox() {
		if g%3 == 0 {
			ops = append(ops, &store.Discard{Seq: h.Seq})
		} else {
			ops = append(ops, &store.Sent{Seq: h.Seq})
		}
	}
	for i := range 2 {
		id := message.ID(fmt.Sprint("step", g, "/", i))
		ops = append(ops,
			&store.Finish{Seq: pending[i].Seq, Replies: outbounds(id)},
			&store.Append{Message: inbound(id)})
	}
	e.commit(ops...)
}

// checkSums uses Errorf, since it runs beside the test's goroutine.
func (e *env) checkSums(items int) {
	c, err := e.store.Counts(e.Context())
	if err != nil || c.Inbox != int64(items) || c.Done%2 != 0 || c.Sent%2 != 0 ||
		c.DeadOutbox%2 != 0 || c.Done != c.Outbox+c.Sent+c.DeadOutbox {
		e.Errorf("half a group is visible: %+v, %v", c, err)
	}
	heads, err := e.store.InboxHeads(e.Context(), 0, all)
	if err != nil || len(heads) != items {
		e.Errorf("%d heads instead of %d: %v", len(heads), items, err)
		return
	}
	for i, h := range heads {
		if i > 0 && h.Seq <= heads[i-1].Seq {
			e.Errorf("heads are out of order: %v", seqs(heads))
			return
		}
	}
	p, err := e.store.LoadInbox(e.Context(), heads[items-1].Seq)
	if err != nil || len(p) > 0 && p[0].Message.Conversation.ID != heads[items-1].Conversation {
		e.Errorf("item %d is of another conversation: %+v, %v", heads[items-1].Seq, p, err)
	}
	dead, err := e.store.DeadLetters(e.Context(), all)
	if err != nil || len(dead)%2 != 0 {
		e.Errorf("%d dead letters, %v", len(dead), err)
	}
}

// testWriter has several goroutines append through the writer.
func testWriter(e *env) {
	const producers, each = 4, 60
	w, err := store.NewWriter(e.store, store.WriterConfig{MaxGroup: 16})
	require.NoError(e, err)
	ctx, stop := context.WithCancel(e.Context())
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	var last [producers]lastSeq
	var wg sync.WaitGroup
	for p := range producers {
		wg.Go(func() {
			for i := range each {
				m := inbound(message.ID(fmt.Sprint("p", p, "/", i)))
				if err := w.Submit(&store.Append{Message: m}, &last[p]); err != nil {
					e.Error(err)
				}
			}
		})
	}
	wg.Wait()
	stop()
	require.NoError(e, <-ended)
	for i := range last {
		require.Equal(e, each, last[i].told)
		require.Zero(e, last[i].wrong, "told out of order, or with an error")
	}
	require.Len(e, e.inbox(), producers*each)
}

// lastSeq checks that appends of one producer are told in order.
type lastSeq struct {
	seq         store.Seq
	told, wrong int
}

func (l *lastSeq) Committed(op store.Op, err error) {
	a, ok := op.(*store.Append)
	if !ok || err != nil || a.Seq <= l.seq {
		l.wrong++
		return
	}
	l.told, l.seq = l.told+1, a.Seq
}
