package dingtalk

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

// FuzzReply compares our encoder with the standard library's reading of it.
func FuzzReply(f *testing.F) {
	for _, s := range []string{
		"", "213d841d_972_1898bb26334_70a7", `{"opaque":"op/aque+0056=="}`, "\x00\x1f\"\\/\x7f",
		"\xff\xfe", "é\u2028😀\xf0\x9f", "a\xc3",
	} {
		f.Add(200, s, s)
	}
	f.Fuzz(func(t *testing.T, code int, id, data string) {
		b := appendReply(nil, id, reply{code, "OK", data})
		require.True(t, utf8.Valid(b))
		var got struct {
			Code    int
			Headers map[string]string
			Message string
			Data    string
		}
		require.NoError(t, json.Unmarshal(b, &got))
		require.Equal(t, code, got.Code)
		require.Equal(t, map[string]string{
			"messageId": valid(id), "contentType": "application/json",
		}, got.Headers)
		require.Equal(t, valid(data), got.Data)
	})
}

// valid replaces each bad byte, as the encoder does.
func valid(s string) string {
	var b strings.Builder
	for _, r := range s {
		b.WriteRune(r)
	}
	return b.String()
}

func TestReplyNeedsNoMemory(t *testing.T) {
	var room [ackRoom]byte
	require.Zero(t, testing.AllocsPerRun(100, func() {
		appendReply(room[:0], "213d841d_972_1898bb26334_70a7", reply{200, "OK", dataRobot})
	}))
}

func TestExcerptHidesBeforeItCuts(t *testing.T) {
	hide := secrets{}.with("half-a-secret")
	text := strings.Repeat("x", excerptLen-4) + "half-a-secret"
	require.NotContains(t, hide.excerpt([]byte(text)), "half")
}
