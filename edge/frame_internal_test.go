package edge

import (
	"encoding/json"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/penstock-io/penstock/internal/wire"
	"github.com/penstock-io/penstock/message"
	"github.com/penstock-io/penstock/router"
)

func TestRewriteLeavesEveryOtherByte(t *testing.T) {
	at := time.UnixMilli(1700000000123)
	for doc, want := range map[string]string{
		`{}`:                    `{}`,
		`not json`:              `not json`,
		`["sessionWebhook"]`:    `["sessionWebhook"]`,
		`{"sessionWebhook":"a"`: `{"sessionWebhook":"a"`,
		` { "a" : 1e5 ,"sessionWebhook" : "x\u0041" , "b":[ {"sessionWebhook":"in"} ] } `: ` { "a" : 1e5 ,"sessionWebhook" : "https://h/?s=1" , "b":[ {"sessionWebhook":"in"} ] } `,
		`{"sessionWebhookExpiredTime":"12","sessionWebhook":null}`:                        `{"sessionWebhookExpiredTime":"1700000000123","sessionWebhook":"https://h/?s=1"}`,
		`{"sessionWebhookExpiredTime":12,"session\u0057ebhook":"y","sessionWebhook":"z"}`: `{"sessionWebhookExpiredTime":1700000000123,"session\u0057ebhook":"https://h/?s=1","sessionWebhook":"https://h/?s=1"}`,
	} {
		require.Equal(t, want, rewrite(doc, "https://h/?s=1", at))
	}
}

// FuzzRewrite checks that the result means what the document meant, but for the two
// members.
func FuzzRewrite(f *testing.F) {
	f.Add(`{"sessionWebhook":"a","sessionWebhookExpiredTime":1,"c":"\u4f60"}`)
	f.Add(`{"sessionWebhook":{"a":[1,2]},"sessionWebhook":true}`)
	f.Add(`{"a":[]`)
	f.Fuzz(func(t *testing.T, doc string) {
		got := rewrite(doc, "https://h", time.UnixMilli(5))
		var before, after map[string]json.RawMessage
		if json.Unmarshal([]byte(doc), &before) != nil || before == nil {
			return
		}
		require.NoError(t, json.Unmarshal([]byte(got), &after), got)
		if _, ok := before[webhookKey]; ok {
			require.Equal(t, `"https://h"`, string(after[webhookKey]))
		}
		for _, m := range []map[string]json.RawMessage{before, after} {
			delete(m, webhookKey)
			delete(m, expiryKey)
		}
		require.Equal(t, before, after)
	})
}

