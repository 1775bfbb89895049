package router_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/penstock-io/penstock/message"
	"github.com/penstock-io/penstock/router"
)

// full is a message with every field set.
func full() *message.Inbound {
	at := time.Date(2026, 3, 2, 9, 30, 0, 123_000_000, time.UTC)
	media := []message.Media{{
		Kind: message.TypeAudio, Code: "c", AltCode: "d", Name: "../x", Duration: time.Second,
	}}
	m := text("line\n\"two\" <b>")
	m.FrameID, m.Topic, m.RobotCode = "f1", "/topic", "robot"
	m.Conversation.Title = "title"
	m.Sender = message.Sender{ID: "u", StaffID: "s", UnionID: "n", Name: "name"}
	m.Media, m.MentionsBot, m.Mentions = media, true, []message.UserID{"a", "b"}
	m.Quote = &message.Quote{ID: "q", Sender: "u", Type: message.TypeText, Text: "t", Media: media}
	m.Unreadable, m.PlatformError = true, "code"
	m.SentAt, m.ReceivedAt, m.AnswerBy = at, at.Add(time.Second), at.Add(time.Minute)
	m.Raw = `{"msgtype":"text","text":{"content":"<b>"}}`
	return m
}

func TestEncodeRoundTrip(t *testing.T) {
	for name, m := range map[string]*message.Inbound{"full": full(), "little": text("")} {
		t.Run(name, func(t *testing.T) {
			body, err := router.Encode(m)
			require.NoError(t, err)
			require.NotContains(t, string(body), "\n")
			var back message.Inbound
			require.NoError(t, json.Unmarshal(body, &back))
			require.Equal(t, *m, back)
		})
	}
}

// A payload that is not JSON travels as a string, and what is read from that is
// the same message when it is written again.
func TestEncodeRawNotJSON(t *testing.T) {
	for raw, want := range map[message.Raw]string{
		"not <json>":    `"not <json>"`,
		`{"a":`:         `"{\"a\":"`,
		"{\"a\": 1,\n}": `"{\"a\": 1,\n}"`,
		`{ "a" : 1 }`:   `{"a":1}`,
		`"text"`:        `"text"`,
	} {
		m := text("x")
		m.Raw = raw
		body, err := router.Encode(m)
		require.NoError(t, err)
		var back message.Inbound
		require.NoError(t, json.Unmarshal(body, &back))
		var got, meant any
		require.NoError(t, json.Unmarshal([]byte(back.Raw), &got))
		require.NoError(t, json.Unmarshal([]byte(want), &meant))
		require.Equal(t, meant, got)
		again, err := router.Encode(&back)
		require.NoError(t, err)
		require.Equal(t, string(body), string(again))
	}
}

func TestEncodeIsValidUTF8(t *testing.T) {
	m := text("a\xffb")
	m.Raw = "{\"text\":\"\xff\xfe\"}"
	m.Sender.Name = strings.Repeat("\xc3", 3)
	body, err := router.Encode(m)
	require.NoError(t, err)
	require.True(t, utf8.Valid(body))
	require.True(t, json.Valid(body))
}
