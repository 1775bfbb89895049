package jsonscan_test

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/penstock-io/penstock/internal/jsonscan"
)

func FuzzAppendString(f *testing.F) {
	for _, s := range []string{
		"", "plain", `{"opaque":"op/aque+0056=="}`, "\x00\x1f\"\\/\x7f", "\xff\xfe",
		"é\u2028😀\xf0\x9f", "a\xc3", "1234567\"", "12345678\\", "1234567\x81", "数据<&>",
		strings.Repeat("x", 31) + "\n",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		b := jsonscan.AppendString([]byte("before"), s)
		require.True(t, utf8.Valid(b))
		var got string
		require.NoError(t, json.Unmarshal(b[len("before"):], &got))
		require.Equal(t, string([]rune(s)), got, "the conversion replaces bad bytes one by one")
	})
}

func TestNothingIsEscapedNeedlessly(t *testing.T) {
	s := "<a&b>数\u2028é🇩🇪/'\x7f"
	require.Equal(t, `"`+s+`"`, string(jsonscan.AppendString(nil, s)))
}

func BenchmarkAppendString(b *testing.B) {
	for name, s := range map[string]string{
		"document": strings.Repeat(`{"conversationId":"cidExample","text":{"content":"hello"}}`, 25),
		"plain":    strings.Repeat("plain text ", 130),
		"chinese":  strings.Repeat("数据", 240),
	} {
		b.Run(name, func(b *testing.B) {
			buf := make([]byte, 0, 4096)
			b.SetBytes(int64(len(s)))
			for b.Loop() {
				buf = jsonscan.AppendString(buf[:0], s)
			}
		})
	}
}
