package openapi

import (
	"bytes"
	"encoding/json"
	"fmt"
	"unicode/utf8"
)

// appendString appends s as a JSON string. Only what JSON demands is escaped:
// quotes, backslashes and control characters. The standard encoder's extra
// escapes of <, > and & would make a part of known size grow up to sixfold.
// Bytes that are no UTF-8 become U+FFFD.
func appendString(dst []byte, s string) []byte {
	dst = append(dst, '"')
	done := 0
	for i := 0; i < len(s); {
		esc, size := escape(s[i:])
		if esc != "" {
			dst = append(append(dst, s[done:i]...), esc...)
			done = i + size
		}
		i += size
	}
	return append(append(dst, s[done:]...), '"')
}

// escape gives what the first rune of s is written as, empty if as it is, and
// how many bytes of s it takes.
func escape(s string) (esc string, size int) {
	c := s[0]
	if asIs(c) {
		return "", 1
	}
	if c >= utf8.RuneSelf {
		r, size := utf8.DecodeRuneInString(s)
		if r == utf8.RuneError && size == 1 {
			return "\uFFFD", 1
		}
		return "", size
	}
	switch c {
	case '"':
		return `\"`, 1
	case '\\':
		return `\\`, 1
	case '\n':
		return `\n`, 1
	case '\r':
		return `\r`, 1
	case '\t':
		return `\t`, 1
	}
	return fmt.Sprintf(`\u%04x`, c), 1
}

// asIs tells an ASCII character that stands for itself in a JSON string.
func asIs(c byte) bool { return c >= ' ' && c < utf8.RuneSelf && c != '"' && c != '\\' }

// cost is how many bytes the first rune of s takes inside a JSON string.
func cost(s string) (encoded, size int) {
	c := s[0]
	switch {
	case asIs(c):
		return 1, 1
	case c >= utf8.RuneSelf:
		r, size := utf8.DecodeRuneInString(s)
		if r == utf8.RuneError && size == 1 {
			return len("\uFFFD"), 1
		}
		return size, size
	case c == '"' || c == '\\' || c == '\n' || c == '\r' || c == '\t':
		return 2, 1
	}
	return len(`\u0000`), 1
}

// costOf is how many bytes s takes inside a JSON string, without the quotes.
func costOf(s string) int {
	n := 0
	for i := 0; i < len(s); {
		c, size := cost(s[i:])
		n += c
		i += size
	}
	return n
}

// fit is the length of the longest prefix of s, in whole runes, that takes at
// most room bytes inside a JSON string.
func fit(s string, room int) int {
	i := 0
	for i < len(s) {
		c, size := cost(s[i:])
		if c > room {
			break
		}
		room -= c
		i += size
	}
	return i
}

// within tells whether s takes at most room bytes inside a JSON string. It looks
// at no more of s than that.
func within(s string, room int) bool { return len(s) <= room && fit(s, room) == len(s) }

// appendField appends `"name":"value"`, after a comma unless an object begins.
func appendField(dst []byte, name, value string) []byte {
	return appendString(appendName(dst, name), value)
}

func appendName(dst []byte, name string) []byte {
	if dst[len(dst)-1] != '{' {
		dst = append(dst, ',')
	}
	return append(appendString(dst, name), ':')
}

func appendStrings[S ~string](dst []byte, list []S) []byte {
	dst = append(dst, '[')
	for i, s := range list {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendString(dst, string(s))
	}
	return append(dst, ']')
}

// encodeJSON is json.Marshal without its escapes for HTML.
func encodeJSON(v any) ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n")), nil
}
