package storetest

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/penstock-io/penstock/message"
)

const (
	bot      message.InstallationID = "bot-1"
	otherBot message.InstallationID = "bot-2"
)

// inbound is a small message of the first bot.
func inbound(id message.ID) *message.Inbound {
	return &message.Inbound{
		Schema:       message.Schema,
		ID:           id,
		Installation: bot,
		Conversation: message.Conversation{ID: "cid/" + message.ConversationID(id)},
		Text:         "text of " + string(id),
		Raw:          `{"text": "raw"}`,
	}
}

// of gives the message to another bot.
func of(in message.InstallationID, m *message.Inbound) *message.Inbound {
	m.Installation = in
	return m
}

func outbound(id message.ID) message.Outbound {
	return message.Outbound{
		Reply:        message.Reply{Text: "reply " + string(id)},
		ID:           id,
		Installation: bot,
		Conversation: "cid/" + message.ConversationID(id),
		Part:         1,
		Parts:        1,
		Target:       message.Target("target"),
	}
}

func outbounds(ids ...message.ID) []message.Outbound {
	os := make([]message.Outbound, len(ids))
	for i, id := range ids {
		os[i] = outbound(id)
	}
	return os
}

// noon is a time with nothing to lose below a millisecond.
var noon = time.Date(2026, 1, 2, 12, 0, 0, 345e6, time.UTC)

// requireTime compares to the millisecond, the least that a store keeps. A zero
// time stays one.
func requireTime(t testing.TB, want, got time.Time) {
	t.Helper()
	require.Equal(t, want.IsZero(), got.IsZero(), "want %v, got %v", want, got)
	require.WithinDuration(t, want, got, time.Millisecond)
}

// requireInbound compares messages. Raw must be the same to the byte; the rest
// must be the same as JSON, which does not tell an empty list from none.
func requireInbound(t testing.TB, want, got *message.Inbound) {
	t.Helper()
	require.NotNil(t, got)
	require.Equal(t, []byte(want.Raw), []byte(got.Raw), "Raw is kept byte for byte")
	w, g := *want, *got
	w.Raw, g.Raw = "", ""
	requireTime(t, w.SentAt, g.SentAt)
	requireTime(t, w.ReceivedAt, g.ReceivedAt)
	requireTime(t, w.AnswerBy, g.AnswerBy)
	for _, m := range []*message.Inbound{&w, &g} {
		m.SentAt, m.ReceivedAt, m.AnswerBy = time.Time{}, time.Time{}, time.Time{}
	}
	requireJSON(t, w, g)
}

// requireOutbound compares replies. Target must be the same to the byte.
func requireOutbound(t testing.TB, want, got message.Outbound) {
	t.Helper()
	require.Equal(t, []byte(want.Target), []byte(got.Target))
	requireTime(t, want.CreatedAt, got.CreatedAt)
	want.CreatedAt, got.CreatedAt = time.Time{}, time.Time{}
	requireJSON(t, want, got)
}

func requireJSON(t testing.TB, want, got any) {
	t.Helper()
	w, err := json.Marshal(want)
	require.NoError(t, err)
	g, err := json.Marshal(got)
	require.NoError(t, err)
	require.JSONEq(t, string(w), string(g))
}

// odd holds what encoders get wrong.
const odd = "a<b>&'\"\\ 报告\U0001F600\u2028\t\n%s ?"

// fill sets every exported field below v, so that one that a store forgets is
// found also when it is added later. Numbers count up, to tell fields apart.
func fill(v reflect.Value, n *int64) {
	*n++
	switch v.Interface().(type) {
	case time.Time:
		v.Set(reflect.ValueOf(noon.Add(time.Duration(*n) * time.Second)))
		return
	case json.RawMessage:
		v.SetBytes([]byte(`{"card":[1,"two"]}`))
		return
	case message.Target:
		v.SetBytes([]byte("\x00\xff\xfe target"))
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(odd + string(rune('a'+*n%26)))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(*n)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), n)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		fill(v.Index(0), n)
		fill(v.Index(1), n)
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i), n)
		}
	default:
		panic("storetest: a field of kind " + v.Kind().String() + " is new here")
	}
}

// filled is a value of which every field is set.
func filled[T any]() *T {
	v, n := new(T), int64(0)
	fill(reflect.ValueOf(v).Elem(), &n)
	return v
}
