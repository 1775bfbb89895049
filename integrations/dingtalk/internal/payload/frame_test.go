package payload_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/penstock-io/penstock/integrations/dingtalk/internal/payload"
	"github.com/penstock-io/penstock/message"
)

func TestOddEnvelopes(t *testing.T) {
	for text, want := range map[string]payload.Frame{
		`{}`:                                     {},
		`{"headers":null,"data":null,"type":""}`: {},
		`{"headers":[1],"data":[1, 2]}`:          {Data: `[1, 2]`},
		`{"data":{ "a" : 1 }}`:                   {Data: `{ "a" : 1 }`},
		`{"data":7}`:                             {Data: "7"},
		`{"data":true}`:                          {Data: "true"},
		`{"data":"x","data":"y"}`:                {Data: "y"},
		`{"data":"x","data":null}`:               {},
		`{"data":"x","data":{}}`:                 {Data: "{}"},
		`{"data":"d","headers":{"topic":"t"}}`:   {Data: "d", Topic: "t"},
		`{"time":5}`:                             {SentAt: 5},
		`{"time":5,"headers":{"time":"6"}}`:      {SentAt: 6},
		`{"headers":{"time":6},"time":5}`:        {SentAt: 6},
		`{"headers":{"time":"now"}}`:             {},
		`{"headers":{"messageId":12,"topic":true,"eventId":null,"eventType":{}}}`: {
			MessageID: "12", Topic: "true",
		},
		`{"header":{"topic":"a","messageId":"m"},"headers":{"topic":"b"}}`: {
			Topic: "b", MessageID: "m",
		},
		`{"headers":{"topic":"\/v1.0\/im\/bot\/messages\/get","\u0074ime":"9","other":1}}`: {
			Topic: payload.TopicRobot, SentAt: 9,
		},
		`{"headers":{"eventBornTime":"3","eventCorpId":"c","eventId":"e","eventType":"t"}}`: {
			BornTime: 3, EventCorpID: "c", EventID: "e", EventType: "t",
		},
		"{\"data\":\"bad \xff utf-8\",\"type\":\"\xe6\x95\xb0\"}": {
			Data: "bad \ufffd utf-8", Type: "数",
		},
	} {
		got, err := payload.DecodeFrame([]byte(text))
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
	}
}

func TestFrameKeepsNothingOfItsInput(t *testing.T) {
	raw := []byte(`{"type":"EVENT","headers":{"topic":"*","messageId":"m1"},"data":"{\"a\":1}"}`)
	f, err := payload.DecodeFrame(raw)
	require.NoError(t, err)
	copy(raw, strings.Repeat("~", len(raw)))
	require.Equal(t, payload.Frame{Type: "EVENT", Topic: "*", MessageID: "m1", Data: `{"a":1}`}, f)
}

// A giant frame takes the buffer past what is kept for the next one; frames that
// come after it must not see anything of it.
func TestFramesOfAllSizesInTurn(t *testing.T) {
	for _, n := range []int{10, 500_000, 1, 0, 70_000, 3} {
		text := strings.Repeat("数", n)
		f, err := payload.DecodeFrame([]byte(`{"type":"T","data":"` + text + `\n"}`))
		require.NoError(t, err)
		require.Equal(t, text+"\n", f.Data)
		require.Equal(t, "T", f.Type)
	}
}

func TestReplyAddresses(t *testing.T) {
	m := &message.Inbound{Kind: message.KindEvent, Raw: `{"sessionWebhook":"https://example.invalid"}`}
	require.Zero(t, payload.ReplyAddress(m), "nobody to answer")

	m = &message.Inbound{
		Kind: message.KindPlugin,
		Raw:  `{"body":{"sessionWebhook":"w","sessionWebhookExpiredTime":"1785000000000"},"x":1}`,
	}
	got := payload.ReplyAddress(m)
	require.Equal(t, "w", got.Webhook)
	require.Equal(t, int64(1785000000000), got.WebhookExpires.UnixMilli())

	m = &message.Inbound{
		Kind: message.KindMessage, Raw: `{"sessionWebhook":"w","robotCode":"r2"}`, RobotCode: "r1",
		Conversation: message.Conversation{ID: "c", Type: message.ChatGroup},
		Sender:       message.Sender{ID: "opaque", StaffID: "s"},
	}
	require.Equal(t, payload.Reply{
		Webhook: "w", RobotCode: "r2", ConversationID: "c", StaffID: "s",
	}, payload.ReplyAddress(m))

	m.Raw = `not JSON`
	require.Equal(t, payload.Reply{
		RobotCode: "r1", ConversationID: "c", StaffID: "s",
	}, payload.ReplyAddress(m), "what the message holds is left")
}

// The ids outlive the message in queues and windows, so they must not keep a
// payload of any size in memory.
func TestIDsDoNotHoldThePayload(t *testing.T) {
	const ids = `"msgId":"m1","conversationId":"c1"`
	f, err := payload.DecodeFrame([]byte(
		`{"type":"CALLBACK","headers":{"topic":"` + payload.TopicRobot + `","messageId":"f1"},` +
			`"data":{` + ids + `,"text":{"content":"` + strings.Repeat("x", 1<<20) + `"}}}`))
	require.NoError(t, err)
	m, defect := payload.Inbound(&f, "main", now)
	require.Empty(t, defect)
	for _, id := range []string{string(m.ID), string(m.FrameID), string(m.Conversation.ID)} {
		require.False(t, shares(f.Data, id), id)
		require.False(t, shares(f.MessageID, id), id)
	}
	require.True(t, shares(f.Data, m.Text), "the text is no copy")
}
