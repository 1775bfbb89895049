package memory_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/penstock-io/penstock/store"
	"github.com/penstock-io/penstock/store/memory"
	"github.com/penstock-io/penstock/store/storetest"
)

func open(t testing.TB, cfg memory.Config) *memory.Store {
	t.Helper()
	s, err := memory.New(cfg)
	require.NoError(t, err)
	return s
}

func TestStore(t *testing.T) {
	storetest.Run(t,
		func(t *testing.T) store.Store { return open(t, memory.Config{}) },
		storetest.Features{
			Bounded: func(t *testing.T, items int) store.Store {
				return open(t, memory.Config{MaxItems: items})
			},
		})
}
