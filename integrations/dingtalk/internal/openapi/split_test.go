package openapi

import (
	"fmt"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/penstock-io/penstock/message"
)

func outbound(format message.Format, text string) message.Outbound {
	return message.Outbound{ID: "r1", Reply: message.Reply{Format: format, Text: text}}
}

// replies draws long replies of awkward lines and fences.
func replies() *rapid.Generator[message.Outbound] {
	line := rapid.OneOf(
		rapid.SampledFrom([]string{
			"", "  ", "```", "```go", "~~~~", "    ```", "- a list item", "`````` x y", "\r",
			"```\t\"x\"",
			strings.Repeat("数据。", 150), strings.Repeat("<a&b>数", 90), strings.Repeat("one word ", 100),
			strings.Repeat("👩‍👩‍👧", 60), strings.Repeat("🇩🇪", 70), strings.Repeat("\x01", 300),
			strings.Repeat("\"\\", 400), strings.Repeat(" ", 3000), "```" + strings.Repeat(" ", 200) + "x",
		}),
		rapid.StringN(0, 80, 200),
		rapid.Map(rapid.SliceOfN(rapid.Byte(), 0, 60), func(b []byte) string { return string(b) }),
	)
	return rapid.Custom(func(t *rapid.T) message.Outbound {
		o := outbound(
			rapid.SampledFrom([]message.Format{"", message.FormatText, message.FormatMarkdown}).Draw(t, "format"),
			strings.Join(rapid.SliceOfN(line, 1, 60).Draw(t, "lines"), "\n"))
		o.Title = rapid.SampledFrom([]string{"", "t", strings.Repeat("题\"", 200)}).Draw(t, "title")
		if rapid.Bool().Draw(t, "mentions") {
			o.Mentions, o.MentionAll = []message.UserID{"staff1", "staff2"}, true
		}
		return o
	})
}

func TestNoPartIsOverTheLimitAndNoneIsEmpty(t *testing.T) {
	s := newSender(t, bodyMin)
	rapid.Check(t, func(t *rapid.T) {
		o := replies().Draw(t, "reply")
		parts := s.Split(o)
		for i, p := range parts {
			_, param := msgParam(&p)
			require.LessOrEqual(t, len(param), bodyMin)
			require.LessOrEqual(t, len(s.webhookBody(&p)), bodyMin)
			require.Equal(t, []int{i + 1, len(parts)}, []int{p.Part, p.Parts})
			require.Equal(t, message.ID("r1"), p.Group)
			if strings.TrimSpace(o.Text) != "" {
				require.NotEmpty(t, strings.TrimSpace(p.Text))
			}
			require.Equal(t, i == 0 && o.MentionAll, p.MentionAll)
		}
	})
}

func TestPartsHoldTheWholeText(t *testing.T) {
	s := newSender(t, bodyMin)
	rapid.Check(t, func(t *rapid.T) {
		o := replies().Draw(t, "reply")
		rest := o.Text
		for i, p := range s.pieces(&o) {
			at := strings.Index(rest, p.body)
			require.GreaterOrEqual(t, at, 0, "piece %d is not in the rest", i)
			require.Empty(t, strings.TrimSpace(rest[:at]), "lost before piece %d", i)
			rest = rest[at+len(p.body):]
		}
		require.Empty(t, strings.TrimSpace(rest), "lost at the end")
	})
}

func TestEachPartShowsItsFencesClosed(t *testing.T) {
	s := newSender(t, bodyMin)
	rapid.Check(t, func(t *rapid.T) {
		o := replies().Draw(t, "reply")
		o.Format = message.FormatMarkdown
		pieces := s.pieces(&o)
		for i, p := range pieces {
			if i < len(pieces)-1 {
				require.Empty(t, openFence(p.before+p.body+p.after), "piece %d leaves a fence open", i)
			}
			if p.before != "" {
				require.NotEmpty(t, pieces[i-1].after, "piece %d opens a fence that was not closed", i)
			}
		}
	})
}

