package store_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/penstock-io/penstock/store"
)

func TestStateString(t *testing.T) {
	require.Equal(t, "sending", store.StateSending.String())
	require.Equal(t, "state(9)", store.State(9).String())
}

func TestFailSetsAndClears(t *testing.T) {
	op := &store.Begin{}
	require.NoError(t, op.Result())
	store.Fail(op, store.ErrNotFound)
	require.ErrorIs(t, op.Result(), store.ErrNotFound)
	store.Fail(op, nil)
	require.NoError(t, op.Result())
}
