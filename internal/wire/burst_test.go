package wire_test

import (
	"bytes"
	"io"
	"net"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/penstock-io/penstock/internal/wire"
)

// script is a connection that gives its bytes in pieces of given sizes.
type script struct {
	net.Conn
	data  []byte
	sizes []int
	reads int
}

func (s *script) Read(p []byte) (int, error) {
	if len(s.data) == 0 {
		return 0, io.EOF
	}
	size := len(s.data)
	if len(s.sizes) > 0 {
		size, s.sizes = min(s.sizes[0], size), s.sizes[1:]
	}
	s.reads++
	n := copy(p, s.data[:size])
	s.data = s.data[n:]
	return n, nil
}

func TestBurstKeepsTheBytes(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		want := make([]byte, rapid.IntRange(0, 200_000).Draw(rt, "length"))
		for i := range want {
			want[i] = byte(i * 7)
		}
		sizes := rapid.SliceOf(rapid.IntRange(1, 70_000)).Draw(rt, "pieces")
		c := wire.Burst(&script{data: bytes.Clone(want), sizes: sizes})
		var got []byte
		for {
			p := make([]byte, rapid.SampledFrom([]int{1, 100, 2048, 50_000}).Draw(rt, "asked"))
			n, err := c.Read(p)
			got = append(got, p[:n]...)
			if err != nil {
				require.ErrorIs(rt, err, io.EOF)
				break
			}
		}
		require.True(rt, bytes.Equal(want, got))
	})
}

func TestBurstSavesReads(t *testing.T) {
	s := &script{data: make([]byte, 1<<20)}
	c := wire.Burst(s)
	n, err := io.CopyBuffer(struct{ io.Writer }{io.Discard}, struct{ io.Reader }{c}, make([]byte, 2048))
	require.NoError(t, err)
	require.EqualValues(t, 1<<20, n)
	require.Less(t, s.reads, 100, "2 KiB a read would be 512")
}
