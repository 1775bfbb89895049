package payload_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/penstock-io/penstock/integrations/dingtalk/internal/payload"
	"github.com/penstock-io/penstock/message"
)

var update = flag.Bool("update", false, "write the golden files anew")

var now = time.Date(2026, 7, 25, 17, 20, 0, 0, time.UTC)

// golden is all that is read from one frame.
type golden struct {
	Frame   payload.Frame    `json:"frame"`
	Defect  string           `json:"defect,omitempty"`
	Message *message.Inbound `json:"message"`
	Reply   payload.Reply    `json:"reply"`
}

func TestFramesAgainstGoldenFiles(t *testing.T) {
	frames, err := filepath.Glob("testdata/frames/*.json")
	require.NoError(t, err)
	require.Len(t, frames, 46)
	for _, path := range frames {
		t.Run(filepath.Base(path), func(t *testing.T) {
			raw, err := os.ReadFile(path)
			require.NoError(t, err)
			f, err := payload.DecodeFrame(raw)
			require.NoError(t, err)
			m, defect := payload.Inbound(&f, "main", now)
			require.Equal(t, f.Data, string(m.Raw), "the payload is not kept byte for byte")
			got := golden{f, defect, m, payload.ReplyAddress(m)}
			// They are known to be the same, and once is enough to read.
			got.Frame.Data, m.Raw = "", message.Raw(f.Data)
			compare(t, filepath.Join("testdata/golden", filepath.Base(path)), got)
		})
	}
}

func compare(t *testing.T, path string, got any) {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", " ")
	require.NoError(t, enc.Encode(got))
	if *update {
		require.NoError(t, os.WriteFile(path, out.Bytes(), 0o600))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), out.String())
}

// kase is a recorded fault: what came in, and what is to come out.
type kase struct {
	Frames     []string
	Store      string
	ReceivedMs int64 `json:"received_ms"`
	Message    map[string]any
	Expand     struct {
		Token, Open, Close, Repeat string
		Depth, Count               int
	}
}

func loadCase(t testing.TB, path string) kase {
	raw, err := os.ReadFile(path)
	require.NoError(t, err)
	var k kase
	require.NoError(t, json.Unmarshal(raw, &k))
	k.expand(k.Expand.Depth)
	return k
}

func (k *kase) expand(depth int) {
	if k.Expand.Token == "" {
		return
	}
	long := strings.Repeat(k.Expand.Repeat, k.Expand.Count)
	deep := strings.Repeat(k.Expand.Open, depth) + strings.Repeat(k.Expand.Close, depth)
	for i, frame := range k.Frames {
		k.Frames[i] = strings.ReplaceAll(frame, k.Expand.Token, long+deep)
	}
}

func TestCases(t *testing.T) {
	cases, err := filepath.Glob("testdata/cases/*.json")
	require.NoError(t, err)
	require.Len(t, cases, 46)
	for _, path := range cases {
		k := loadCase(t, path)
		if k.Message == nil {
			continue
		}
		t.Run(filepath.Base(path), func(t *testing.T) {
			require.Len(t, k.Frames, 1)
			m, defect := decode(t, k.Frames[0], time.UnixMilli(k.ReceivedMs))
			require.Empty(t, defect)
			require.Equal(t, message.KindMessage, m.Kind)
			for field, want := range k.Message {
				require.EqualValues(t, want, fieldOf(t, m, field), field)
			}
		})
	}
}

func decode(t testing.TB, frame string, at time.Time) (*message.Inbound, string) {
	f, err := payload.DecodeFrame([]byte(frame))
	require.NoError(t, err)
	return payload.Inbound(&f, "main", at)
}

