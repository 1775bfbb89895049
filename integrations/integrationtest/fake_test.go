package integrationtest_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/penstock-io/penstock/integrations"
	"github.com/penstock-io/penstock/message"
)

// flaw is something that a connector does wrong.
type flaw string

var errOver = errors.New("session is over")

// platform is a platform in memory: its wire is a channel of JSON texts.
type platform struct {
	flaw    flaw
	profile integrations.Profile

	mu sync.Mutex
	// guarded by mu
	sockets []*socket
	refused bool
	after   time.Duration
	wg      sync.WaitGroup // of the flaws that leave goroutines
	closed  chan struct{}
}

// socket is one session, seen from both ends.
type socket struct {
	number int
	wire   chan string   // closed by nobody
	broken chan struct{} // closed by the platform, under mu
	// guarded by platform.mu
	open, stalled bool
	owed          int
	acks          map[message.ID]int
}

func newPlatform(f flaw) *platform {
	return &platform{
		flaw:    f,
		closed:  make(chan struct{}),
		profile: integrations.Profile{Platform: "memory", Ack: integrations.AckEach},
	}
}

func (p *platform) Connector() integrations.Connector { return p }

func (p *platform) Profile() integrations.Profile { return p.profile }

func (p *platform) Sessions() (out []int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range p.sockets {
		if s.open {
			out = append(out, s.number)
		}
	}
	return out
}

func (p *platform) socket(n int) *socket {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.sockets[n-1]
}

func (p *platform) Push(n int, m message.ID, c message.ConversationID) error {
	return p.send(p.socket(n), fmt.Sprintf(`{"id":%q,"chat":%q}`, m, c))
}

func (p *platform) send(s *socket, text string) error {
	select {
	case s.wire <- text:
		return nil
	case <-s.broken:
		return errOver
	}
}

func (p *platform) Acks(n int, m message.ID) int {
	s := p.socket(n)
	p.mu.Lock()
	defer p.mu.Unlock()
	return s.acks[m]
}

func (p *platform) Drop(n int) { p.hangUp(p.socket(n)) }

func (p *platform) hangUp(s *socket) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s.open {
		s.open = false
		close(s.broken)
	}
}

func (p *platform) Close() {
	p.mu.Lock()
	all := slices.Clone(p.sockets)
	p.mu.Unlock()
	for _, s := range all {
		p.hangUp(s)
	}
	if p.flaw != "leaks" {
		p.wg.Wait()
	}
}

func (p *platform) Retire(n int) {
	s := p.socket(n)
	_ = p.send(s, `{"retire":true}`)
	p.wg.Go(func() {
		tick := time.NewTicker(time.Millisecond)
		defer tick.Stop()
		for second := time.After(time.Second); ; {
			select {
			case <-s.broken:
				return
			case <-second:
				p.hangUp(s)
				return
			case <-tick.C:
				if p.owes(s) == 0 {
					p.hangUp(s)
					return
				}
			}
		}
	})
}

func (p *platform) owes(s *socket) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return s.owed
}

func (p *platform) Refuse() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refused = true
}

func (p *platform) Limit(after time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.after = after
}

func (p *platform) Garble(n int) {
	for _, text := range []string{"", "}", "[]", `{"id":7}`, `{"id":{}}`, "\xff\x00"} {
		_ = p.send(p.socket(n), text)
	}
}

func (p *platform) Stall(n int) {
	s := p.socket(n)
	p.mu.Lock()
	defer p.mu.Unlock()
	s.stalled = true
}

// accept opens a socket, or tells why not.
func (p *platform) accept() (*socket, *integrations.End) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.refused && p.flaw == "refused is lost":
		return nil, &integrations.End{Why: integrations.Lost, Err: errors.New("status 401")}
	case p.refused:
		return nil, &integrations.End{
			Why: integrations.Refused, Code: "auth_failed", Err: errors.New("status 401"),
		}
	case p.after > 0 && p.flaw == "limit without its wait":
		return nil, &integrations.End{Why: integrations.Limited}
	case p.after > 0:
		return nil, &integrations.End{Why: integrations.Limited, After: p.after}
	}
	s := &socket{
		number: len(p.sockets) + 1, open: true,
		wire: make(chan string, 64), broken: make(chan struct{}), acks: map[message.ID]int{},
	}
	p.sockets = append(p.sockets, s)
	return s, nil
}

// session is the connector's end of a socket.
type session struct {
	p       *platform
	s       *socket
	in      integrations.Intake
	settled chan struct{} // has room for one: something owed was settled
	seen    map[message.ID]bool
	asked   bool

	mu sync.Mutex
	// guarded by mu
	over bool
	owed int
}

// Run implements integrations.Connector.
func (p *platform) Run(ctx context.Context, _ integrations.Cursor, in integrations.Intake) integrations.End {
	if ctx.Err() != nil && p.flaw != "dials when done" {
		return integrations.End{Why: integrations.Stopped}
	}
	s, refusal := p.accept()
	if refusal != nil {
		return *refusal
	}
	if p.flaw == "leaks" {
		p.wg.Go(func() { <-p.closed })
	}
	c := &session{p: p, s: s, in: in, settled: make(chan struct{}, 1), seen: map[message.ID]bool{}}
	defer c.finish()
	return c.serve(ctx)
}