func FuzzAnswer(f *testing.F) {
	f.Add([]byte(`{"code":200,"headers":{"messageId":"a"},"message":"OK","data":"{\"status\":\"LATER\"}"}`))
	f.Add([]byte(`{"code":"500","headers":null,"data":{"response":null}}`))
	f.Add([]byte(`{"code":1e99}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		a, ok := readAnswer(b)
		if ok {
			require.True(t, json.Valid(b))
		}
		judge(&a, true, true)
	})
}

func FuzzReply(f *testing.F) {
	f.Add([]byte(`{"msgtype":"text","text":{"content":"a"},"at":{"atUserIds":["u"]}}`))
	f.Add([]byte(`{"msgtype":"feedCard","feedCard":{"links":[]}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := readReply(b)
		if err == nil {
			require.True(t, r.Text != "" || json.Valid(r.Card))
		}
	})
}

func FuzzToken(f *testing.F) {
	f.Add("AQ")
	f.Add("AQNvbmUDYm90AAAAAAAAAAAAAAAAAAAAAAAAAAAA")
	s, err := New(Config{Outbox: noOutbox{}, Consumers: []Consumer{{Name: "one", ClientID: "a", ClientSecret: "b"}}})
	require.NoError(f, err)
	f.Fuzz(func(t *testing.T, token string) {
		_, _, err := s.unseal(token, time.Now())
		require.Error(t, err, "nobody can make one")
	})
}

type noOutbox struct{ Outbox }

func (noOutbox) Secret(message.InstallationID) (string, bool) { return "owner", true }

func TestGuessersAreBounded(t *testing.T) {
	g := guesses{by: newGuessers()}
	for i := range 2 * maxGuessers {
		g.wrong(guesser(string(rune('a'+i%26))+milli(time.UnixMilli(int64(i))), "c"))
	}
	require.LessOrEqual(t, len(g.by), maxGuessers)
	require.Equal(t, guesser("[2001:db8::1]:5", "c"), guesser("[2001:db8::2]:6", "c"), "one network")
	require.NotEqual(t, guesser("192.0.2.1:5", "c"), guesser("192.0.2.2:5", "c"))
}

func TestATopicThatIsGoneForLongIsDeserted(t *testing.T) {
	s, err := New(Config{Outbox: noOutbox{}})
	require.NoError(t, err)
	c := newConsumer(s, Consumer{Name: "one", MaxConnections: 1})
	p := unread(c)
	events, now := subscription{typeEvent, topicAll}, time.Now()
	c.subscribeLocked(p)
	c.unsubscribeLocked(p, now)
	require.Equal(t, outcomeAway, c.unwantedLocked(events, now.Add(s.cfg.AwayWithin-1)))
	require.Equal(t, outcomeDeserted, c.unwantedLocked(events, now.Add(s.cfg.AwayWithin)))
	fail := handler{s, "one"}.fail(&ending{outcome: outcomeDeserted})
	require.True(t, router.IsPermanent(fail), "a dead letter, which can be put back")
	require.False(t, router.IsUnreached(fail))

	c.topics[events].since = time.Time{}
	c.peers = []*peer{p, unread(c)}
	c.peers[1].retiring = true
	c.dropLocked(p)
	require.Equal(t, outcomeAway, c.unwantedLocked(events, now.Add(24*time.Hour)),
		"one that leaves has it still")
	c.dropLocked(c.peers[0])
	c.topics[events].since = now
	require.Equal(t, outcomeDeserted, c.unwantedLocked(events, now.Add(24*time.Hour)))

	for i := range 2 * maxTopics {
		p.subs = map[subscription]bool{{typeCallback, milli(now.Add(time.Duration(i) * time.Second))}: true}
		c.subscribeLocked(p)
	}
	require.Len(t, c.topics, maxTopics)
}

// What counts is how long a connection has been silent, not when it came.
func TestTheQuietestIsTheOneThatIsSilent(t *testing.T) {
	s, err := New(Config{Outbox: noOutbox{}})
	require.NoError(t, err)
	c := newConsumer(s, Consumer{Name: "one", MaxConnections: 2})
	require.Nil(t, c.quietestLocked())
	silent, fresh := unread(c), unread(c)
	silent.opened = time.Now().Add(-time.Hour)
	silent.heard.Store(int64(59 * time.Minute))
	c.peers = []*peer{fresh, silent}
	require.Same(t, silent, c.quietestLocked())
	silent.heard.Store(int64(time.Hour))
	require.Nil(t, c.quietestLocked())
}

// unread is a connection that wants events, and whose other end is not read.
func unread(c *consumer) *peer {
	ours, _ := net.Pipe()
	return &peer{
		c: c, opened: time.Now(), sock: wire.NewSocket(ours, wire.Config{Server: true}),
		subs: map[subscription]bool{{typeEvent, topicAll}: true},
	}
}

func TestWhatIsRememberedOfAConsumerIsBounded(t *testing.T) {
	s, err := New(Config{Outbox: noOutbox{}})
	require.NoError(t, err)
	c := newConsumer(s, Consumer{Name: "one", MaxConnections: 1})
	p := unread(c)
	c.peers = []*peer{p}
	for i := range int64(3 * maxHomes) {
		key := msgKey{"bot", message.ID(milli(time.UnixMilli(i)))}
		for range 2 {
			d := c.begin(key, false)
			conv := convKey{"bot", message.ConversationID(milli(time.UnixMilli(i)))}
			f := c.assign(d, want{conv: conv, sub: subscription{typeEvent, topicAll}}, nil)
			require.Empty(t, f.outcome)
			require.True(t, f.send)
			require.NotEmpty(t, f.frame)
			c.giveUp(d)
		}
	}
	require.LessOrEqual(t, len(c.homes), maxHomes)
	require.LessOrEqual(t, len(c.open), maxGivenUp)
	require.LessOrEqual(t, len(c.frames), 2*maxGivenUp)
	require.LessOrEqual(t, len(c.givenUp), maxGivenUp)
	require.Zero(t, p.owed)
	require.Equal(t, len(c.homes), p.homes)
}
