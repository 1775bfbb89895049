package wire

import (
	"encoding/binary"
	"math/rand/v2"
)

// Op is the opcode of a frame.
type Op byte

// Opcodes of RFC 6455 that are sent. Messages are never split over frames.
const (
	Text  Op = 0x1
	Shut  Op = 0x8
	Ping  Op = 0x9
	Pong  Op = 0xA
	final    = 0x80
	mask     = 0x80
)

// maxControl is the largest payload of a frame that is not a message.
const maxControl = 125

func (o Op) isControl() bool { return o >= Shut }

// appendFrame adds a whole frame to b. Clients must mask (RFC 6455, 5.3), with
// keys that the peer cannot foresee; the runtime's generator gives such keys.
func appendFrame(b []byte, op Op, masked bool, payload []byte) []byte {
	var bit byte
	if masked {
		bit = mask
	}
	b = appendLength(append(b, final|byte(op)), bit, len(payload))
	if !masked {
		return append(b, payload...)
	}
	key := rand.Uint32()
	b = binary.LittleEndian.AppendUint32(b, key)
	start := len(b)
	b = append(b, payload...)
	maskBytes(b[start:], key)
	return b
}

func appendLength(b []byte, bit byte, n int) []byte {
	switch {
	case n <= maxControl:
		return append(b, bit|byte(n))
	case n <= 0xffff:
		return binary.BigEndian.AppendUint16(append(b, bit|126), uint16(n))
	default:
		return binary.BigEndian.AppendUint64(append(b, bit|127), uint64(n))
	}
}

// frameSize is the length of a frame with a payload of n bytes.
func frameSize(n int, masked bool) int {
	size := n + 2
	switch {
	case n > 0xffff:
		size += 8
	case n > maxControl:
		size += 2
	}
	if masked {
		size += 4
	}
	return size
}

// maskBytes XORs b with the key, eight bytes at a time: the key repeats every
// four bytes, so two copies of it line up.
func maskBytes(b []byte, key uint32) {
	wide := uint64(key)<<32 | uint64(key)
	for len(b) >= 8 {
		binary.LittleEndian.PutUint64(b, binary.LittleEndian.Uint64(b)^wide)
		b = b[8:]
	}
	for i := range b {
		b[i] ^= byte(key >> (8 * i % 32))
	}
}

// ShutPayload is the payload of a frame that ends the connection with a code.
func ShutPayload(code uint16) []byte {
	return binary.BigEndian.AppendUint16(nil, code)
}