func (c *session) serve(ctx context.Context) integrations.End {
	if c.p.flaw != "never live" {
		c.in.Live()
	}
	quiet := time.NewTicker(20 * time.Millisecond)
	defer quiet.Stop()
	for {
		select {
		case <-ctx.Done():
			return c.leave()
		case <-c.s.broken:
			return c.lost()
		case text := <-c.s.wire:
			c.read(ctx, text)
		case <-quiet.C:
			if c.p.silent(c.s) {
				return integrations.End{Why: integrations.Lost, Err: errors.New("no frame was read")}
			}
		}
	}
}

func (p *platform) silent(s *socket) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return s.stalled && p.flaw != "deaf to silence"
}

func (c *session) lost() integrations.End {
	switch {
	case c.asked && c.p.flaw != "asked is lost":
		return integrations.End{Why: integrations.Asked}
	case c.p.flaw == "lost is stopped":
		return integrations.End{Why: integrations.Stopped}
	case c.p.flaw == "redials by itself":
		_, _ = c.p.accept()
	}
	return integrations.End{Why: integrations.Lost, Err: errors.New("link broke")}
}

// leave waits for what is owed, for a while.
func (c *session) leave() integrations.End {
	grace := time.After(100 * time.Millisecond)
	if c.p.flaw == "stops too late" {
		grace = time.After(time.Second)
	}
	for c.owes() && c.p.flaw != "owes when it stops" {
		select {
		case <-c.settled:
		case <-grace:
			return integrations.End{Why: integrations.Stopped}
		}
	}
	if c.p.flaw == "stop is lost" {
		return integrations.End{Why: integrations.Lost, Err: context.Canceled}
	}
	return integrations.End{Why: integrations.Stopped}
}

func (c *session) owes() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.owed > 0
}

func (c *session) finish() {
	c.mu.Lock()
	c.over = true
	c.mu.Unlock()
	c.p.hangUp(c.s)
}

// read handles one frame.
func (c *session) read(ctx context.Context, text string) {
	var f struct {
		ID     message.ID             `json:"id"`
		Chat   message.ConversationID `json:"chat"`
		Retire bool                   `json:"retire"`
	}
	if err := json.Unmarshal([]byte(text), &f); err != nil && c.p.flaw == "panics on garbage" {
		panic(err)
	}
	if f.Retire {
		c.retire()
	}
	if f.ID == "" {
		return
	}
	if c.seen[f.ID] && c.p.flaw == "drops copies" {
		return
	}
	c.seen[f.ID] = true
	c.offer(ctx, &message.Inbound{
		ID: f.ID, Platform: "memory", Raw: message.Raw(text),
		Conversation: message.Conversation{ID: f.Chat},
	})
}

func (c *session) retire() {
	switch c.p.flaw {
	case "retires in silence":
	case "leaves when asked":
		c.asked = true
		c.in.Retire(time.Second)
		c.p.hangUp(c.s)
	default:
		c.asked = true
		c.in.Retire(time.Second)
	}
}

func (c *session) offer(ctx context.Context, m *message.Inbound) {
	c.count(1)
	a := &ack{c: c, id: m.ID}
	if c.p.flaw == "acks early" {
		_ = a.Settle(message.Accept, nil)
		a = &ack{c: c, id: "nothing"}
	}
	if c.in.Offer(ctx, message.Delivery{Message: m, Ack: a}) != nil {
		c.count(-1)
		if c.p.flaw == "acks what is refused" {
			_ = a.Settle(message.Accept, nil)
		}
	}
}

func (c *session) count(n int) {
	c.mu.Lock()
	c.owed += n
	c.mu.Unlock()
	c.p.mu.Lock()
	c.s.owed += n
	c.p.mu.Unlock()
}

// ack settles one message on its session.
type ack struct {
	c    *session
	id   message.ID
	mu   sync.Mutex
	done bool // guarded by mu
}

// Settle implements message.Ack.
func (a *ack) Settle(v message.Verdict, _ []byte) error {
	a.mu.Lock()
	done := a.done
	a.done = true
	a.mu.Unlock()
	if done && a.c.p.flaw != "acks twice" {
		return nil
	}
	if v == message.Retry && a.c.p.flaw != "acks a retry" {
		a.c.settle("")
		return nil
	}
	if v == message.Drop && a.c.p.flaw == "keeps quiet about a drop" {
		return nil
	}
	return a.c.settle(a.id)
}

func (c *session) settle(id message.ID) error {
	c.mu.Lock()
	over := c.over
	c.mu.Unlock()
	if over && c.p.flaw == "panics after the end" {
		panic("write on a closed socket")
	}
	if over && c.p.flaw != "acks elsewhere" {
		return errOver
	}
	c.p.record(c.s, id)
	c.count(-1)
	select {
	case c.settled <- struct{}{}:
	default:
	}
	return nil
}

func (p *platform) record(s *socket, id message.ID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.flaw == "acks elsewhere" {
		s = p.sockets[len(p.sockets)-1]
	}
	if id != "" {
		s.acks[id]++
	}
}
