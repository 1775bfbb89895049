package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/penstock-io/penstock/message"
	"github.com/penstock-io/penstock/store"
	"github.com/penstock-io/penstock/store/sqlite"
	"github.com/penstock-io/penstock/test/bench/internal/line"
)

const (
	installation = "bot-0"
	// manyChats is how many conversations a backlog is spread over.
	manyChats = 10_000
	payload   = 1024
	fillGroup = 500
)

// fill serves one request, which puts so many messages into the store and closes it.
func fill(o options) error {
	return serveOnce(func(ctx context.Context) (any, error) {
		return nil, putAll(ctx, o.store, o.fill, func(n int) store.Op {
			return &store.Append{Message: backlog(n)}
		})
	})
}

func serveOnce(do func(context.Context) (any, error)) error {
	return line.Serve(map[string]line.Word{
		"do": func(json.RawMessage) (any, error) { return do(context.Background()) },
	})
}

func putAll(ctx context.Context, path string, items int, op func(n int) store.Op) (err error) {
	s, err := sqlite.Open(ctx, sqlite.Config{Path: path})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	for n := 0; n < items; {
		ops := make([]store.Op, 0, fillGroup)
		for ; n < items && len(ops) < fillGroup; n++ {
			ops = append(ops, op(n))
		}
		if err := s.Commit(ctx, ops); err != nil {
			return err
		}
	}
	return nil
}

func chat(n int) message.ConversationID {
	return message.ConversationID(fmt.Sprintf("cidBench%05d+AAAAAAAAAAAAAAAAAAAAAA==", n%manyChats))
}

// backlog is a message whose payload has 1 KiB. Ids come in no order, as those of
// platforms do.
func backlog(n int) *message.Inbound {
	const odd = 0x9e3779b97f4a7c15
	id := fmt.Sprintf("msg%016x==", uint64(n)*odd)
	head := fmt.Sprintf(`{"msgId":%q,"conversationId":%q,"text":{"content":"`, id, chat(n))
	text := strings.Repeat("x", payload-len(head)-len(`"}}`))
	return &message.Inbound{
		Schema: message.Schema, ID: message.ID(id), Installation: installation,
		Platform: "dingtalk", Kind: message.KindMessage, Topic: "/v1.0/im/bot/messages/get",
		Conversation: message.Conversation{ID: chat(n), Type: message.ChatGroup},
		Sender:       message.Sender{ID: "$:LWCP_v1:$bench"},
		Type:         message.TypeText, Text: text, ReceivedAt: time.Now(), Attempt: 1,
		Raw: message.Raw(head + text + `"}}`),
	}
}