// fieldOf gives a field in the words of the cases.
func fieldOf(t *testing.T, m *message.Inbound, field string) any {
	switch field {
	case "chat":
		return string(m.Conversation.Type)
	case "sender":
		if m.Sender.StaffID != "" {
			return string(m.Sender.StaffID)
		}
		return string(m.Sender.ID)
	case "sender_staff_id":
		if m.Sender.StaffID == "" {
			return nil
		}
		return string(m.Sender.StaffID)
	case "quote":
		quote := asMap(t, m.Quote)
		delete(quote, "sender")
		if m.Quote.Type == message.TypeRich || m.Quote.Type == message.TypeCard {
			delete(quote, "msg_id") // the case does not look at it
		}
		return quote
	case "media":
		return mediaOf(t, m)
	case "text_len_runes":
		return len([]rune(m.Text))
	case "age_ms":
		return m.Age(m.ReceivedAt).Milliseconds()
	case "raw_kept":
		return strings.Contains(string(m.Raw), `"content":["a",1,{"b":null}]`)
	case "conversation_key_is_injective":
		return strings.Contains(string(m.Raw), `"conversationId":"`+string(m.Conversation.ID)+`"`)
	default:
		return asMap(t, m)[field]
	}
}

func mediaOf(t *testing.T, m *message.Inbound) []any {
	list := []any{}
	for _, one := range m.Media {
		media := asMap(t, one)
		delete(media, "duration_ns")
		if strings.Contains(one.Name, "..") {
			require.Equal(t, "../../etc/../tmp/a\x00b.txt", one.Name, "the name is data")
			delete(media, "name")
		}
		list = append(list, media)
	}
	return list
}

func asMap(t *testing.T, v any) map[string]any {
	raw, err := json.Marshal(v)
	require.NoError(t, err)
	var fields map[string]any
	require.NoError(t, json.Unmarshal(raw, &fields))
	return fields
}

func TestCasesWithoutAMessage(t *testing.T) {
	for name, want := range map[string]string{
		"034-dt-conversation-id-missing.json": payload.DefectNoConversation,
		"047-frame-data-empty-string.json":    payload.DefectEmpty,
		"049-frame-data-not-json.json":        payload.DefectNotJSON,
	} {
		k := loadCase(t, "testdata/cases/"+name)
		require.Equal(t, "dead-letter", k.Store)
		m, defect := decode(t, k.Frames[0], now)
		require.Equal(t, want, defect, name)
		require.Equal(t, message.KindMessage, m.Kind)
		require.Equal(t, message.FrameID("frame-example-0001"), m.FrameID)
		require.NotEmpty(t, m.ID)
	}
}

func TestDeepQuoteIsADefectPastTheLimit(t *testing.T) {
	raw, err := os.ReadFile("testdata/cases/022-dt-quote-nested-in-quote.json")
	require.NoError(t, err)
	var k kase
	require.NoError(t, json.Unmarshal(raw, &k))
	k.expand(6000)
	m, defect := decode(t, k.Frames[0], now)
	require.Equal(t, payload.DefectTooDeep, defect)
	require.Equal(t, message.ID("msgExample000000000022=="), m.ID, "what came before is read")
}

func TestRedeliveryHasTheSameID(t *testing.T) {
	for _, name := range []string{
		"040-dt-redelivery-while-first-in-flight.json", "041-dt-redelivery-after-restart.json",
	} {
		k := loadCase(t, "testdata/cases/"+name)
		first, _ := decode(t, k.Frames[0], now)
		second, _ := decode(t, k.Frames[1], now)
		require.Equal(t, first.ID, second.ID)
		require.NotEqual(t, first.FrameID, second.FrameID)
	}
	for _, name := range []string{"043-dt-same-text-twice.json", "044-dt-msgid-missing.json"} {
		k := loadCase(t, "testdata/cases/"+name)
		first, _ := decode(t, k.Frames[0], now)
		second, _ := decode(t, k.Frames[1], now)
		require.NotEqual(t, first.ID, second.ID)
		require.NotEmpty(t, second.ID)
	}
}

func TestNotAFrame(t *testing.T) {
	k := loadCase(t, "testdata/cases/050-frame-not-json.json")
	other := []string{"null", "[]", `"x"`, "{}x", `{"type":"EVENT"`, `{"data":"\x"}`}
	for _, text := range append(other, k.Frames[:2]...) {
		f, err := payload.DecodeFrame([]byte(text))
		require.ErrorIs(t, err, payload.ErrNotFrame, text)
		require.Zero(t, f)
	}
	m, defect := decode(t, k.Frames[2], now)
	require.Empty(t, defect)
	require.Equal(t, message.ID("msgExample000000000050=="), m.ID)
}
