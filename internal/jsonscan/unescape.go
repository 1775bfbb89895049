package jsonscan

import (
	"encoding/binary"
	"math/bits"
	"slices"
	"unicode/utf16"
	"unicode/utf8"
)

// slack is how far past the end of a text a copy by words may write.
const slack = 8

// plainEscapes holds what a backslash and a byte stand for, 0 if nothing.
var plainEscapes = [256]byte{
	'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t',
}

// appendScanned reads the string whose opening quote is at s[i] and appends its
// text. It is one pass for both because escapes come at odd distances: each costs
// the processor a wrong guess per pass, and a document inside a string has one for
// every ten bytes.
//
// It copies words of eight bytes, also when only the first few are wanted: what
// was written too much is written over next.
func appendScanned(dst []byte, s string, i int) (text []byte, end int, ok bool) {
	start, seen := len(dst), uint64(0)
	i++
	dst = slices.Grow(dst, len(s)-i+slack)
	buf, n := dst[:cap(dst)], start
	for i < len(s) {
		w, m := uint64(0), uint64(highs)
		if i+8 <= len(s) {
			w = load(s, i)
			m = marks(w)
			binary.LittleEndian.PutUint64(buf[n:], w)
			seen |= w
		}
		plain := 8
		if m != 0 {
			plain = bits.TrailingZeros64(m) >> 3
		}
		i, n = i+plain, n+plain
		if m == 0 {
			continue
		}
		switch c := s[i]; {
		case c == '"':
			return mended(buf[:n], start, seen), i + 1, true
		case c == '\\':
			if escapeLen(s, i) == 0 {
				return dst, i, false
			}
			used, wrote := unescapeOne(buf[n:], s[i:])
			i, n = i+used, n+wrote
		case c < ' ':
			return dst, i, false
		default: // near the end of s, one byte at a time
			buf[n] = c
			seen |= uint64(c)
			i, n = i+1, n+1
		}
	}
	return dst, i, false
}

// mended replaces invalid UTF-8 from start on, if seen says that there are bytes
// outside ASCII at all.
func mended(dst []byte, start int, seen uint64) []byte {
	if seen&highs == 0 || utf8.Valid(dst[start:]) {
		return dst
	}
	bad := string(dst[start:])
	dst = dst[:start]
	for _, r := range bad {
		dst = utf8.AppendRune(dst, r)
	}
	return dst
}

// unescapeOne writes what the escape at the start of s stands for.
func unescapeOne(buf []byte, s string) (used, wrote int) {
	if s[1] != 'u' {
		buf[0] = plainEscapes[s[1]]
		return 2, 1
	}
	r, used := hex4(s, 2), 6
	if utf16.IsSurrogate(r) {
		pair := rune(utf8.RuneError)
		if len(s) >= 12 && s[6] == '\\' && s[7] == 'u' {
			pair = utf16.DecodeRune(r, hex4(s, 8))
		}
		if r = pair; r != utf8.RuneError {
			used = 12
		}
	}
	return used, utf8.EncodeRune(buf, r)
}

// hex4 reads four hexadecimal digits; it gives -1 if there are not as many.
func hex4(s string, i int) rune {
	if i+4 > len(s) {
		return -1
	}
	var r rune
	for _, c := range []byte(s[i : i+4]) {
		switch {
		case '0' <= c && c <= '9':
			c -= '0'
		case 'a' <= c && c <= 'f':
			c -= 'a' - 10
		case 'A' <= c && c <= 'F':
			c -= 'A' - 10
		default:
			return -1
		}
		r = r<<4 | rune(c)
	}
	return r
}
