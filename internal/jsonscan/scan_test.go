package jsonscan_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/penstock-io/penstock/internal/jsonscan"
)

// documents are seeds and table rows: what is well formed and what is not, told
// by encoding/json.
var documents = []string{
	``, ` `, `{}`, `[]`, ` { } `, "\t[\r\n]", `{"a":1}`, `{"a":1,"a":2}`, `{"a":1,}`, `{,}`, `{"a"}`,
	`{"a":}`, `{"a" : [ 1 , "x" , null ] }`, `{a:1}`, `[1,]`, `[,1]`, `[1 2]`, `[[[[]]]]`,
	`[{"a":[{}]}]`,
	`[}`, `{]`, `[`, `{`, `]`, `}`, `{"a":1}x`, `{"a":1}{}`, `null`, `true`, `false`, `nul`,
	`truex`, `tru`,
	`0`, `-0`, `01`, `-`, `1.`, `.5`, `1.5`, `1e`, `1e5`, `1E+5`, `1e-`, `-1.25e-3`, `+1`, `0x1`,
	`1_0`, `Infinity`,
	`"`, `""`, `"a`, `"\"`, `"\""`, `"\\"`, `"\x"`, `"\u12"`, `"\u12G4"`, `"\u4f60\u597d"`,
	"\"\x01\"", "\"\n\"",
	`"\ud83d\ude00"`, `"\ud83d"`, `"\ude00"`, `"\ud83dx"`, `"\ud83d\u0041"`,
	`"\ud83d\ud83d\ude00"`, "\"\x7f\"",
	"\"\xff\xfe\"", "\"\xe4\xbd\"", "\"\xed\xa0\xbd\"", "\"12345678\xc3\"", `"数据 with \n breaks"`,
	"\"1234567\"",
	`"12345678"`, `"123456789 \t 123456789"`, "\ufeff{}", "{\"a\":\x00}", `{"\u0061":1}`,
	`{"":0}`, "\v{}", `{"a"1}`,
	`["` + strings.Repeat("数", 30) + `"]`, `"` + strings.Repeat("a", 64) + "\x1f\"",
}

func FuzzParseLikeTheStandardLibrary(f *testing.F) {
	for _, doc := range documents {
		f.Add(doc)
	}
	f.Fuzz(func(t *testing.T, doc string) {
		v, err := jsonscan.Parse(doc)
		require.Equal(t, json.Valid([]byte(doc)), err == nil, "%q: %v", doc, err)
		if err != nil {
			require.Zero(t, v)
			return
		}
		require.Equal(t, strings.Trim(doc, " \t\r\n"), v.Raw())
		var want any
		dec := json.NewDecoder(strings.NewReader(doc))
		dec.UseNumber()
		require.NoError(t, dec.Decode(&want))
		same(t, want, v)
	})
}

// same checks a value, and all within it, against what encoding/json made of it.
func same(t *testing.T, want any, v jsonscan.Value) {
	switch want := want.(type) {
	case nil:
		require.Equal(t, jsonscan.Null, v.Kind())
		require.False(t, v.Exists())
	case bool:
		require.Equal(t, jsonscan.Bool, v.Kind())
		require.Equal(t, want, v.Truth())
	case json.Number:
		require.Equal(t, jsonscan.Number, v.Kind())
		require.Equal(t, want.String(), v.Text())
		f, err := want.Float64()
		got, ok := v.Float()
		require.Equal(t, err == nil, ok)
		require.True(t, !ok || f == got)
	case string:
		require.Equal(t, jsonscan.String, v.Kind())
		require.Equal(t, want, v.Text())
		require.Equal(t, "+"+want, string(v.AppendText([]byte("+"))))
	case []any:
		sameElements(t, want, v)
	case map[string]any:
		sameMembers(t, want, v)
	}
}

func sameElements(t *testing.T, want []any, v jsonscan.Value) {
	n := 0
	e := v.Elements()
	for ; e.Next(); n++ {
		require.Less(t, n, len(want))
		same(t, want[n], e.Value())
	}
	require.NoError(t, e.Err())
	require.Len(t, want, n)
}

func sameMembers(t *testing.T, want map[string]any, v jsonscan.Value) {
	last := map[string]jsonscan.Value{}
	m := v.Members()
	for m.Next() {
		last[m.Key()] = m.Value()
	}
	require.NoError(t, m.Err())
	require.Len(t, last, len(want))
	for key, w := range want {
		same(t, w, last[key])
	}
}

