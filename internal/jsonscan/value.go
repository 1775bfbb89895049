package jsonscan

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// Kind tells what a value is.
type Kind uint8

// Kinds of values. Invalid is the kind of the zero [Value], which stands for a
// value that is not there.
const (
	Invalid Kind = iota
	Null
	Bool
	Number
	String
	Object
	Array
)

var kindNames = [...]string{"invalid", "null", "bool", "number", "string", "object", "array"}

// String gives the kind's name.
func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return "kind(" + strconv.Itoa(int(k)) + ")"
}

// Value is one value cut from a document. It is well formed. The zero Value is a
// missing one: every method gives a zero result.
type Value struct {
	raw   string // with the quotes, if it is a string
	kind  Kind
	plain bool // a string of ASCII without escapes: its inside is its text
}

// Kind tells what the value is.
func (v Value) Kind() Kind { return v.kind }

// Raw gives the value as it stands in the document, without space around it.
func (v Value) Raw() string { return v.raw }

// Exists tells whether there is a value, and it is not null.
func (v Value) Exists() bool { return v.kind > Null }

// Text gives the text of a string, the digits of a number, or the word of a truth
// value; it is empty for anything else. Lone surrogates and invalid UTF-8 come
// out as U+FFFD.
func (v Value) Text() string {
	if v.plain {
		return v.raw[1 : len(v.raw)-1]
	}
	return v.text()
}

// text stays out of line so that Text fits into its callers.
//
//go:noinline
func (v Value) text() string {
	switch v.kind {
	case Bool, Number:
		return v.raw
	case String:
		return v.unquoted()
	default:
		return ""
	}
}

// AppendText appends what Text gives.
func (v Value) AppendText(dst []byte) []byte {
	if v.plain {
		return append(dst, v.raw[1:len(v.raw)-1]...)
	}
	switch v.kind {
	case Bool, Number:
		return append(dst, v.raw...)
	case String:
		dst, _, _ = appendScanned(dst, v.raw, 0)
		return dst
	default:
		return dst
	}
}

// Int reads a whole number, also from a string or with a fraction or an exponent;
// ok is false if it is no number or does not fit.
func (v Value) Int() (n int64, ok bool) {
	text, ok := v.digits()
	if !ok {
		return 0, false
	}
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return n, true
	}
	f, ok := v.Float()
	// 1<<63 is the first float past the largest int64.
	if !ok || f < -1<<63 || f >= 1<<63 {
		return 0, false
	}
	return int64(f), true
}

// Float reads a finite number, also from a string.
func (v Value) Float() (f float64, ok bool) {
	text, ok := v.digits()
	if !ok {
		return 0, false
	}
	f, err := strconv.ParseFloat(text, 64)
	return f, err == nil
}

// digits gives the text to read a number from. It refuses what strconv would take
// and JSON would not: words such as "inf", hexadecimal, underscores.
func (v Value) digits() (text string, ok bool) {
	if v.kind != Number && v.kind != String {
		return "", false
	}
	text = strings.TrimSpace(v.Text())
	end, ok := scanNumber(text, 0)
	return text, ok && end == len(text)
}

// Truth reads a truth value: true, a word for it ("true", "True", "1") or a number
// other than 0. Everything else is false.
func (v Value) Truth() bool {
	switch v.kind {
	case Bool:
		return v.raw == "true"
	case Number, String:
		if f, ok := v.Float(); ok {
			return f != 0
		}
		return strings.EqualFold(strings.TrimSpace(v.Text()), "true")
	default:
		return false
	}
}

// Members walks the value's members; there are none if it is no object.
func (v Value) Members() Members {
	if v.kind != Object {
		return Members{done: true}
	}
	return ReadObject(v.raw)
}

// Elements walks the value's elements; there are none if it is no array.
func (v Value) Elements() Elements {
	if v.kind != Array {
		return Elements{done: true}
	}
	return ReadArray(v.raw)
}

func (v Value) unquoted() string {
	body := v.raw[1 : len(v.raw)-1]
	if strings.IndexByte(body, '\\') < 0 && utf8.ValidString(body) {
		return body
	}
	// Unescaping makes no text longer, except where it mends invalid UTF-8.
	return View(v.AppendText(make([]byte, 0, len(v.raw)+slack)))
}