// openFence is the marker of the fence that text leaves open, if any.
func openFence(text string) string {
	open := ""
	for line := range strings.Lines(text) {
		marker, info := fenceLine(line)
		switch {
		case open == "":
			open = marker
		case info == "" && strings.HasPrefix(marker, open):
			open = ""
		}
	}
	return open
}

func TestShortReplyIsUnchanged(t *testing.T) {
	o := outbound(message.FormatMarkdown, "  hello\n\n")
	got := newSender(t, 0).Split(o)
	o.Part, o.Parts, o.Group = 1, 1, "r1"
	require.Equal(t, []message.Outbound{o}, got)
}

func TestCardIsNeverSplit(t *testing.T) {
	o := outbound(message.FormatCard, strings.Repeat("x", 50_000))
	require.Len(t, newSender(t, 0).Split(o), 1)
}

func TestBlankReplyIsOnePart(t *testing.T) {
	got := newSender(t, 0).Split(outbound("", strings.Repeat(" \n", 50_000)))
	require.Len(t, got, 1)
	require.Empty(t, got[0].Text)
}

func TestPartsHaveStableIDs(t *testing.T) {
	s := newSender(t, 0)
	o := outbound("", strings.Repeat("数", 12_000))
	o.Group = "g"
	parts := s.Split(o)
	require.Len(t, parts, 3)
	for i, p := range parts {
		require.Equal(t, message.ID(fmt.Sprintf("g-%d", i+1)), p.ID)
		require.Equal(t, message.ID("g"), p.Group)
	}
	require.Equal(t, parts, s.Split(o))
}

// TestEscapingCounts is for text that is within the limit as it stands and over
// it once it is encoded, or would be if the encoder escaped for HTML.
func TestEscapingCounts(t *testing.T) {
	s := newSender(t, 0)
	require.Len(t, s.Split(outbound("", strings.Repeat("<&>", 4_000))), 1)
	require.Len(t, s.Split(outbound("", strings.Repeat("\"", 10_000))), 2)
	parts := s.Split(outbound(message.FormatMarkdown, strings.Repeat("<a&b>数", 2_200)))
	require.Len(t, parts, 2)
	require.Greater(t, len(s.webhookBody(&parts[0])), DefaultMaxBody-16, "part not filled")
}

func TestBordersInOrderOfPreference(t *testing.T) {
	s := newSender(t, bodyMin)
	fill := func(n int) string { return strings.Repeat("x", n) }
	for _, c := range []struct {
		name, text string
		first      string
	}{
		{"paragraph", fill(600) + "\n\n" + fill(100) + "\n" + fill(500), fill(600)},
		{"line", fill(600) + "\n" + fill(100) + "\n" + fill(500), fill(600) + "\n" + fill(100)},
		{"sentence", fill(600) + ". " + fill(100) + " " + fill(900), fill(600) + "."},
		{"full stop of Chinese", fill(600) + "。" + fill(100) + " " + fill(900), fill(600) + "。"},
		{"space, not the dot of a number", fill(600) + "1.5 " + fill(900), fill(600) + "1.5"},
	} {
		t.Run(c.name, func(t *testing.T) {
			require.Equal(t, c.first, s.Split(outbound("", c.text))[0].Text)
		})
	}
}

func TestVisibleCharactersAreKeptWhole(t *testing.T) {
	for _, unit := range []string{"👩‍👩‍👧", "🇩🇪", "e\u0301", "👍🏽", "षि"} {
		for shift := range 4 {
			o := outbound("", strings.Repeat("x", shift)+strings.Repeat(unit, 600))
			for i, p := range newSender(t, bodyMin).Split(o) {
				body := strings.TrimLeft(p.Text, "x")
				require.Equal(t, strings.Repeat(unit, len(body)/len(unit)), body, "%q part %d", unit, i)
			}
		}
	}
}

