package jsonscan

import "math/bits"

// A word of eight bytes is looked at in one go. ones has a 1 in each byte, highs
// the top bit of each.
const (
	ones  = 0x0101010101010101
	highs = 0x8080808080808080
)

// load reads eight bytes, the first of them lowest. The compiler makes it one
// load.
func load(s string, i int) uint64 {
	s = s[i : i+8]
	return uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
		uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
}

// marks sets the top bit of each byte that ends a run of plain text: a quote, a
// backslash or a control character. A borrow may set bits above a true one, so
// only the lowest is to be trusted.
func marks(w uint64) uint64 {
	quote := w ^ ones*'"'
	slash := w ^ ones*'\\'
	return ((quote-ones)&^quote | (slash-ones)&^slash | (w-ones*0x20)&^w) & highs
}

// skipSpace gives the first index from i on that holds no white space.
func skipSpace(s string, i int) int {
	for i < len(s) && s[i] <= ' ' {
		if c := s[i]; c != ' ' && c != '\n' && c != '\t' && c != '\r' {
			return i
		}
		i++
	}
	return i
}

// scanString reads the string whose opening quote is at s[i].
func scanString(s string, i int) (v Value, end int, ok bool) {
	start, seen := i, uint64(0)
	for i++; ; {
		// This loop is where the time goes: it stands here and not in a function of
		// its own because strings are short and calls are not free.
		for i+8 <= len(s) {
			w := load(s, i)
			m := marks(w)
			if m == 0 {
				seen |= w
				i += 8
				continue
			}
			n := bits.TrailingZeros64(m) &^ 7
			seen |= w & (1<<n - 1)
			i += n >> 3
			break
		}
		for i < len(s) && s[i] >= ' ' && s[i] != '"' && s[i] != '\\' {
			seen |= uint64(s[i])
			i++
		}
		if i >= len(s) || s[i] < ' ' {
			return Value{}, i, false
		}
		if s[i] == '"' {
			return Value{raw: s[start : i+1], kind: String, plain: seen&highs == 0}, i + 1, true
		}
		n := escapeLen(s, i)
		if n == 0 {
			return Value{}, i, false
		}
		i += n
		seen |= highs // not plain either
	}
}

// escapeLen is how many bytes the escape at s[i] takes, 0 if it is none.
func escapeLen(s string, i int) int {
	switch {
	case i+1 >= len(s):
		return 0
	case plainEscapes[s[i+1]] != 0:
		return 2
	case s[i+1] == 'u' && hex4(s, i+2) >= 0:
		return 6
	default:
		return 0
	}
}

// scanKey reads a member's name at s[i] and the colon after it; end is where the
// value starts.
func scanKey(s string, i int) (key Value, end int, ok bool) {
	if i >= len(s) || s[i] != '"' {
		return Value{}, i, false
	}
	key, i, ok = scanString(s, i)
	if !ok {
		return Value{}, i, false
	}
	if i = skipSpace(s, i); i >= len(s) || s[i] != ':' {
		return Value{}, i, false
	}
	return key, skipSpace(s, i+1), true
}

// scanValue reads the value that starts at s[i]; it may be nested depth levels.
func scanValue(s string, i, depth int) (v Value, end int, err error) {
	if i < len(s) && (s[i] == '{' || s[i] == '[') {
		end, err = scanNested(s, i, depth)
		if err != nil {
			return Value{}, end, err
		}
		kind := Object
		if s[i] == '[' {
			kind = Array
		}
		return Value{raw: s[i:end], kind: kind}, end, nil
	}
	v, end, ok := scanScalar(s, i)
	if !ok {
		return Value{}, end, ErrSyntax
	}
	return v, end, nil
}

func scanScalar(s string, i int) (v Value, end int, ok bool) {
	if i >= len(s) {
		return Value{}, i, false
	}
	switch s[i] {
	case '"':
		return scanString(s, i)
	case 't':
		return scanWord(s, i, Value{raw: "true", kind: Bool})
	case 'f':
		return scanWord(s, i, Value{raw: "false", kind: Bool})
	case 'n':
		return scanWord(s, i, Value{raw: "null", kind: Null})
	default:
		end, ok = scanNumber(s, i)
		return Value{raw: s[i:end], kind: Number}, end, ok
	}
}

func scanWord(s string, i int, want Value) (v Value, end int, ok bool) {
	end = i + len(want.raw)
	if end > len(s) || s[i:end] != want.raw {
		return Value{}, i, false
	}
	return want, end, true
}

// scanNumber reads a number as JSON spells it.
func scanNumber(s string, i int) (end int, ok bool) {
	if i < len(s) && s[i] == '-' {
		i++
	}
	whole := i
	i = scanDigits(s, i)
	if i == whole || s[whole] == '0' && i > whole+1 {
		return i, false
	}
	if i < len(s) && s[i] == '.' {
		fraction := i + 1
		if i = scanDigits(s, fraction); i == fraction {
			return i, false
		}
	}
	if i < len(s) && (s[i] == 'e' || s[i] == 'E') {
		return scanExponent(s, i+1)
	}
	return i, true
}

func scanExponent(s string, i int) (end int, ok bool) {
	if i < len(s) && (s[i] == '+' || s[i] == '-') {
		i++
	}
	end = scanDigits(s, i)
	return end, end > i
}

func scanDigits(s string, i int) int {
	for i < len(s) && s[i]-'0' <= 9 {
		i++
	}
	return i
}
