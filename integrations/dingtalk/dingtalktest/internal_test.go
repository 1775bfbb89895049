package dingtalktest

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/penstock-io/penstock/message"
)

func TestHistogramStepsHoldTheirValues(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		v := rapid.Uint64Range(0, 1<<62).Draw(t, "v")
		i := step(v)
		require.GreaterOrEqual(t, top(i), v)
		if i > 0 {
			require.Less(t, top(i-1), v)
		}
		require.LessOrEqual(t, float64(top(i)-v), float64(v)/(1<<subBits)+1)
	})
}

func TestHistogramQuantiles(t *testing.T) {
	t.Parallel()
	var h histogram
	require.Zero(t, h.quantile(0.5))
	for i := range 1000 {
		h.add(time.Duration(i+1) * time.Millisecond)
	}
	h.add(-time.Second)
	require.InEpsilon(t, 500*time.Millisecond, h.quantile(0.5), 0.04)
	require.InEpsilon(t, 990*time.Millisecond, h.quantile(0.99), 0.04)
	require.Equal(t, time.Second, h.quantile(1))
}

func TestRingKeepsTheLast(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.IntRange(1, 8).Draw(t, "limit")
		all := rapid.SliceOf(rapid.Int()).Draw(t, "all")
		r := ring[int]{limit: limit}
		for i, v := range all {
			out, full := r.put(v)
			require.Equal(t, i >= limit, full)
			if full {
				require.Equal(t, all[i-limit], out)
			}
		}
		require.Equal(t, len(all), r.total())
		require.Equal(t, append([]int{}, all[max(0, len(all)-limit):]...), r.list())
	})
}

func TestTemplateIsFilledWithText(t *testing.T) {
	t.Parallel()
	gw, err := New(Config{})
	require.NoError(t, err)
	const text = "say \"hi\"\n看 & <b> 👍\\ "
	for size := 1200; size < 1250; size++ {
		tpl, err := newTemplate(gw.App(""), 7, BlastConfig{Size: size, Text: text})
		require.NoError(t, err)
		require.LessOrEqual(t, len(tpl.bytes), size)
		require.Greater(t, len(tpl.bytes), size-6, "the widest character has five bytes")
		var f struct{ Data string }
		require.NoError(t, json.Unmarshal(tpl.bytes, &f))
		var data struct{ Text struct{ Content string } }
		require.NoError(t, json.Unmarshal([]byte(f.Data), &data))
		_, filler, _ := strings.Cut(data.Text.Content, " ")
		require.True(t, strings.HasPrefix(strings.Repeat(text, 50), filler), filler)
	}
}

// TestTemplateMatchesFrames compares the blast's patched bytes with a frame that
// is made the usual way.
func TestTemplateMatchesFrames(t *testing.T) {
	t.Parallel()
	gw, err := New(Config{})
	require.NoError(t, err)
	tpl, err := newTemplate(gw.App(""), 7, BlastConfig{Size: 3000}.withDefaults())
	require.NoError(t, err)
	require.Len(t, tpl.bytes, 3000)
	now := time.UnixMilli(1785000000123)
	b := tpl.render([]byte("before"), patch{seq: 42, slot: 5, try: 1, conversation: 3, at: now})
	var f struct {
		Headers map[string]string
		Data    string
	}
	require.NoError(t, json.Unmarshal(b[len("before"):], &f))
	require.Equal(t, "b0007_0000000042_000005_1", f.Headers["messageId"])
	require.Equal(t, "1785000000123", f.Headers["time"])
	var data struct {
		ConversationID, MsgID string
		SessionWebhook        string
		CreateAt              int64
		Text                  struct{ Content string }
	}
	require.NoError(t, json.Unmarshal([]byte(f.Data), &data))
	require.Equal(t, "cidBlast0007_000003", data.ConversationID)
	require.Equal(t, "msgBlast0007_0000000042_A==", data.MsgID)
	require.Equal(t, now.UnixMilli(), data.CreateAt)
	require.Equal(t, "#0000000042 x", data.Text.Content[:13])
	require.Contains(t, data.SessionWebhook, "cidBlast0007_000003")
	require.NotContains(t, string(b), markSeq)
	require.NotContains(t, string(b), "_"+markConv)
}

func FuzzReply(f *testing.F) {
	raw, err := os.ReadFile("testdata/replies.jsonl")
	require.NoError(f, err)
	seeds := bytes.Split(bytes.TrimSpace(raw), []byte("\n"))
	require.NotEmpty(f, seeds)
	for _, seed := range seeds {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		id, code := scanID(raw), scanCode(raw)
		r, ok := decodeReply(raw)
		r.refused()
		lower := bytes.ToLower(raw) // the decoder does not mind the case of a key
		if !ok || !utf8.Valid(raw) || bytes.Contains(raw, []byte(`\`)) ||
			bytes.Count(raw, keyID) > 1 || bytes.Count(lower, keyCode) > 1 {
			return // escapes and doubles are for the decoder alone
		}
		if len(id) > 0 && r.id != "" {
			require.Equal(t, string(r.id), string(id))
		}
		if code == 200 && r.code != 0 {
			require.Equal(t, r.code, code)
		}
	})
}

func TestSeedsAreReadBothWays(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("testdata/replies.jsonl")
	require.NoError(t, err)
	for seed := range bytes.SplitSeq(bytes.TrimSpace(raw), []byte("\n")) {
		r, ok := decodeReply(seed)
		require.True(t, ok, string(seed))
		require.NotEmpty(t, r.id)
		require.Equal(t, string(r.id), string(scanID(seed)))
		require.Equal(t, r.code, scanCode(seed))
	}
	for _, odd := range []string{"", "{", `"messageId"`, `"messageId":`, `"messageId":"x`, `"messageId":1`} {
		require.Empty(t, scanID([]byte(odd)))
	}
}

func FuzzSession(f *testing.F) {
	gw, err := New(Config{})
	require.NoError(f, err)
	a := gw.App("")
	f.Add("cid.1/+=&%", int64(1785000000123))
	f.Add("", int64(-1))
	f.Fuzz(func(t *testing.T, conversation string, ms int64) {
		s := a.session(message.ConversationID(conversation), time.UnixMilli(ms))
		got, c := gw.findSession(s)
		if time.UnixMilli(ms).Before(time.Now()) {
			require.Nil(t, got)
			return
		}
		require.Same(t, a, got)
		require.EqualValues(t, conversation, c)
		_, _ = gw.findSession(conversation) // must not panic
	})
}
