package openapi

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/penstock-io/penstock/message"
)

// texts draws strings that are awkward to encode.
func texts() *rapid.Generator[string] {
	return rapid.OneOf(
		rapid.String(),
		rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) string { return string(b) }),
		rapid.StringOf(rapid.RuneFrom([]rune("<a&b>\"\\\n\r\t\x00\x1f数🇩🇪\u2028é "))),
	)
}

func TestStringReadsBackAndCostIsExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := texts().Draw(t, "s")
		enc := appendString(nil, s)
		var got string
		require.NoError(t, json.Unmarshal(enc, &got))
		require.Equal(t, string([]rune(s)), got) // the conversion replaces bad bytes one by one
		require.Equal(t, len(enc)-2, costOf(s))
	})
}

func TestNothingIsEscapedNeedlessly(t *testing.T) {
	s := "<a&b>数\u2028é🇩🇪/'"
	require.Equal(t, `"`+s+`"`, string(appendString(nil, s)))
}

func TestFitIsTheLongestPrefix(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := texts().Draw(t, "s")
		room := rapid.IntRange(0, 40).Draw(t, "room")
		n := fit(s, room)
		require.LessOrEqual(t, costOf(s[:n]), room)
		if n < len(s) {
			_, size := utf8.DecodeRuneInString(s[n:])
			require.Greater(t, costOf(s[:n+size]), room)
		}
	})
}

func TestWebhookBodies(t *testing.T) {
	s := newSender(t, 0)
	for _, c := range []struct {
		name string
		in   message.Reply
		want string
	}{
		{
			"text",
			message.Reply{Text: "a <b> & c"},
			`{"msgtype":"text","text":{"content":"a <b> & c"}}`,
		},
		{
			"text with mentions",
			message.Reply{Text: "done @staff1", Mentions: []message.UserID{"staff1", "staff2", "staff1"}},
			`{"msgtype":"text","text":{"content":"done @staff1 @staff2"},` +
				`"at":{"atUserIds":["staff1","staff2"],"isAtAll":false}}`,
		},
		{
			"mention of all",
			message.Reply{Text: "x", MentionAll: true},
			`{"msgtype":"text","text":{"content":"x"},"at":{"atUserIds":[],"isAtAll":true}}`,
		},
		{
			"odd ids are no mentions",
			message.Reply{Text: "x", Mentions: []message.UserID{"", "a b", `q"`}},
			`{"msgtype":"text","text":{"content":"x"}}`,
		},
		{
			"markdown",
			message.Reply{
				Format: message.FormatMarkdown, Text: "\n### **Result** of it\n- item",
				Mentions: []message.UserID{"staff1"},
			},
			`{"msgtype":"markdown","markdown":{"title":"Result** of it",` +
				`"text":"\n### **Result** of it\n- item\n\n@staff1"},` +
				`"at":{"atUserIds":["staff1"],"isAtAll":false}}`,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			require.Equal(t, c.want, string(s.webhookBody(&message.Outbound{Reply: c.in})))
		})
	}
}

func TestTitle(t *testing.T) {
	for _, c := range []struct{ title, text, want string }{
		{"own", "text", "own"},
		{" two\nlines ", "text", "two lines"},
		{"", "## Head ##\nbody", "Head"},
		{"", "```go\ncode\n```", "go"},
		{"", "```\n---\n", plainTitle},
		{"", "", plainTitle},
		{"", strings.Repeat("数", 100), strings.Repeat("数", titleRunes)},
	} {
		o := &message.Outbound{Reply: message.Reply{Title: c.title, Text: c.text}}
		require.Equal(t, c.want, titleOf(o))
	}
}

func TestMentionsLeaveRoom(t *testing.T) {
	s := newSender(t, bodyMin)
	var many []message.UserID
	for i := range 200 {
		many = append(many, message.UserID(fmt.Sprintf("staff%020d", i)))
	}
	o := message.Outbound{Reply: message.Reply{Text: "x", Mentions: many}}
	require.NotEmpty(t, s.mentions(&o))
	require.Less(t, len(s.webhookBody(&o)), bodyMin/2)
	require.Len(t, newSender(t, 0).mentions(&o), mentionsMax)
}

func BenchmarkWebhookBody(b *testing.B) {
	s := newSender(b, 0)
	o := message.Outbound{Reply: message.Reply{
		Format: message.FormatMarkdown,
		Text:   strings.Repeat("A line with \"quotes\", 数字 & <tags>.\n", 250),
	}}
	b.SetBytes(int64(len(o.Text)))
	b.ReportAllocs()
	for b.Loop() {
		s.webhookBody(&o)
	}
}

// newSender makes a Sender that is not going to send.
func newSender(t testing.TB, maxBody int) *Sender {
	s, err := New(Config{ClientID: "id", ClientSecret: "secret", MaxBody: maxBody})
	require.NoError(t, err)
	return s
}