func FuzzWalksAgreeWithParse(f *testing.F) {
	for _, doc := range documents {
		f.Add(doc)
	}
	f.Fuzz(func(t *testing.T, doc string) {
		v, err := jsonscan.Parse(doc)
		m := jsonscan.ReadObject(doc)
		for m.Next() {
			require.Contains(t, doc, m.Value().Raw())
		}
		e := jsonscan.ReadArray(doc)
		for e.Next() {
			require.Contains(t, doc, e.Value().Raw())
		}
		require.False(t, m.Next() || e.Next(), "a walk that has ended goes on")
		if err != nil {
			require.ErrorIs(t, m.Err(), err)
			require.ErrorIs(t, e.Err(), err)
			return
		}
		checkEnd(t, m.Err(), v.Kind() == jsonscan.Object, jsonscan.ErrNotObject)
		checkEnd(t, e.Err(), v.Kind() == jsonscan.Array, jsonscan.ErrNotArray)
	})
}

// FuzzAppendText checks that reading a string while copying it is no different
// from reading it first.
func FuzzAppendText(f *testing.F) {
	for _, doc := range documents {
		f.Add(doc, 3)
	}
	f.Fuzz(func(t *testing.T, value string, free int) {
		doc := `{"before":1,"data":` + value + `,"after":"x"}`
		first, second := jsonscan.ReadObject(doc), jsonscan.ReadObject(doc)
		skipped := jsonscan.ReadObject(doc)
		for first.Next() {
			require.True(t, second.Next() && skipped.Next())
			dst := append(make([]byte, 0, min(max(free, 1), 64)), '+')
			want := "+" + first.Value().Text()
			got := string(second.AppendText(dst))
			if first.Err() == nil {
				require.Equal(t, want, got)
			}
			require.Equal(t, first.Err(), second.Err())
			require.Equal(t, first.Value().Raw(), second.Value().Raw())
			require.Equal(t, first.Value().Text(), second.Value().Text())
		}
		require.False(t, second.Next() || skipped.Next())
		require.Equal(t, first.Err(), second.Err())
		require.Equal(t, first.Err(), skipped.Err(), "a value nobody asks for is checked all the same")
		require.Equal(t, json.Valid([]byte(doc)), first.Err() == nil)
	})
}

func checkEnd(t *testing.T, err error, right bool, wrongKind error) {
	if right {
		require.NoError(t, err)
	} else {
		require.ErrorIs(t, err, wrongKind)
	}
}

func TestDepth(t *testing.T) {
	nest := func(n int) string {
		open, shut := strings.Repeat(`{"a":[`, n/2), strings.Repeat(`]}`, n/2)
		if n%2 == 1 {
			return "[" + open + shut + "]"
		}
		return open + shut
	}
	for _, n := range []int{1, 2, 63, 64, 65, 127, 128, 129, 6000, jsonscan.MaxDepth} {
		doc := nest(n)
		require.True(t, json.Valid([]byte(doc)), n)
		_, err := jsonscan.Parse(doc)
		require.NoError(t, err, n)
	}
	for _, n := range []int{jsonscan.MaxDepth + 1, jsonscan.MaxDepth + 2, 12_000, 1_000_000} {
		doc := nest(n)
		_, err := jsonscan.Parse(doc)
		require.ErrorIs(t, err, jsonscan.ErrTooDeep, n)
		m := jsonscan.ReadObject(`{"a":` + doc + `}`)
		require.True(t, m.Next())
		require.Zero(t, m.Value())
		require.False(t, m.Next())
		require.ErrorIs(t, m.Err(), jsonscan.ErrTooDeep, n)
		e := jsonscan.ReadArray("[" + doc + "]")
		require.False(t, e.Next())
		require.ErrorIs(t, e.Err(), jsonscan.ErrTooDeep, n)
	}
	wrong := strings.Repeat("[", 500) + strings.Repeat("]", 400) + strings.Repeat("}", 100)
	_, err := jsonscan.Parse(wrong)
	require.ErrorIs(t, err, jsonscan.ErrSyntax, "a wrong bracket far out")
}

func TestStringsShareTheDocument(t *testing.T) {
	doc := `{"key":"plain text","wide":"数据","n":12,"deep":{"list":[1,{"x":"y"}]}}`
	allocs := testing.AllocsPerRun(100, func() {
		for m := jsonscan.ReadObject(doc); m.Next(); {
			sink = m.Key()
			sinks = append(sinks[:0], m.Value().Text())
		}
	})
	require.Zero(t, allocs)
	require.Equal(t, "deep", sink)
}

var (
	sink  string
	sinks = make([]string, 0, 1)
)

func TestView(t *testing.T) {
	require.Empty(t, jsonscan.View(nil))
	b := []byte("abc")
	s := jsonscan.View(b)
	require.Equal(t, "abc", s)
	b[0] = 'x'
	require.Equal(t, "xbc", s, "a view is no copy")
}
