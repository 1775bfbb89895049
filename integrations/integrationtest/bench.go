package integrationtest

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/penstock-io/penstock/integrations"
	"github.com/penstock-io/penstock/message"
)

// chat is the conversation of messages whose conversation does not matter.
const chat message.ConversationID = "conversation-1"

// errClosed is what a core that has closed answers to an offer.
var errClosed = errors.New("core is closed")

// bench is one check's gateway and connector.
type bench struct {
	Gateway
	t       TB
	env     Env
	conn    integrations.Connector
	profile integrations.Profile
	links   []*link // in order of opening
}

// newBench starts a gateway. What it and the connector leave behind is a failure.
func newBench(t TB, env Env) *bench {
	t.Helper()
	before := goleak.IgnoreCurrent()
	b := &bench{Gateway: env.New(t), t: t, env: env}
	t.Cleanup(func() {
		b.stop()
		b.Close()
		if err := goleak.Find(before); err != nil {
			t.Errorf("goroutines were left behind: %v", err)
		}
	})
	env.Features.require(t, b.Gateway)
	b.conn = b.Connector()
	b.profile = b.conn.Profile()
	return b
}

// stop ends all sessions.
func (b *bench) stop() {
	for _, l := range b.links {
		l.cancel()
	}
	for _, l := range b.links {
		select {
		case <-l.over:
		case <-time.After(b.env.Grace + b.env.Patience):
			b.t.Errorf("a session goes on after its context has ended")
		}
	}
}

// link is one session as the core sees it: an Intake that remembers.
type link struct {
	b      *bench
	number int // the gateway's number
	cancel context.CancelFunc
	over   chan struct{} // closed when Run has returned
	end    integrations.End

	live   chan struct{} // closed by the first Live
	retire chan struct{} // closed by the first Retire
	offers chan message.Delivery

	onceLive, onceRetire sync.Once
	closed               bool // Offer refuses; set before Run
}

// run calls Run without waiting for a session.
func (b *bench) run(ctx context.Context, closed bool) *link {
	ctx, cancel := context.WithCancel(ctx)
	l := &link{
		b: b, cancel: cancel, closed: closed,
		over:   make(chan struct{}),
		live:   make(chan struct{}),
		retire: make(chan struct{}),
		offers: make(chan message.Delivery, 64),
	}
	b.links = append(b.links, l)
	go func() {
		defer close(l.over)
		defer func() {
			if v := recover(); v != nil {
				b.t.Errorf("Run panicked: %v", v)
			}
		}()
		l.end = b.conn.Run(ctx, nil, l)
	}()
	return l
}

// dial opens a session and waits until the gateway has it.
func (b *bench) dial() *link {
	b.t.Helper()
	before := b.Sessions()
	l := b.run(context.Background(), false)
	b.eventually("the gateway has a new session", func() bool {
		for _, n := range b.Sessions() {
			if !slices.Contains(before, n) {
				l.number = n
			}
		}
		return l.number != 0
	})
	return l
}

// Live implements integrations.Intake.
func (l *link) Live() { l.onceLive.Do(func() { close(l.live) }) }

// Offer implements integrations.Intake.
func (l *link) Offer(_ context.Context, d message.Delivery) error {
	if l.closed {
		return errClosed
	}
	select {
	case l.offers <- d:
	default:
		l.b.t.Errorf("more was offered than was pushed")
	}
	return nil
}

// Retire implements integrations.Intake.
func (l *link) Retire(time.Duration) { l.onceRetire.Do(func() { close(l.retire) }) }

// push sends a message on the session.
func (l *link) push(m message.ID) {
	l.b.t.Helper()
	require.NoError(l.b.t, l.b.Push(l.number, m, chat), "push")
}

// next waits for the delivery of a message; what was pushed must come in order,
// except for deliveries with a defect, which only garbage makes.
func (l *link) next(m message.ID) message.Delivery {
	l.b.t.Helper()
	d, ok := l.receive(m, nil)
	require.True(l.b.t, ok, "a message was not offered: %s", m)
	return d
}

// survives tells whether a message is offered before the session ends.
func (l *link) survives(m message.ID) bool {
	l.b.t.Helper()
	_, ok := l.receive(m, l.over)
	return ok
}

func (l *link) receive(m message.ID, over <-chan struct{}) (message.Delivery, bool) {
	l.b.t.Helper()
	deadline := time.After(l.b.env.Patience)
	for {
		select {
		case d := <-l.offers:
			if d.Defect != "" {
				continue
			}
			require.NotNil(l.b.t, d.Message, "a delivery without a message")
			require.NotNil(l.b.t, d.Ack, "a delivery without an ack")
			require.Equal(l.b.t, m, d.Message.ID)
			return d, true
		case <-over:
			return message.Delivery{}, false
		case <-deadline:
			return message.Delivery{}, false
		}
	}
}

// deliver pushes a message and waits for it.
func (l *link) deliver(m message.ID) message.Delivery {
	l.b.t.Helper()
	l.push(m)
	return l.next(m)
}

// settle settles a delivery on a live session.
func (l *link) settle(d message.Delivery, v message.Verdict) {
	l.b.t.Helper()
	require.NoError(l.b.t, d.Ack.Settle(v, nil), "settle")
}

// acked waits until the gateway has an ack of the session.
func (l *link) acked(m message.ID) {
	l.b.t.Helper()
	l.b.eventually("the gateway has the ack of "+string(m)+" on the session that brought it",
		func() bool { return l.b.Acks(l.number, m) > 0 })
}

// fence makes sure that everything settled so far has reached the gateway.
func (l *link) fence() {
	l.b.t.Helper()
	d := l.deliver("fence")
	l.settle(d, message.Accept)
	l.acked("fence")
}

// ended waits for the end of the session.
func (l *link) ended(why integrations.Why, within time.Duration) integrations.End {
	l.b.t.Helper()
	l.b.await("Run returns", l.over, within)
	require.Equal(l.b.t, why.String(), l.end.Why.String(), "why it ended (%v)", l.end.Err)
	return l.end
}

func (b *bench) await(what string, c <-chan struct{}, within time.Duration) {
	b.t.Helper()
	select {
	case <-c:
	case <-time.After(within):
		require.Fail(b.t, "did not happen: "+what)
	}
}

func (b *bench) eventually(what string, holds func() bool) {
	b.t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	deadline := time.After(b.env.Patience)
	for !holds() {
		select {
		case <-tick.C:
		case <-deadline:
			require.Fail(b.t, "did not happen: "+what)
		}
	}
}
