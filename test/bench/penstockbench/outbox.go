package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/penstock-io/penstock/message"
	"github.com/penstock-io/penstock/relay"
	"github.com/penstock-io/penstock/router"
	"github.com/penstock-io/penstock/store"
	"github.com/penstock-io/penstock/store/sqlite"
	"github.com/penstock-io/penstock/test/bench/internal/line"
)

// sendChats is how many conversations the replies are for.
const sendChats = 1000

// platform takes every reply and looks at their order.
type platform struct {
	mu sync.Mutex
	// guarded by mu:
	last       map[message.ConversationID]int
	inversions int64
}

// Address implements relay.Sender.
func (*platform) Address(*message.Inbound) (message.Target, error) { return nil, nil }

// Split implements relay.Sender.
func (*platform) Split(o message.Outbound) []message.Outbound { return []message.Outbound{o} }

// Send implements relay.Sender.
func (p *platform) Send(_ context.Context, o message.Outbound) (message.Receipt, error) {
	n, err := strconv.Atoi(string(o.ID))
	if err != nil {
		return message.Receipt{}, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if last, ok := p.last[o.Conversation]; ok && n <= last {
		p.inversions++
	}
	p.last[o.Conversation] = n
	return message.Receipt{ID: "r"}, nil
}

// sendAll serves one request, which fills an outbox, opens it again, and lets a
// relay send everything in it.
func sendAll(o options) error {
	return serveOnce(func(ctx context.Context) (any, error) {
		err := putAll(ctx, o.store, o.send, func(n int) store.Op {
			return &store.Add{Replies: []message.Outbound{{
				Reply: message.Reply{Text: "a reply of some words, as a bot would give it"},
				ID:    message.ID(strconv.Itoa(n)), Installation: installation,
				Conversation: chat(n % sendChats), Part: 1, Parts: 1, CreatedAt: time.Now(),
				Target: message.Target("https://oapi.example.invalid/robot/sendBySession?session=1"),
			}}}
		})
		if err != nil {
			return nil, err
		}
		return drain(ctx, o)
	})
}

func drain(ctx context.Context, o options) (res line.Sending, err error) {
	s, err := sqlite.Open(ctx, sqlite.Config{Path: o.store})
	if err != nil {
		return res, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	p := &platform{last: make(map[message.ConversationID]int)}
	all := make(chan struct{})
	sent := 0 // owned by the writer's goroutine, which calls SendEnded
	r, err := relay.New(relay.Config{
		Store: s, Durable: true, Handler: router.Echo{},
		Hooks: relay.Hooks{SendEnded: func(*message.Outbound, string) {
			if sent++; sent == o.send {
				close(all)
			}
		}},
	})
	if err != nil {
		return res, err
	}
	if _, err := r.Attach(installation, p); err != nil {
		return res, err
	}
	ended := make(chan error, 1)
	began := time.Now()
	go func() { ended <- r.Run(ctx) }()
	select {
	case <-all:
		res.Took = time.Since(began)
	case <-time.After(sendFor):
		err = fmt.Errorf("not all replies were sent within %v", sendFor)
	}
	r.Shutdown(ctx)
	st := r.Stats()
	p.mu.Lock()
	defer p.mu.Unlock()
	res.Sent, res.Inversions = st.Sent, p.inversions
	res.Commits = int64(r.WriterStats().Commits)
	return res, errors.Join(err, <-ended)
}

// sendFor bounds the time in which an outbox drains.
const sendFor = 2 * time.Minute
