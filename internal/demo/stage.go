package demo

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/penstock-io/penstock/integrations/dingtalk/dingtalktest"
	"github.com/penstock-io/penstock/message"
)

// stage pushes the traffic and breaks the sockets. It is owned by one goroutine.
type stage struct {
	opts   Options
	gw     *dingtalktest.Gateway
	svc    *service
	book   *ledger
	began  time.Time
	pushed int
	kills  int
	err    error // of a start after a kill
	next   []int // number of the next message, by conversation
	copies []dup // duplicates to push soon
}

// dup is a message that the gateway pushes twice, as the platform does.
type dup struct {
	app int
	msg dingtalktest.Robot
	at  time.Time
}

func (s *stage) app(i int) *dingtalktest.App { return s.gw.App(clientID(i)) }

// errEnded means that the service ended by itself.
var errEnded = errors.New("the service ended")

// connected waits until every installation has a socket.
func (s *stage) connected(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startFor)
	defer cancel()
	c := s.svc.child
	ctx, ended := context.WithCancelCause(ctx)
	go func() {
		select {
		case <-c.done:
			ended(errEnded)
		case <-ctx.Done():
		}
	}()
	defer ended(nil)
	for i := range installations {
		err := s.app(i).AwaitSessions(ctx, 1)
		if errors.Is(context.Cause(ctx), errEnded) {
			return fmt.Errorf("demo: %w with %w: %s", errEnded, c.err, c.last)
		}
		if err != nil {
			return fmt.Errorf("demo: installation %d did not connect: %w", i+1, err)
		}
	}
	return nil
}

// isConnected tells whether every installation has a socket now.
func (s *stage) isConnected() bool {
	for i := range installations {
		if len(s.app(i).Sessions()) == 0 {
			return false
		}
	}
	return true
}

// fault is something that is done when part of the time has passed.
type fault struct {
	part float64
	note string
	do   func(*stage)
}

// lossless tells that nothing which was pushed is lost by the fault.
func (f fault) lossless() bool { return strings.HasSuffix(f.note, "planned redial") }

var faults = []fault{
	{.08, "bot 1: planned redial", func(s *stage) { s.disconnect(0) }},
	{.16, "bot 2: planned redial", func(s *stage) { s.disconnect(1) }},
	{.24, "bot 3: planned redial", func(s *stage) { s.disconnect(2) }},
	{.30, "bot 1: socket cut", func(s *stage) { s.app(0).Cut() }},
	{.38, "bot 2: socket black-holed", func(s *stage) { s.blackHole(1) }},
	{.55, "bot 3: planned redial", func(s *stage) { s.disconnect(2) }},
	{.60, "the service: killed, started again", (*stage).kill},
	{.68, "bot 1: planned redial", func(s *stage) { s.disconnect(0) }},
	{.78, "all bots: planned redial", func(s *stage) {
		for i := range installations {
			s.disconnect(i)
		}
	}},
	{.88, "bot 3: socket cut", func(s *stage) { s.app(2).Cut() }},
}

func (s *stage) disconnect(i int) {
	app := s.app(i)
	newest := 0
	for _, session := range app.Sessions() {
		newest = max(newest, session.Info().ID)
	}
	s.book.asked(app, newest)
	app.Disconnect()
}

func (s *stage) blackHole(i int) {
	for _, session := range s.app(i).Sessions() {
		session.BlackHole(false)
	}
}

// mayBreak tells whether the fault would test the service. While a socket is missing
// after a kill it would hit nothing; while a second push is at hand it would take the
// platform's last word on a message that the service never had.
func (s *stage) mayBreak(f fault) bool {
	return (s.kills == 0 || s.isConnected()) && (f.lossless() || s.book.lastChances() == 0)
}

// kill ends the service in the middle of everything and starts it again.
func (s *stage) kill() {
	s.kills++
	s.book.killed()
	s.err = s.svc.kill()
}

// step is the grain of the traffic.
const step = 5 * time.Millisecond

// progressEvery is the period of progress reports.
const progressEvery = 200 * time.Millisecond

// traffic pushes for the demo's time.
func (s *stage) traffic(ctx context.Context) {
	rng := rand.New(rand.NewPCG(s.opts.Seed, 0)) //nolint:gosec // to be repeatable
	s.next = make([]int, s.opts.Conversations)
	s.began = time.Now()
	tick := time.NewTicker(step)
	defer tick.Stop()
	todo := faults
	var reported time.Time
	for {
		elapsed := time.Since(s.began)
		if ctx.Err() != nil || s.err != nil || elapsed >= s.opts.For {
			return
		}
		for s.pushed < int(elapsed.Seconds()*float64(s.opts.Rate)) {
			s.push(rng)
		}
		s.pushCopies()
		due := len(todo) > 0 && elapsed.Seconds() >= todo[0].part*s.opts.For.Seconds()
		if due && s.mayBreak(todo[0]) {
			todo[0].do(s)
			s.report(todo[0].note)
			todo = todo[1:]
		}
		if time.Since(reported) >= progressEvery {
			reported = time.Now()
			s.report("")
		}
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
	}
}

// push sends the next message of a random conversation; one in fifty is pushed
// again a little later.
func (s *stage) push(rng *rand.Rand) {
	c := rng.IntN(s.opts.Conversations)
	i := c % installations
	s.next[c]++
	s.pushed++
	id := message.ID(fmt.Sprintf("msgDemo%06d==", s.pushed))
	text := fmt.Sprintf("conversation %d: question %d", c, s.next[c])
	m := dingtalktest.Text(message.ConversationID(fmt.Sprintf("cidDemo%04d==", c)), text)
	m.ID = id
	s.book.push(id, s.next[c], replyText(i, c, s.next[c]))
	s.send(i, m)
	if rng.IntN(50) == 0 {
		wait := time.Duration(rng.IntN(500)) * time.Millisecond
		s.copies = append(s.copies, dup{i, m, time.Now().Add(wait)})
	}
}

func (s *stage) send(i int, m dingtalktest.Robot) {
	p, err := s.app(i).Push(m)
	if err != nil {
		return // the gateway is stopping; the message counts as lost
	}
	s.book.pushed(m.ID, p)
}

func (s *stage) pushCopies() {
	now := time.Now()
	rest := s.copies[:0]
	for _, d := range s.copies {
		if d.at.After(now) {
			rest = append(rest, d)
			continue
		}
		s.send(d.app, d.msg)
	}
	s.copies = rest
}

// settle waits until everything has been handled and answered.
func (s *stage) settle(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, settleFor)
	defer cancel()
	tick := time.NewTicker(progressEvery)
	defer tick.Stop()
	for s.err == nil && !s.book.settled() {
		s.report("")
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
	s.report("")
}

func (s *stage) redials() int {
	n := -installations
	for i := range installations {
		n += s.app(i).Stats().Dials
	}
	return max(n, 0)
}

func (s *stage) report(note string) {
	acked, handled, replied := s.book.counts()
	s.opts.Progress(Progress{
		Elapsed: time.Since(s.began), For: s.opts.For, Pushed: s.pushed,
		Acked: acked, Handled: handled, Replied: replied, Redials: s.redials(), Note: note,
	})
}
