package wire_test

import (
	"context"
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/penstock-io/penstock/internal/wire"
)

func TestMeterCountsEveryFrameOnce(t *testing.T) {
	var m wire.Meter
	require.Len(t, m.Totals().Sent, 4)
	require.Len(t, m.Totals().Dropped, 8, "every reason is there from the start")

	s, peer := pipe(t, wire.Config{Hooks: m.Hooks(), MaxFrame: 10, TrackFrames: 1})
	go func() { _, _ = io.Copy(io.Discard, peer) }()
	require.NoError(t, s.Write(context.Background(), tracked("a", "abc")))
	require.NoError(t, s.Write(context.Background(), tracked("b", "abc")))
	_, err := s.Resend("b")
	require.NoError(t, err)
	require.NoError(t, s.Write(context.Background(), text(wire.Critical, "x")))
	require.ErrorIs(t, s.Try(text(wire.Normal, "more than ten")), wire.ErrTooLarge)
	s.Close()
	_ = peer.Close()
	require.ErrorIs(t, s.Try(text(wire.Bulk, "x")), wire.ErrClosed)

	got := m.Totals()
	require.Equal(t, map[wire.Lane]int64{
		wire.Control: 0, wire.Critical: 1, wire.Normal: 3, wire.Bulk: 0,
	}, got.Sent)
	require.Equal(t, int64(3), got.Bytes[wire.Critical])
	require.Equal(t, int64(1), got.Dropped[wire.DropTooLarge])
	require.Equal(t, int64(1), got.Dropped[wire.DropClosed])
	require.Equal(t, int64(1), got.Resent)
	require.Equal(t, int64(1), got.Evicted)
	require.GreaterOrEqual(t, got.Wait, got.Queued)
	require.Positive(t, got.Wait)
}
