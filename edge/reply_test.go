package edge_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/penstock-io/penstock/edge"
	"github.com/penstock-io/penstock/message"
)

// address gives the reply address of a message that consumer "one" has answered.
func (b *bench) address(m *message.Inbound) (webhook string, expires int64) {
	b.t.Helper()
	c := b.dial()
	r := b.give(m)
	f := c.read()
	c.ok(f)
	_, err := r.wait()
	require.NoError(b.t, err)
	_ = c.ws.Close()
	var d struct {
		SessionWebhook            string
		SessionWebhookExpiredTime int64
	}
	require.NoError(b.t, json.Unmarshal([]byte(f.Data), &d))
	return d.SessionWebhook, d.SessionWebhookExpiredTime
}

func TestRepliesGoToTheOutbox(t *testing.T) {
	t.Parallel()
	b := serve(t, edge.Config{})
	hook, expires := b.address(robot("m1", "c1"))
	require.InDelta(t, time.Now().Add(90*time.Minute).UnixMilli(), expires, 60_000)
	card := `{"msgtype":"actionCard", "actionCard":{"title":"<t>"}}`
	mobiles := `{"msgtype":"text","text":{"content":"a"},"at":{"atMobiles":["1"]}}`
	for body, want := range map[string]message.Reply{
		`{"msgtype":"text","text":{"content":" a"}}`: {Format: message.FormatText, Text: " a"},
		`{"msgtype":"markdown","markdown":{"title":"t","text":"# x"},"at":{"atUserIds":["u"],"isAtAll":true}}`: {
			Format: message.FormatMarkdown, Title: "t", Text: "# x",
			Mentions: []message.UserID{"u"}, MentionAll: true,
		},
		card:    {Format: message.FormatVendor, Card: json.RawMessage(card)},
		mobiles: {Format: message.FormatVendor, Card: json.RawMessage(mobiles)},
	} {
		status, m := b.post(hook, body)
		require.Equal(t, 200, status)
		require.Equal(t, map[string]any{"errcode": 0.0, "errmsg": "ok"}, m)
		sent := b.out.list()
		require.Equal(t, message.Outbound{
			Reply: want, Installation: "bot", Conversation: "c1", InReplyTo: "m1",
			Target: message.Target("SENTINEL target of c1"),
		}, sent[len(sent)-1])
	}
	require.EqualValues(t, 4, b.srv.Stats().Replies["ok"])
}

func TestRepliesThatAreRefused(t *testing.T) {
	t.Parallel()
	b := serve(t, edge.Config{})
	hook, _ := b.address(robot("m1", "c1"))
	for body, code := range map[string]float64{
		``: 40035, `[]`: 40035, `x`: 40035, `{"msgtype":7}`: 40035, `{}`: 400105,
		`{"msgtype":"poem"}`:                        400105,
		`{"msgtype":"text"}`:                        40035,
		`{"msgtype":"text","text":{"content":" "}}`: 40035,
		`{"msgtype":"text","text":{"content":"` + strings.Repeat("x", 300<<10): 40035,
	} {
		status, m := b.post(hook, body)
		require.Equal(t, 200, status, "as the vendor does")
		require.Equal(t, code, m["errcode"], body[:min(len(body), 80)])
		require.NotEmpty(t, m["errmsg"])
	}
	require.Empty(t, b.out.list())
	require.Contains(t, b.log.String(), "consumer=one installation=bot conversation=c1 message_id=m1")
	require.Equal(t, 1, strings.Count(b.log.String(), "a reply of a consumer is refused"), "logged now and then")

	b.out.set(func(o *outbox) { o.err = errors.New("disk is full") })
	status, m := b.post(hook, `{"msgtype":"text","text":{"content":"a"}}`)
	require.Equal(t, 503, status, "clients that look at the status alone must not take it for sent")
	require.EqualValues(t, -1, m["errcode"])
	require.EqualValues(t, 1, b.srv.Stats().Replies["not_stored"])
}

func TestReplyAddressesThatAreNotGood(t *testing.T) {
	t.Parallel()
	b := serve(t, edge.Config{ReplyWithin: 1500 * time.Millisecond})
	hook, _ := b.address(robot("m1", "c1"))
	base, token, _ := strings.Cut(hook, "session=")
	text := `{"msgtype":"text","text":{"content":"a"}}`
	other := "x"
	if token[20:21] == other {
		other = "y"
	}
	refused := func(url string) {
		t.Helper()
		status, m := b.post(url, text)
		require.Equal(t, 200, status)
		require.EqualValues(t, 300001, m["errcode"])
	}
	for _, bad := range []string{
		"", "x", "AQ", "AQNvbmU", token[:len(token)-2], token + "AA", "B" + token[1:],
		token[:20] + other + token[21:], strings.Repeat("A", 9<<10),
	} {
		refused(base + "session=" + bad)
	}
	b.out.set(func(o *outbox) { o.gone = true })
	refused(hook)
	b.out.set(func(o *outbox) { o.gone = false })
	b.eventually(func() bool {
		_, m := b.post(hook, text)
		return m["errcode"] == 300001.0
	})
	require.Positive(t, b.srv.Stats().Replies["expired"])
}

// A reply address is good on the next server too, and only as long as the secrets
// are the same.
func TestReplyAddressesSurviveARestart(t *testing.T) {
	t.Parallel()
	b := serve(t, edge.Config{})
	hook, _ := b.address(robot("m1", "c1"))
	b.stop()
	_, query, _ := strings.Cut(hook, "?")
	text := `{"msgtype":"text","text":{"content":"a"}}`

	next := serve(t, edge.Config{})
	_, m := next.post(next.srv.URL()+"/robot/sendBySession?"+query, text)
	require.EqualValues(t, 0, m["errcode"])
	require.EqualValues(t, "m1", next.out.list()[0].InReplyTo)

	list := consumers()
	list[0].ClientSecret = "SENTINEL-other"
	other := serve(t, edge.Config{Consumers: list})
	_, m = other.post(other.srv.URL()+"/robot/sendBySession?"+query, text)
	require.EqualValues(t, 300001, m["errcode"])
}

func TestThePlatformsAddressCanBePassedThrough(t *testing.T) {
	t.Parallel()
	b := serve(t, edge.Config{PassWebhook: true})
	hook, expires := b.address(robot("m1", "c1"))
	require.Equal(t, vendorHook, hook)
	require.EqualValues(t, 1785005400130, expires)
}
