// Package storetest is the conformance suite of store.Store: what the contract
// says, as tests. Each implementation runs it and adds tests only for what it
// promises beyond the contract.
//
// The suite relies on nothing but the interfaces, so it never looks at the age of
// an id and never kills a process.
package storetest

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/penstock-io/penstock/message"
	"github.com/penstock-io/penstock/store"
)

// Features tells which parts of the suite apply. What is declared is required.
type Features struct {
	// Durable stores keep everything over Reopen.
	Durable bool
	// Reopen closes s and opens what it held again. Durable stores need it.
	Reopen func(t *testing.T, s store.Store) store.Store
	// History stores know of what has ended when it did, and what became of replies.
	History bool
	// Bounded opens an empty store with room for so many items, in the inbox and
	// the outbox together. It is nil for stores without such a bound.
	Bounded func(t *testing.T, items int) store.Store
}

// Run runs the suite. Each test calls open for an empty store of its own and
// closes it; open may use t for its files. Tests may run in parallel.
func Run(t *testing.T, open func(t *testing.T) store.Store, f Features) {
	require.Equal(t, f.Durable, f.Reopen != nil, "Durable and Reopen come together")
	for _, c := range tests {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			e := newEnv(t, open(t))
			e.history = f.History
			c.run(e)
		})
	}
	t.Run("Model", func(t *testing.T) {
		t.Parallel()
		testModel(t, open, f)
	})
	for _, c := range durable {
		if f.Durable {
			t.Run("Durable/"+c.name, func(t *testing.T) {
				t.Parallel()
				e := newEnv(t, open(t))
				e.reopen = f.Reopen
				c.run(e)
			})
		}
	}
	if f.Bounded != nil {
		t.Run("Bounded", func(t *testing.T) {
			t.Parallel()
			testBounded(newEnv(t, f.Bounded(t, bound)))
		})
	}
}

type test struct {
	name string
	run  func(*env)
}

var tests = []test{
	{"Append", testAppend},
	{"AppendKeepsEverything", testAppendKeepsEverything},
	{"AppendKeepsRawBytes", testAppendKeepsRawBytes},
	{"AppendBuried", testAppendBuried},
	{"Finish", testFinish},
	{"FinishKeepsReplies", testFinishKeepsReplies},
	{"Postpone", testPostpone},
	{"Bury", testBury},
	{"Duplicates", testDuplicates},
	{"DuplicatesInOneGroup", testDuplicatesInOneGroup},
	{"DuplicateChangesNothing", testDuplicateChangesNothing},
	{"IDsAreExact", testIDsAreExact},
	{"NoID", testNoID},
	{"Add", testAdd},
	{"AddKnown", testAddKnown},
	{"FinishKnownReply", testFinishKnownReply},
	{"Sending", testSending},
	{"Discard", testDiscard},
	{"NotFound", testNotFound},
	{"Invalid", testInvalid},
	{"ResultsAreOverwritten", testResultsAreOverwritten},
	{"GroupInOrder", testGroupInOrder},
	{"GroupCancelled", testGroupCancelled},
	{"GroupLarge", testGroupLarge},
	{"Heads", testHeads},
	{"LoadMany", testLoadMany},
	{"DeadLetters", testDeadLetters},
	{"Counts", testCounts},
	{"ReadCancelled", testReadCancelled},
	{"Closed", testClosed},
	{"List", testList},
	{"ListPages", testListPages},
	{"Show", testShow},
	{"Requeue", testRequeue},
	{"RequeueReply", testRequeueReply},
	{"Purge", testPurge},
	{"Trace", testTrace},
	{"TraceReplies", testTraceReplies},
	{"TraceSends", testTraceSends},
	{"TraceRequeued", testTraceRequeued},
	{"Leases", testLeases},
	{"Fence", testFence},
	{"Readers", testReaders},
	{"Writer", testWriter},
}

// env is a store under test, with calls that must succeed.
type env struct {
	*testing.T
	store  store.Store
	reopen func(t *testing.T, s store.Store) store.Store
	// history is Features.History
	history bool
}

