package dingtalk_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/penstock-io/penstock/integrations"
	"github.com/penstock-io/penstock/integrations/dingtalk"
	"github.com/penstock-io/penstock/integrations/dingtalk/dingtalktest"
	"github.com/penstock-io/penstock/integrations/integrationtest"
	"github.com/penstock-io/penstock/message"
)

func TestConformance(t *testing.T) {
	integrationtest.Run(t, integrationtest.Env{
		New: newPlatform,
		Features: integrationtest.Features{
			Retire: true, Refuse: true, Limit: true, Garble: true, Stall: true,
		},
	})
}

// platform is dingtalktest behind the verbs of the suite.
type platform struct {
	t    integrationtest.TB
	gw   *dingtalktest.Gateway
	stop func()

	mu     sync.Mutex // guards the following fields
	pushed map[message.FrameID]message.ID
	acks   map[platformAck]int
}

type platformAck struct {
	session int
	id      message.ID
}

func newPlatform(t integrationtest.TB) integrationtest.Gateway {
	p := &platform{
		t: t, pushed: map[message.FrameID]message.ID{}, acks: map[platformAck]int{},
	}
	gw, err := dingtalktest.New(dingtalktest.Config{OnAck: p.onAck, Linger: 2 * time.Second})
	require.NoError(t, err)
	require.NoError(t, gw.Listen())
	p.gw = gw
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- gw.Run(ctx) }()
	p.stop = sync.OnceFunc(func() {
		cancel()
		require.NoError(t, <-done)
	})
	return p
}

func (p *platform) Close() { p.stop() }

func (p *platform) Connector() integrations.Connector {
	cfg := platformConfig(p.gw)
	cfg.PingEvery, cfg.Silence = 200*time.Millisecond, time.Second
	cfg.AckGrace = time.Second
	c, err := dingtalk.New(cfg)
	require.NoError(p.t, err)
	return c
}

func (p *platform) onAck(a dingtalktest.Ack) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if id, ok := p.pushed[a.Frame]; ok && a.Code == 200 {
		p.acks[platformAck{a.Session, id}]++
	}
}

func (p *platform) Acks(session int, m message.ID) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.acks[platformAck{session, m}]
}

func (p *platform) Sessions() (ids []int) {
	for _, s := range p.gw.App("").Sessions() {
		ids = append(ids, s.Info().ID)
	}
	return ids
}

func (p *platform) session(id int) *dingtalktest.Session {
	for _, s := range p.gw.App("").Sessions() {
		if s.Info().ID == id {
			return s
		}
	}
	return nil
}

var errNoSession = errors.New("no such session")

func (p *platform) Push(session int, m message.ID, c message.ConversationID) error {
	s := p.session(session)
	if s == nil || s.Info().State != dingtalktest.StateOpen {
		return errNoSession
	}
	data, err := json.Marshal(map[string]any{
		"msgId": m, "conversationId": c, "conversationType": "1", "msgtype": "text",
		"text": map[string]string{"content": "hello"}, "senderId": "$:LWCP_v1:$sender",
	})
	if err != nil {
		return err
	}
	p.mu.Lock()
	frame := message.FrameID(fmt.Sprintf("frame-%d", len(p.pushed)+1))
	p.pushed[frame] = m
	p.mu.Unlock()
	b, err := json.Marshal(map[string]any{
		"specVersion": "1.0", "type": "CALLBACK", "data": string(data),
		"headers": map[string]any{"topic": dingtalktest.TopicRobot, "messageId": frame},
	})
	if err != nil {
		return err
	}
	if !s.PushRaw(b) {
		return errNoSession
	}
	return nil
}

func (p *platform) Drop(session int)   { p.on(session, (*dingtalktest.Session).Drop) }
func (p *platform) Retire(session int) { p.on(session, (*dingtalktest.Session).Disconnect) }

func (p *platform) Stall(session int) {
	p.on(session, func(s *dingtalktest.Session) { s.BlackHole(false) })
}

func (p *platform) on(session int, do func(*dingtalktest.Session)) {
	if s := p.session(session); s != nil {
		do(s)
	}
}

func (p *platform) Refuse() { p.gw.Inject(dingtalktest.RouteOpen, -1, dingtalktest.AuthFailed()) }

func (p *platform) Limit(after time.Duration) {
	p.gw.Inject(dingtalktest.RouteOpen, -1, dingtalktest.TooMany(after))
}

func (p *platform) Garble(session int) {
	for _, frame := range []string{
		"", "{", "null", "[]", `"text"`, "{}", `{"type":7}`, `{"type":"CALLBACK"}`,
		`{"type":"CALLBACK","headers":[],"data":{}}`, `{"type":"NEWS","headers":{"messageId":"x"}}`,
		`{"type":"CALLBACK","headers":{"topic":"/v1.0/im/bot/messages/get"},"data":"{"}`,
		`{"type":"SYSTEM","headers":{"topic":5}}`, "\x00\xff\xfe",
	} {
		p.on(session, func(s *dingtalktest.Session) {
			s.PushRaw([]byte(frame))
			s.PushBinary([]byte(frame))
		})
	}
}