func TestFenceThatFitsStaysWhole(t *testing.T) {
	fence := "```go\n" + strings.Repeat("code()\n", 60) + "```"
	parts := newSender(t, bodyMin).Split(outbound(message.FormatMarkdown,
		strings.Repeat("some words before it\n", 25)+fence+"\nafter"))
	require.Len(t, parts, 2)
	require.Equal(t, fence+"\nafter", parts[1].Text)
}

func TestFenceThatMustBeCutIsOpenedAgain(t *testing.T) {
	o := outbound(message.FormatMarkdown,
		"before\n  ~~~~python x=1\n"+strings.Repeat("print(\"数\")\n\n", 120)+"  ~~~~\nafter")
	parts := newSender(t, bodyMin).Split(o)
	require.Greater(t, len(parts), 2)
	for _, p := range parts[1 : len(parts)-1] {
		require.True(t, strings.HasPrefix(p.Text, "  ~~~~python x=1\n"), p.Text)
		require.True(t, strings.HasSuffix(p.Text, "print(\"数\")\n  ~~~~"), p.Text)
	}
	require.True(t, strings.HasSuffix(parts[len(parts)-1].Text, "\n  ~~~~\nafter"))
	for _, p := range parts {
		require.Equal(t, "before", p.Title)
	}
}

// TestNoPartIsAnEmptyFence has closing lines that are longer than the one a cut
// adds, so that the content can fit where the fence does not.
func TestNoPartIsAnEmptyFence(t *testing.T) {
	s := newSender(t, bodyMin)
	for n := bodyMin - 200; n < bodyMin; n++ {
		o := outbound(message.FormatMarkdown,
			"```\n"+strings.Repeat("x", n)+"\ny\n"+strings.Repeat("`", 60))
		for _, p := range s.Split(o) {
			require.NotEmpty(t, strings.Trim(p.Text, "`\n"), "with %d", n)
		}
	}
}

func TestFencesAreTextInPlainText(t *testing.T) {
	for _, p := range newSender(t, bodyMin).Split(outbound("",
		"```\n"+strings.Repeat("some line of it\n", 200)+"```")) {
		require.NotContains(t, strings.TrimSuffix(strings.TrimPrefix(p.Text, "```"), "```"), "```")
	}
}

func FuzzSplit(f *testing.F) {
	f.Add("```go\n"+strings.Repeat("x\n", 2000)+"```", true)
	f.Add(strings.Repeat("数据。", 900), false)
	f.Add(strings.Repeat("\xff\xf0\x9f", 900), true)
	s, err := New(Config{ClientID: "id", ClientSecret: "secret", MaxBody: bodyMin})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text string, markdown bool) {
		o := outbound("", text)
		if markdown {
			o.Format = message.FormatMarkdown
		}
		kept := 0
		for _, p := range s.Split(o) {
			if !s.fits(&p) {
				t.Fatalf("part %d of %d is over the limit", p.Part, p.Parts)
			}
			kept += visible(p.Text)
		}
		if kept < visible(text) {
			t.Fatalf("%d visible characters of %d are left", kept, visible(text))
		}
	})
}

func visible(s string) int {
	n := 0
	for len(s) > 0 {
		r, size := utf8.DecodeRuneInString(s)
		if !unicode.IsSpace(r) {
			n++
		}
		s = s[size:]
	}
	return n
}

func BenchmarkSplit(b *testing.B) {
	paragraph := strings.Repeat("A sentence with \"quotes\", 数字 and <tags>. ", 12) + "\n\n"
	fence := "```go\n" + strings.Repeat("fmt.Println(\"hello\", \"world\")\n", 30) + "```\n\n"
	for _, size := range []int{4 << 10, 64 << 10, 1 << 20} {
		b.Run(fmt.Sprintf("%dKiB", size>>10), func(b *testing.B) {
			s := newSender(b, 0)
			text := strings.Repeat(paragraph+fence, size/len(paragraph+fence)+1)[:size]
			o := outbound(message.FormatMarkdown, text)
			b.SetBytes(int64(size))
			b.ReportAllocs()
			for b.Loop() {
				s.Split(o)
			}
		})
	}
}
