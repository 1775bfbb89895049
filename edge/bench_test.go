package edge

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/penstock-io/penstock/message"
)

// BenchmarkPushFrame makes a frame of a message of usual size, reply address and all.
func BenchmarkPushFrame(b *testing.B) {
	raw, err := json.Marshal(map[string]any{
		"conversationId": "cidExample", "msgId": "msgExample", "senderNick": "A. Person",
		"sessionWebhook":            "https://example.com/robot/sendBySession?session=0123456789",
		"sessionWebhookExpiredTime": 1785005400130, "createAt": 1785000000000,
		"text": map[string]string{"content": "what is the status of <the build>?"},
	})
	if err != nil {
		b.Fatal(err)
	}
	m := &message.Inbound{
		ID: "m", Installation: "bot", Kind: message.KindMessage, Topic: "/v1.0/im/bot/messages/get",
		Raw: message.Raw(raw),
	}
	s, err := New(Config{
		Outbox: noOutbox{}, Consumers: []Consumer{{Name: "one", ClientID: "a", ClientSecret: "b"}},
	})
	if err != nil {
		b.Fatal(err)
	}
	c := s.consumer("one")
	f := carrier{frame: "frame", peer: &peer{id: "connection"}}
	var buf []byte
	b.ReportAllocs()
	for b.Loop() {
		token, err := s.seal(c, session{
			Installation: "bot", Conversation: "cidExample", Message: "m",
			Target: make([]byte, 400), Expires: time.Now().Unix(),
		})
		if err != nil {
			b.Fatal(err)
		}
		data := rewrite(string(raw), "https://edge.example/robot/sendBySession?session="+token, time.Now())
		if buf = appendPush(buf[:0], m, subscriptionOf(m), f, data); len(buf) == 0 {
			b.Fatal("no frame")
		}
	}
}

// BenchmarkAnswer takes answers to frames that are out.
func BenchmarkAnswer(b *testing.B) {
	s, err := New(Config{Outbox: noOutbox{}})
	if err != nil {
		b.Fatal(err)
	}
	c := newConsumer(s, Consumer{Name: "one", MaxConnections: 1})
	sub := subscription{typeEvent, topicAll}
	c.peers = []*peer{unread(c)}
	n := 0
	b.ReportAllocs()
	for b.Loop() {
		n++
		d := c.begin(msgKey{"bot", "m"}, false)
		f := c.assign(d, want{conv: convKey{"bot", "c"}, sub: sub}, nil)
		a, ok := readAnswer(fmt.Appendf(nil, `{"code":200,"headers":{"messageId":%q},"data":""}`, f.frame))
		if !ok || c.answered(a) != "" {
			b.Fatal("not taken")
		}
		<-d.told
		c.finish(d)
	}
}
