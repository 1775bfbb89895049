package wire_test

import (
	"io"
	"net"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/penstock-io/penstock/internal/wire"
)

// tcpPair gives both ends of a loopback connection.
func tcpPair(t testing.TB) (ours, peer net.Conn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { _ = l.Close() }()
	ours, err = net.Dial("tcp", l.Addr().String())
	require.NoError(t, err)
	peer, err = l.Accept()
	require.NoError(t, err)
	t.Cleanup(func() { _, _ = ours.Close(), peer.Close() })
	return ours, peer
}

// BenchmarkAcks sends frames of an ack's size as fast as the lane takes them.
func BenchmarkAcks(b *testing.B) {
	ours, peer := tcpPair(b)
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = io.Copy(io.Discard, peer)
	}()
	s := wire.NewSocket(ours, wire.Config{Frames: 4096})
	payload := []byte(strings.Repeat("x", 150))
	b.ReportAllocs()
	for b.Loop() {
		for s.Send(wire.Normal, wire.Text, payload) != nil {
		}
	}
	s.Finish(1000)
	s.Close()
	<-done
	st := s.Stats()
	b.ReportMetric(float64(st.Written)/float64(st.Writes), "frames/write")
	b.ReportMetric(float64(st.Written)/b.Elapsed().Seconds(), "frames/s")
}
