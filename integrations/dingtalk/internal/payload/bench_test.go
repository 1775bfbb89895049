package payload_test

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/penstock-io/penstock/integrations/dingtalk/internal/payload"
	"github.com/penstock-io/penstock/message"
)

var benchFrames = []string{
	"bot-text-single", "bot-text-group", "bot-reply-to-text", "bot-richtext", "event-user-add-org",
}

func readFrame(t testing.TB, name string) []byte {
	raw, err := os.ReadFile("testdata/frames/" + name + ".json")
	require.NoError(t, err)
	// On the wire there is no space between the members.
	var compact json.RawMessage
	require.NoError(t, json.Unmarshal(raw, &compact))
	compact, err = json.Marshal(compact)
	require.NoError(t, err)
	return compact
}

var result *message.Inbound

func BenchmarkFrameToMessage(b *testing.B) {
	for _, name := range benchFrames {
		b.Run(name, func(b *testing.B) {
			raw := readFrame(b, name)
			b.SetBytes(int64(len(raw)))
			b.ReportAllocs()
			for b.Loop() {
				f, _ := payload.DecodeFrame(raw)
				result, _ = payload.Inbound(&f, "main", now)
			}
		})
	}
}

func BenchmarkDecodeFrame(b *testing.B) {
	raw := readFrame(b, "bot-text-single")
	b.SetBytes(int64(len(raw)))
	b.ReportAllocs()
	for b.Loop() {
		_, _ = payload.DecodeFrame(raw)
	}
}

// peerFrame and peerRobot are what a plain use of encoding/json needs for the same
// fields, strict about their types.
type peerFrame struct {
	Type    string
	Headers map[string]string
	Data    string
}

type peerRobot struct {
	ConversationID, ConversationType, ConversationTitle, MsgID, SenderID, SenderStaffID string
	SenderUnionID, SenderNick, RobotCode, ChatbotUserID, MsgType, OriginalMsgID         string

	CreateAt   int64
	IsInAtList bool
	AtUsers    []struct{ DingtalkID, StaffID string }
	Text       struct {
		Content    string
		RepliedMsg *struct {
			MsgType, MsgID, SenderID string
			Content                  json.RawMessage
		}
	}
	Content json.RawMessage
}

// BenchmarkPeerEncodingJSON is the peer of BenchmarkFrameToMessage. It leaves the
// bodies of rich texts and quotes undecoded, so it does less.
func BenchmarkPeerEncodingJSON(b *testing.B) {
	for _, name := range benchFrames {
		b.Run(name, func(b *testing.B) {
			raw := readFrame(b, name)
			b.SetBytes(int64(len(raw)))
			b.ReportAllocs()
			for b.Loop() {
				var f peerFrame
				var r peerRobot
				if json.Unmarshal(raw, &f) != nil || json.Unmarshal([]byte(f.Data), &r) != nil {
					b.Fatal("the peer cannot read the frame")
				}
			}
		})
	}
}

func TestAllocationsOfATextMessage(t *testing.T) {
	raw := readFrame(t, "bot-text-single")
	allocs := testing.AllocsPerRun(200, func() {
		f, _ := payload.DecodeFrame(raw)
		result, _ = payload.Inbound(&f, "main", now)
	})
	// The frame's strings, the ids, the message; one more when the pool is empty.
	require.LessOrEqual(t, allocs, 4.0)
}
