//go:build !race

package wire_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/penstock-io/penstock/internal/wire"
)

// TestWriteAllocatesNothing stands aside under the race detector, which has pools
// lose things on purpose.
func TestWriteAllocatesNothing(t *testing.T) {
	s := wire.NewSocket(&null{}, wire.Config{Peer: wire.NewBudget(wire.BudgetConfig{}).Peer()})
	f := text(wire.Normal, "payload")
	require.Less(t, testing.AllocsPerRun(1000, func() {
		if s.Write(context.Background(), f) != nil {
			panic("refused")
		}
	}), 0.1)
	require.Less(t, testing.AllocsPerRun(1000, func() {
		for s.Send(wire.Normal, wire.Text, f.Payload) != nil {
		}
	}), 0.1)
	s.Close()
}