func newEnv(t *testing.T, s store.Store) *env {
	require.NotNil(t, s)
	e := &env{T: t, store: s}
	t.Cleanup(func() { require.NoError(t, e.store.Close()) })
	return e
}

// again reopens the store.
func (e *env) again() { e.store = e.reopen(e.T, e.store) }

// commit commits one group, of which every op must succeed.
func (e *env) commit(ops ...store.Op) {
	e.Helper()
	e.try(ops...)
	for i, op := range ops {
		require.NoError(e, op.Result(), "op %d, %T", i, op)
	}
}

// try commits one group, of which single ops may fail.
func (e *env) try(ops ...store.Op) {
	e.Helper()
	require.NoError(e, e.store.Commit(e.Context(), ops))
}

// append commits new messages and gives their numbers.
func (e *env) append(ms ...*message.Inbound) []store.Seq {
	e.Helper()
	ops := make([]store.Op, len(ms))
	for i, m := range ms {
		ops[i] = &store.Append{Message: m}
	}
	e.commit(ops...)
	seqs := make([]store.Seq, len(ms))
	for i, op := range ops {
		a := op.(*store.Append)
		require.Equal(e, store.StateNew, a.State, "message %d", i)
		seqs[i] = a.Seq
	}
	return seqs
}

// one appends one message with this id.
func (e *env) one(id message.ID) store.Seq {
	e.Helper()
	return e.append(inbound(id))[0]
}

// add commits replies that nobody asked for and gives their numbers.
func (e *env) add(ids ...message.ID) []store.Seq {
	e.Helper()
	op := &store.Add{Replies: outbounds(ids...)}
	e.commit(op)
	require.Len(e, op.Seqs, len(ids))
	return op.Seqs
}

// copyOf appends the message once more and gives what the store says of it.
func (e *env) copyOf(m *message.Inbound) (store.Seq, store.State) {
	e.Helper()
	op := &store.Append{Message: m}
	e.commit(op)
	return op.Seq, op.State
}

const all = 1 << 20

func (e *env) inbox() []store.Head {
	e.Helper()
	heads, err := e.store.InboxHeads(e.Context(), 0, all)
	require.NoError(e, err)
	return heads
}

func (e *env) outbox() []store.Head {
	e.Helper()
	heads, err := e.store.OutboxHeads(e.Context(), 0, all)
	require.NoError(e, err)
	return heads
}

func (e *env) dead() []store.Dead {
	e.Helper()
	dead, err := e.store.DeadLetters(e.Context(), all)
	require.NoError(e, err)
	return dead
}

func (e *env) counts() store.Counts {
	e.Helper()
	counts, err := e.store.Counts(e.Context())
	require.NoError(e, err)
	return counts
}

func (e *env) pending(seq store.Seq) store.Pending {
	e.Helper()
	p, err := e.store.LoadInbox(e.Context(), seq)
	require.NoError(e, err)
	require.Len(e, p, 1)
	require.Equal(e, seq, p[0].Seq)
	return p[0]
}

func (e *env) outgoing(seq store.Seq) store.Outgoing {
	e.Helper()
	o, err := e.store.LoadOutbox(e.Context(), seq)
	require.NoError(e, err)
	require.Len(e, o, 1)
	require.Equal(e, seq, o[0].Seq)
	return o[0]
}

func (e *env) noInbox(seq store.Seq) {
	e.Helper()
	p, err := e.store.LoadInbox(e.Context(), seq)
	require.NoError(e, err)
	require.Empty(e, p)
}

func (e *env) noOutbox(seq store.Seq) {
	e.Helper()
	o, err := e.store.LoadOutbox(e.Context(), seq)
	require.NoError(e, err)
	require.Empty(e, o)
}

// cancelled is a context that is done.
func cancelled(ctx context.Context) context.Context {
	ctx, cancel := context.WithCancel(ctx)
	cancel()
	return ctx
}

func seqs(heads []store.Head) []store.Seq {
	ns := make([]store.Seq, 0, len(heads))
	for _, h := range heads {
		ns = append(ns, h.Seq)
	}
	return ns
}
