package payload_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/penstock-io/penstock/integrations/dingtalk/internal/payload"
	"github.com/penstock-io/penstock/message"
)

// seeds are all recorded frames.
func seeds(f *testing.F) [][]byte {
	paths, err := filepath.Glob("testdata/frames/*.json")
	require.NoError(f, err)
	var out [][]byte
	for _, path := range paths {
		raw, err := os.ReadFile(path)
		require.NoError(f, err)
		out = append(out, raw)
	}
	cases, err := filepath.Glob("testdata/cases/*.json")
	require.NoError(f, err)
	for _, path := range cases {
		for _, frame := range loadCase(f, path).Frames {
			if len(frame) < 10_000 { // mutations of a giant find nothing
				out = append(out, []byte(frame))
			}
		}
	}
	return out
}

// pair is one member of an object as encoding/json reads it.
type pair struct {
	key string
	val json.RawMessage
}

// pairs reads an object's members in order; ok is false if doc is no object.
func pairs(doc []byte) (out []pair, ok bool) {
	dec := json.NewDecoder(bytes.NewReader(doc))
	if open, err := dec.Token(); !json.Valid(doc) || err != nil || open != json.Delim('{') {
		return nil, false
	}
	for dec.More() {
		key, _ := dec.Token()
		var val json.RawMessage
		if err := dec.Decode(&val); err != nil {
			return nil, false
		}
		out = append(out, pair{key.(string), val})
	}
	return out, true
}

// text is the lenient text of a value.
func text(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	if raw[0] == '{' || raw[0] == '[' {
		return ""
	}
	return string(raw)
}

// peerDecode is DecodeFrame made with encoding/json.
func peerDecode(b []byte) (fields map[string]string, ok bool) {
	all, ok := pairs(b)
	if !ok {
		return nil, false
	}
	fields = map[string]string{}
	for _, top := range all {
		switch top.key {
		case "type":
			fields["type"] = text(top.val)
		case "data":
			if fields["data"] = text(top.val); top.val[0] == '{' || top.val[0] == '[' {
				fields["data"] = string(top.val)
			}
		case "header", "headers":
			headers, _ := pairs(top.val)
			for _, h := range headers {
				fields["h:"+h.key] = text(h.val)
			}
		}
	}
	return fields, true
}

func FuzzDecodeFrame(f *testing.F) {
	for _, seed := range seeds(f) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		want, ok := peerDecode(raw)
		buf := slices.Clone(raw)
		got, err := payload.DecodeFrame(buf)
		require.Equal(t, ok, err == nil)
		if err != nil {
			require.ErrorIs(t, err, payload.ErrNotFrame)
			return
		}
		for i := range buf {
			buf[i] = '~' // the session reads the next frame into the same memory
		}
		require.Equal(t, want["type"], got.Type)
		require.Equal(t, want["data"], got.Data)
		require.Equal(t, want["h:topic"], got.Topic)
		require.Equal(t, want["h:messageId"], got.MessageID)
		require.Equal(t, want["h:eventId"], got.EventID)
		require.Equal(t, want["h:eventType"], got.EventType)
		require.Equal(t, want["h:eventCorpId"], got.EventCorpID)
	})
}

func FuzzInbound(f *testing.F) {
	for _, seed := range seeds(f) {
		if frame, err := payload.DecodeFrame(seed); err == nil {
			f.Add(frame.Type, frame.Topic, frame.MessageID, frame.Data)
		}
	}
	f.Fuzz(func(t *testing.T, typ, topic, frameID, data string) {
		frame := payload.Frame{Type: typ, Topic: topic, MessageID: frameID, Data: data}
		m, defect := payload.Inbound(&frame, "main", now)
		checkAlways(t, m, frame)
		_, isObject := pairs([]byte(data))
		require.True(t, isObject || defect != "", "taken, though it is no object")
		require.True(t, m.Conversation.ID != "" || defect != "", "taken without a conversation")
		if m.Kind == message.KindMessage && isObject {
			require.Contains(t, []string{"", payload.DefectNoConversation}, defect)
			checkLikePeer(t, m, frame)
		}
	})
}

// checkAlways checks what holds for every message, defect or not.
func checkAlways(t *testing.T, m *message.Inbound, frame payload.Frame) {
	require.Equal(t, frame.Data, string(m.Raw))
	require.Equal(t, frame.MessageID, string(m.FrameID))
	require.Equal(t, message.InstallationID("main"), m.Installation)
	require.True(t, !utf8.ValidString(frame.Data) || utf8.ValidString(m.Text))
	_, err := json.Marshal(m)
	require.NoError(t, err, "a handler cannot be given the message")
	require.Equal(t, "[reply address]", payload.ReplyAddress(m).String())
	require.LessOrEqual(t, len(payload.DisconnectReason(frame.Data)), 200)
}

func checkLikePeer(t *testing.T, m *message.Inbound, frame payload.Frame) {
	want := map[string]string{}
	all, _ := pairs([]byte(frame.Data))
	for _, p := range all {
		want[p.key] = text(p.val)
	}
	if want["msgId"] == "" {
		want["msgId"] = frame.MessageID
	}
	require.Equal(t, want["msgId"], string(m.ID))
	require.Equal(t, want["conversationId"], string(m.Conversation.ID))
	require.Equal(t, want["conversationTitle"], m.Conversation.Title)
	require.Equal(t, want["senderId"], string(m.Sender.ID))
	require.Equal(t, want["senderStaffId"], string(m.Sender.StaffID))
	require.Equal(t, want["senderNick"], m.Sender.Name)
	require.Equal(t, want["robotCode"], m.RobotCode)
	require.Equal(t, want["sessionWebhook"], payload.ReplyAddress(m).Webhook)
	switch want["conversationType"] {
	case "1":
		require.Equal(t, message.ChatDirect, m.Conversation.Type)
	case "2":
		require.Equal(t, message.ChatGroup, m.Conversation.Type)
	}
}
