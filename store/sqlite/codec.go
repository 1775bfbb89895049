package sqlite

import (
	"encoding/binary"
	"fmt"
	"time"
	"unsafe"
)

// codec writes or reads the fields of a value one after the other. One function
// names the fields of a type, so what is written and what is read cannot differ.
//
// Fields are added at the end only: a reader that finds no more bytes leaves the
// rest zero, and one that knows fewer fields does not look at them. A string that
// is a part of the payload is kept as its place there.
type codec struct {
	reading bool
	b       []byte // written so far
	payload string // what strings may be parts of
	text    string // what is left to read
	bad     bool   // what was read makes no sense
}

func (c *codec) uint(v uint64) uint64 {
	if !c.reading {
		c.b = binary.AppendUvarint(c.b, v)
		return v
	}
	return c.readUint()
}

func (c *codec) readUint() (n uint64) {
	if len(c.text) == 0 {
		return 0 // written by a program that did not know this field
	}
	for i := 0; i < len(c.text) && i < binary.MaxVarintLen64; i++ {
		b := c.text[i]
		n |= uint64(b&0x7f) << (7 * i)
		if b < 0x80 {
			c.text = c.text[i+1:]
			return n
		}
	}
	c.bad = true
	return 0
}

func (c *codec) int(v int64) int64 {
	u := c.uint(uint64(v)<<1 ^ uint64(v>>63))
	return int64(u>>1) ^ -int64(u&1)
}

// integer codes a number of any width.
func integer[T ~int | ~int64 | ~uint8](c *codec, v *T) {
	n := c.int(int64(*v))
	if c.reading { // else others may be reading the value
		*v = T(n)
	}
}

func (c *codec) bool(v *bool) {
	var n uint64
	if *v {
		n = 1
	}
	n = c.uint(n)
	if c.reading {
		*v = n != 0
	}
}

// time keeps the instant, and no zone.
func (c *codec) time(t *time.Time) {
	var sec, nsec int64
	if !c.reading && !t.IsZero() {
		sec, nsec = t.Unix(), int64(t.Nanosecond())+1
	}
	sec, nsec = c.int(sec), c.int(nsec)
	if c.reading && nsec > 0 {
		*t = time.Unix(sec, nsec-1).UTC()
	}
}

// str codes a string of any type. Its length is doubled, and odd for a part of the
// payload.
func str[T ~string](c *codec, s *T) {
	if c.reading {
		*s = T(c.readString())
		return
	}
	n, at := uint64(len(*s))<<1, c.within(string(*s))
	if at < 0 {
		c.b = append(binary.AppendUvarint(c.b, n), *s...)
		return
	}
	c.b = binary.AppendUvarint(binary.AppendUvarint(c.b, n|1), uint64(at))
}

func (c *codec) readString() string {
	n := c.uint(0)
	size, from := n>>1, c.text
	if n&1 != 0 {
		at := c.uint(0)
		if at > uint64(len(c.payload)) {
			c.bad = true
			return ""
		}
		from = c.payload[at:]
	}
	if size > uint64(len(from)) {
		c.bad = true
		return ""
	}
	if n&1 == 0 {
		c.text = c.text[size:]
	}
	return from[:size]
}

// within gives the place of s in the payload if it shares its memory, else -1.
// Looking at the memory costs nothing, where a search would cost a pass.
func (c *codec) within(s string) int {
	if len(s) == 0 || len(c.payload) == 0 {
		return -1
	}
	at := uintptr(unsafe.Pointer(unsafe.StringData(s))) -
		uintptr(unsafe.Pointer(unsafe.StringData(c.payload)))
	if at > uintptr(len(c.payload)) || at+uintptr(len(s)) > uintptr(len(c.payload)) {
		return -1
	}
	return int(at)
}

// bytes codes a slice; nil and empty are the same.
func bytes[T ~[]byte](c *codec, v *T) {
	s := unsafe.String(unsafe.SliceData(*v), len(*v))
	str(c, &s)
	if c.reading && len(s) > 0 {
		*v = T(s)
	}
}

// list codes a slice; nil and empty are the same.
func list[T any](c *codec, v *[]T, element func(*codec, *T)) {
	n := c.uint(uint64(len(*v)))
	if n > uint64(len(c.text)) && c.reading {
		c.bad = true // an element takes a byte at least
		return
	}
	if c.reading && n > 0 {
		*v = make([]T, n)
	}
	for i := range *v {
		element(c, &(*v)[i])
	}
}

// seal puts what was written since the place at behind its length, and the payload
// behind that: a reader skips fields that it does not know.
func (c *codec) seal(at int) {
	var size [binary.MaxVarintLen64]byte
	n := binary.PutUvarint(size[:], uint64(len(c.b)-at))
	c.b = append(c.b, size[:n]...)
	copy(c.b[at+n:], c.b[at:len(c.b)-n])
	copy(c.b[at:], size[:n])
	c.b = append(c.b, c.payload...)
}

// unseal is the way back from seal. The strings that are read share one copy.
func unseal(body []byte) (codec, error) {
	c := codec{reading: true, text: string(body)}
	if len(c.text) == 0 || c.text[0] != codecVersion {
		return c, fmt.Errorf("%w: item in an unknown form", ErrDamaged)
	}
	c.text = c.text[1:]
	c.bad = len(c.text) == 0
	size := c.uint(0)
	if c.bad || size > uint64(len(c.text)) {
		return c, fmt.Errorf("%w: item is cut off", ErrDamaged)
	}
	c.text, c.payload = c.text[:size], c.text[size:]
	return c, nil
}
