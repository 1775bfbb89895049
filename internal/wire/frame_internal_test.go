package wire

import (
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestMaskBytes(t *testing.T) {
	const key = 0x04030201
	for n := range 40 {
		b := make([]byte, n)
		maskBytes(b, key)
		for i := range b {
			require.Equal(t, byte(i%4+1), b[i], "length %d, byte %d", n, i)
		}
	}
}

// FuzzFrame reads back what was written, by the letter of RFC 6455, 5.2.
func FuzzFrame(f *testing.F) {
	for _, n := range []int{0, 125, 126, 65535, 65536} {
		f.Add(make([]byte, n), true)
		f.Add(make([]byte, n), false)
	}
	f.Fuzz(func(t *testing.T, payload []byte, masked bool) {
		b := appendFrame(nil, Text, masked, payload)
		require.Len(t, b, frameSize(len(payload), masked), "what is reserved is what is made")
		require.Equal(t, byte(0x81), b[0])
		require.Equal(t, masked, b[1]&0x80 != 0)
		n, rest := int(b[1]&0x7f), b[2:]
		switch n {
		case 126:
			n, rest = int(binary.BigEndian.Uint16(rest)), rest[2:]
		case 127:
			n, rest = int(binary.BigEndian.Uint64(rest)), rest[8:]
		}
		if masked {
			key := binary.LittleEndian.Uint32(rest)
			rest = rest[4:]
			maskBytes(rest, key)
		}
		require.Len(t, rest, n)
		require.Equal(t, string(payload), string(rest))
	})
}
