package simulate

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/penstock-io/penstock/integrations/dingtalk/dingtalktest"
	"github.com/penstock-io/penstock/message"
)

// place is where something is said, and by whom.
type place struct {
	conversation string
	direct       bool
	nick         string
}

// stage is the platform at play: the gateway, who speaks, and what is shown.
type stage struct {
	// immutable, or safe by themselves
	opts      Options
	gw        *dingtalktest.Gateway
	app       *dingtalktest.App
	stop      func()         // ends the play
	wake      chan struct{}  // never closed; full after a change that is not yet seen
	followers sync.WaitGroup // of pushes; Add by the player and the random speaker

	// owned by the goroutine that plays
	where place
	last  func() error // says the last message again; nil before there is one

	// mu guards what follows. It is held while something is pushed and shown, so that
	// the answer is shown behind it; the gateway's locks are taken within.
	mu       sync.Mutex
	view     view
	book     book
	refusals refusals
	shown    map[int]bool // sockets that have been shown open, and not ended
}

// errTooMany refuses a push.
var errTooMany = fmt.Errorf("%d messages wait for their outcome already", MaxOpen)

// push pushes m and shows it as e.
func (s *stage) push(m dingtalktest.Message, e event) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.book.open) >= MaxOpen {
		return errTooMany
	}
	p, err := s.app.Push(m)
	if err != nil {
		return err
	}
	one := s.book.add(p)
	e.Event, e.N, e.ID = evPush, one.n, p.ID()
	e.Held = len(p.Tries()) == 0
	s.showLocked(e)
	s.followers.Go(func() { s.follow(one) })
	return nil
}

// follow waits for the outcome of a push, and shows it if it is none of an answer.
func (s *stage) follow(one *entry) {
	<-one.pushed.Done()
	ack, err := one.pushed.Wait(context.Background()) // it does not wait
	s.mu.Lock()
	defer s.mu.Unlock()
	s.book.settle(one, ack, err)
	e := event{
		Event: evFailed, N: one.n, ID: one.pushed.ID(), Tries: len(one.pushed.Tries()),
	}
	switch {
	case err == nil:
	case !errors.Is(err, dingtalktest.ErrClosed):
		e.Reason = err.Error()
		s.showLocked(e)
	case s.opts.judged():
		e.Reason = "open at the end"
		s.showLocked(e)
	}
	s.awaken()
}

// awaken lets whoever waits look again.
func (s *stage) awaken() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// standing is how many pushes are open, and for how long the bot has been quiet.
func (s *stage) standing() (open int, quiet time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.book.open), time.Since(s.book.active)
}

// showLocked shows something, and ends the play if that is not possible.
func (s *stage) showLocked(e event) {
	s.view.show(e)
	if s.view.err != nil {
		s.stop()
	}
}

func (s *stage) show(e event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.showLocked(e)
}

// note tells people something that is no event.
func (s *stage) note(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.view.note(fmt.Sprintf(format, args...))
	if s.view.err != nil {
		s.stop()
	}
}

// acked is the gateway's hook for answers.
func (s *stage) acked(a dingtalktest.Ack) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := event{
		Event: evAck, ID: a.Message, Frame: a.Frame, Code: a.Code, Socket: a.Session,
		Late: a.Late, Duplicate: a.Duplicate, Unknown: a.Unknown,
	}
	if one, try := s.book.find(a.Frame); one != nil {
		e.N, e.Tries = one.n, try
		e.Latency = ms(a.Latency)
	}
	if a.Code != http.StatusOK {
		e.Reason = a.Text
	}
	if a.Topic == dingtalktest.TopicCard || a.Topic == dingtalktest.TopicEvents {
		e.Text = a.Data
	}
	s.book.active = time.Now()
	s.showLocked(e)
}

// replied is the gateway's hook for what the bot sends.
func (s *stage) replied(sent dingtalktest.Sent) {
	e := event{
		Event: evReply, Conversation: string(sent.Conversation), Users: sent.Users,
		Route: sent.Route, Format: sent.Format, Title: sent.Title, Text: sent.Text,
		Track: sent.Track, Silent: sent.Silent,
	}
	if e.Text == "" {
		e.Body = sent.Body
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.book.active = time.Now()
	s.showLocked(e)
}

// moved is the gateway's hook for sockets.
func (s *stage) moved(i dingtalktest.SessionInfo) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.showLocked(socketEvent(i))
	if s.shown[i.ID] = true; i.State == dingtalktest.StateClosed {
		delete(s.shown, i.ID)
	}
	s.awaken()
}

// refused is the gateway's hook for refusals.
func (s *stage) refused(r dingtalktest.Refusal) {
	e := refusedEvent(r, s.opts)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.refusals.due(&e, time.Now()) {
		s.showLocked(e)
	}
}

// script does the steps; it ends early, without an error, when ctx is done.
func (s *stage) script(ctx context.Context) error {
	for _, step := range s.opts.Script {
		switch err := s.do(ctx, step.Command); {
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, errQuit): // it is the last line
			return nil
		case err != nil:
			return fmt.Errorf("%s:%d: /%s: %w", s.opts.File, step.Line, step.Verb, err)
		}
	}
	return nil
}

// typed does the lines as they come, until one quits or ctx is done.
func (s *stage) typed(ctx context.Context) {
	lines := s.read(ctx)
	for number := 1; ; number++ {
		var line string
		ok := true
		select {
		case <-ctx.Done():
			return
		case line, ok = <-lines:
		}
		switch {
		case !ok && s.opts.EndWithIn:
			return
		case !ok:
			<-ctx.Done()
			return
		case line == "":
			continue
		}
		c, err := Parse(line)
		if err == nil {
			err = s.do(ctx, c)
		}
		if errors.Is(err, errQuit) || ctx.Err() != nil {
			return
		}
		if err != nil {
			s.wrong(number, err)
		}
	}
}

// wrong tells what is wrong with a typed line.
func (s *stage) wrong(number int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	fmt.Fprintf(s.opts.Err, "line %d: %v\n", number, err)
}

// read gives the lines of In, and closes the channel at their end. Its goroutine
// cannot be waited for, since nothing ends a read of a terminal.
func (s *stage) read(ctx context.Context) <-chan string {
	lines := make(chan string)
	if s.opts.In == nil {
		close(lines)
		return lines
	}
	go func() {
		defer close(lines)
		number := 1
		for in := newLines(s.opts.In); ; number++ {
			if !in.Scan() {
				if err := in.Err(); err != nil {
					s.wrong(number, fmt.Errorf("no line is read any more: %w", err))
				}
				return
			}
			select {
			case lines <- in.Text():
			case <-ctx.Done():
				return
			}
		}
	}()
	return lines
}

// person is the id of somebody by name.
func person(prefix, nick string) message.UserID { return message.UserID(prefix + nick) }
