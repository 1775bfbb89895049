package storetest

import (
	"context"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/penstock-io/penstock/store"
)

func (e *env) leases() store.Leases {
	e.Helper()
	l, ok := e.store.(store.Leases)
	require.True(e, ok, "a store is a store.Leases too")
	return l
}

func testLeases(e *env) {
	ctx, ls := e.Context(), e.leases()
	a, err := ls.Acquire(ctx, "bot-1", "a", time.Hour)
	require.NoError(e, err)
	require.Equal(e, store.Lease{Name: "bot-1", Owner: "a", Fence: 1, Until: a.Until}, a)
	require.WithinDuration(e, time.Now().Add(time.Hour), a.Until, time.Minute)
	held, err := ls.Acquire(ctx, "bot-1", "b", time.Hour)
	require.ErrorIs(e, err, store.ErrHeld)
	require.Equal(e, "a", held.Owner, "beside ErrHeld comes the holder")
	again, err := ls.Acquire(ctx, "bot-1", "a", 2*time.Hour)
	require.NoError(e, err)
	require.Equal(e, a.Fence, again.Fence, "the owner has not changed")
	require.Greater(e, again.Until, a.Until)
	renewed, err := ls.Renew(ctx, a, 3*time.Hour)
	require.NoError(e, err)
	require.Greater(e, renewed.Until.Sub(again.Until), 30*time.Minute)
	other, err := ls.Acquire(ctx, "bot-2", "b", -time.Second)
	require.NoError(e, err, "another name is another lease")

	took, err := ls.Acquire(ctx, "bot-2", "c", time.Hour)
	require.NoError(e, err, "one that has run out can be taken")
	require.Greater(e, took.Fence, other.Fence)
	_, err = ls.Renew(ctx, other, time.Hour)
	require.ErrorIs(e, err, store.ErrFenced)
	require.ErrorIs(e, ls.Release(ctx, other), store.ErrFenced)

	require.NoError(e, ls.Release(ctx, renewed))
	require.ErrorIs(e, ls.Release(ctx, renewed), store.ErrFenced)
	b, err := ls.Acquire(ctx, "bot-1", "b", time.Hour)
	require.NoError(e, err)
	require.Greater(e, b.Fence, a.Fence, "a fence is never used again")
	_, err = ls.Acquire(ctx, "bot-1", "", time.Hour)
	require.ErrorIs(e, err, store.ErrInvalid)
	_, err = ls.Acquire(cancelled(ctx), "bot-1", "b", time.Hour)
	require.ErrorIs(e, err, context.Canceled)
	require.NoError(e, e.store.Close())
	_, err = ls.Acquire(ctx, "bot-1", "b", time.Hour)
	require.ErrorIs(e, err, store.ErrClosed)
}

func testFence(e *env) {
	ls := e.leases()
	a, err := ls.Acquire(e.Context(), "all", "a", -time.Second)
	require.NoError(e, err)
	fenced := store.WithFence(e.Context(), a)
	group := []store.Op{&store.Append{Message: inbound("a")}}
	require.NoError(e, e.store.Commit(fenced, group), "run out, but nobody took it")
	_, err = ls.Acquire(e.Context(), "all", "b", time.Hour)
	require.NoError(e, err)
	group[0] = &store.Append{Message: inbound("b")}
	require.ErrorIs(e, e.store.Commit(fenced, group), store.ErrFenced)
	require.Len(e, e.inbox(), 1, "nothing of the group holds")
	e.commit(group...)
	require.Len(e, e.inbox(), 2, "a commit without a fence is nobody's")
}
