package jsonscan

import (
	"math/bits"
	"unicode/utf8"
)

const hexDigits = "0123456789abcdef"

// AppendString adds s as a JSON string. Only what JSON demands is escaped. Bytes that
// are no UTF-8 become U+FFFD, one each, as with encoding/json.
func AppendString(b []byte, s string) []byte {
	b = append(b, '"')
	done := 0
	for i := 0; i < len(s); {
		if i = skipPlain(s, i); i == len(s) {
			break
		}
		c, size := s[i], 1
		switch {
		case c < ' ':
			b = append(append(b, s[done:i]...), '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&0xf])
		case c == '"' || c == '\\':
			b = append(append(b, s[done:i]...), '\\', c)
		default:
			var r rune
			if r, size = utf8.DecodeRuneInString(s[i:]); r != utf8.RuneError || size > 1 {
				i += size
				continue
			}
			b = utf8.AppendRune(append(b, s[done:i]...), utf8.RuneError)
		}
		i += size
		done = i
	}
	return append(append(b, s[done:]...), '"')
}

// skipPlain gives the first index from i on that holds no ASCII character which stands
// for itself.
func skipPlain(s string, i int) int {
	for i+8 <= len(s) {
		w := load(s, i)
		m := marks(w) | w&highs
		if m != 0 {
			return i + bits.TrailingZeros64(m)>>3
		}
		i += 8
	}
	for i < len(s) && s[i] < utf8.RuneSelf && s[i] >= ' ' && s[i] != '"' && s[i] != '\\' {
		i++
	}
	return i
}
