package jsonscan_test

import (
	"fmt"
	"math"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/penstock-io/penstock/internal/jsonscan"
)

func value(t require.TestingT, doc string) jsonscan.Value {
	v, err := jsonscan.Parse(doc)
	require.NoError(t, err)
	return v
}

func TestLenientNumbers(t *testing.T) {
	for doc, want := range map[string]int64{
		`0`: 0, `-7`: -7, `"12"`: 12, `" 12 "`: 12, `1767225599600`: 1767225599600,
		`"1767225599600"`:   1767225599600,
		`1.767225599600e12`: 1767225599600, `"4000.0"`: 4000, `9223372036854775807`: math.MaxInt64,
		`4.9`: 4, `-4.9`: -4,
		`"\u0031\u0032"`: 12, `-9223372036854775808`: math.MinInt64,
	} {
		got, ok := value(t, doc).Int()
		require.True(t, ok, doc)
		require.Equal(t, want, got, doc)
	}
	for _, doc := range []string{
		`null`, `true`, `""`, `"x"`, `"1x"`, `"inf"`, `"nan"`, `"0x10"`, `"1_000"`, `[]`, `{}`, `1e400`,
		`9223372036854775808`, `-1e19`, `"+1"`, `"01"`,
	} {
		_, ok := value(t, doc).Int()
		require.False(t, ok, doc)
	}
	f, ok := value(t, `"4.5"`).Float()
	require.True(t, ok)
	require.InDelta(t, 4.5, f, 0)
	_, ok = value(t, `1e400`).Float()
	require.False(t, ok)
}

func TestLenientTruth(t *testing.T) {
	for doc, want := range map[string]bool{
		`true`: true, `"true"`: true, `"TRUE"`: true, `" true "`: true, `1`: true, `"1"`: true,
		`-1`:    true,
		`false`: false, `"false"`: false, `0`: false, `"0"`: false, `""`: false, `null`: false,
		`{}`:       false,
		`["true"]`: false, `"yes"`: false,
	} {
		require.Equal(t, want, value(t, doc).Truth(), doc)
	}
}

func TestLenientText(t *testing.T) {
	for doc, want := range map[string]string{
		`"x"`: "x", `12`: "12", `1.50`: "1.50", `true`: "true", `null`: "", `[]`: "",
		`{"a":"b"}`: "", `"\/"`: "/",
		`"\b\f\n\r\t\"\\"`: "\b\f\n\r\t\"\\",
	} {
		require.Equal(t, want, value(t, doc).Text(), doc)
		require.Equal(t, "-"+want, string(value(t, doc).AppendText([]byte("-"))), doc)
	}
}

func TestTheMissingValue(t *testing.T) {
	var v jsonscan.Value
	require.False(t, v.Exists())
	require.Empty(t, v.Raw())
	require.Empty(t, v.Text())
	require.Empty(t, v.AppendText(nil))
	require.False(t, v.Truth())
	_, ok := v.Int()
	require.False(t, ok)
	m, e := v.Members(), v.Elements()
	require.False(t, m.Next() || e.Next())
	require.NoError(t, m.Err())
	require.NoError(t, e.Err())
}

func TestKindNames(t *testing.T) {
	require.Equal(t, "invalid", jsonscan.Invalid.String())
	require.Equal(t, "array", value(t, `[]`).Kind().String())
	require.Equal(t, "kind(200)", jsonscan.Kind(200).String())
}

func TestEveryTextComesBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := rapid.String().Draw(t, "text")
		doc := strconv.QuoteToASCII(want)
		if rapid.Bool().Draw(t, "as json") {
			doc = quote(want)
		}
		v, err := jsonscan.Parse(doc)
		if err != nil {
			t.Skip("Go quoting is not JSON for every rune")
		}
		require.Equal(t, want, v.Text())
	})
}

// quote writes a JSON string with every rune as it is, or as a \u escape where it
// must be.
func quote(s string) string {
	out := []byte{'"'}
	for _, r := range s {
		if r < ' ' || r == '"' || r == '\\' {
			out = fmt.Appendf(out, `\u%04x`, r)
		} else {
			out = append(out, string(r)...)
		}
	}
	return string(append(out, '"'))
}

func Example() {
	doc := `{"id":7,"tags":["a","b"],"note":null}`
	m := jsonscan.ReadObject(doc)
	for m.Next() {
		fmt.Println(m.Key(), m.Value().Kind(), m.Value().Raw())
	}
	fmt.Println(m.Err())
	// Output:
	// id number 7
	// tags array ["a","b"]
	// note null null
	// <nil>
}
