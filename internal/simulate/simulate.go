package simulate

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/penstock-io/penstock/integrations/dingtalk/dingtalktest"
)

// Errors of Run, beside those of the network and of Out.
var (
	// ErrUnacknowledged means that something that was pushed was not acknowledged
	// with 200. It can be told only of a run with a script or a time.
	ErrUnacknowledged = errors.New("not everything was acknowledged")
	// ErrInterrupted means that such a run was ended before its end.
	ErrInterrupted = errors.New("interrupted before the end")
)

// grace is how long what was said at random may be open when the time is over.
const grace = 5 * time.Second

// Run serves until the script is done and the bot has answered, until the time is
// over, somebody quits, or ctx is done. It waits for all that it started, but for
// one read of Options.In that may still be waiting for a line; what that read brings
// is lost.
func Run(ctx context.Context, o Options) error {
	if err := o.Validate(); err != nil {
		return err
	}
	o = o.withDefaults()
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", o.Listen)
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	playing, stop := context.WithCancel(ctx)
	defer stop()
	s, err := newStage(o, listener, stop)
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	serving, stopGateway := context.WithCancel(context.WithoutCancel(ctx))
	defer stopGateway()
	served := make(chan error, 1)
	go func() {
		defer stop() // a gateway that fails ends the play
		served <- s.gw.Run(serving)
	}()
	s.open()
	err = s.play(playing)
	stopGateway()
	gone := <-served
	s.followers.Wait() // the gateway has settled all pushes
	return errors.Join(err, gone, s.verdict(ctx.Err() != nil))
}

func newStage(o Options, l net.Listener, stop func()) (*stage, error) {
	s := &stage{
		opts: o, stop: stop, wake: make(chan struct{}, 1),
		where: place{conversation: "general", nick: "Tester"},
		view:  newView(o, time.Now()),
		book:  newBook(), refusals: refusals{}, shown: map[int]bool{},
	}
	gw, err := dingtalktest.New(dingtalktest.Config{
		Listener: l, Seed: o.Seed, PlainTickets: !o.AwkwardTickets, Down: dingtalktest.DownHold,
		Apps:  []dingtalktest.Credentials{{ClientID: o.ClientID, Secret: o.Secret}},
		OnAck: s.acked, OnSend: s.replied, OnSession: s.moved, OnRefusal: s.refused,
	})
	if err != nil {
		return nil, err
	}
	s.gw, s.app = gw, gw.App("")
	return s, nil
}

// play does what the script or the lines ask for, beside what is said at random.
func (s *stage) play(ctx context.Context) error {
	bounded, cancel := context.WithCancel(ctx)
	if s.opts.For > 0 {
		bounded, cancel = context.WithTimeout(ctx, s.opts.For)
	}
	defer cancel()
	stopRandom := s.startRandom(bounded)
	defer stopRandom()
	if s.opts.Script == nil {
		s.typed(bounded)
	} else if err := s.script(bounded); err != nil {
		return err
	}
	stopRandom()
	switch {
	case s.opts.Script != nil:
		s.settle(bounded)
	case s.opts.judged() && s.opts.Random:
		last, cancel := context.WithTimeout(ctx, grace)
		defer cancel()
		s.settle(last)
	}
	return nil
}

// settle waits until nothing is open and the bot has been quiet for a while.
func (s *stage) settle(ctx context.Context) {
	for ctx.Err() == nil {
		open, quiet := s.standing()
		if open == 0 && quiet >= s.opts.Quiet {
			return
		}
		again := time.NewTimer(max(s.opts.Quiet-quiet, time.Millisecond))
		if open > 0 {
			again.Stop() // the outcome of a push wakes
		}
		select {
		case <-s.wake:
		case <-again.C:
		case <-ctx.Done():
		}
		again.Stop()
	}
}

// verdict ends the show and tells how it went.
func (s *stage) verdict(interrupted bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.refusals.rest() {
		s.view.show(e)
	}
	s.view.show(s.book.end(s.app.Stats().Sent))
	switch {
	case s.view.err != nil:
		return fmt.Errorf("write: %w", s.view.err)
	case !s.opts.judged():
		return nil
	case interrupted:
		return ErrInterrupted
	case s.book.pushed > s.book.acked:
		return ErrUnacknowledged
	}
	return nil
}
