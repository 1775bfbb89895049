package ops

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/penstock-io/penstock/message"
	"github.com/penstock-io/penstock/relay"
	"github.com/penstock-io/penstock/store"
)

// Engine makes changes to a store: a *relay.Relay while it runs, a *relay.Offline
// while nothing does.
type Engine interface {
	Requeue(ctx context.Context, box store.Box, seq store.Seq) (store.Seq, error)
	Purge(ctx context.Context, box store.Box, seq store.Seq) error
	Replay(ctx context.Context, box store.Box, seq store.Seq, route string) (relay.Replayed, error)
	Send(ctx context.Context, o message.Outbound) (*relay.Sending, error)
	// Running tells which messages are with their handlers, and since when.
	Running() map[store.Seq]time.Time
}

var (
	_ Engine = (*relay.Relay)(nil)
	_ Engine = (*relay.Offline)(nil)
	_ API    = (*Service)(nil)
	_ API    = (*Client)(nil)
)

// Service does the verbs. It is used by any number of goroutines.
type Service struct {
	// Admin reads the store. Without one, all verbs but Send fail.
	Admin store.Admin
	// Engine changes it; required.
	Engine Engine
	// Installations lists those that Trace looks through; required.
	Installations func() []message.InstallationID
	// Edge is the gateway for consumers. Without one, the verbs on it fail.
	Edge Edge
	// Logger is told of each change, never with what people wrote. Default: nobody.
	Logger *slog.Logger
}

// List implements API.
func (s *Service) List(ctx context.Context, q Query) ([]Entry, error) {
	if s.Admin == nil {
		return nil, inWords("", relay.ErrNoAdmin)
	}
	sq, err := q.parse()
	if err != nil {
		return nil, err
	}
	list, err := s.Admin.List(ctx, sq)
	if err != nil {
		return nil, inWords("list "+q.Box, err)
	}
	out := make([]Entry, len(list))
	running := s.running(sq.Box)
	for i := range list {
		out[i] = entry(&list[i])
		out[i].run(running)
	}
	return out, nil
}

// Show implements API.
func (s *Service) Show(ctx context.Context, ref Ref) (Item, error) {
	box, err := s.box(ref)
	if err != nil {
		return Item{}, err
	}
	it, err := s.Admin.Show(ctx, box, ref.Seq)
	if err != nil {
		return Item{}, about(ref, err)
	}
	out := item(&it)
	out.run(s.running(box))
	return out, nil
}

// Requeue implements API.
func (s *Service) Requeue(ctx context.Context, ref Ref) (Moved, error) {
	box, err := s.box(ref)
	if err != nil {
		return Moved{}, err
	}
	if !box.Dead() {
		return Moved{}, badRequest("only dead letters can be requeued, and %s is none", ref)
	}
	e := s.before(ctx, box, ref.Seq)
	seq, err := s.Engine.Requeue(ctx, box, ref.Seq)
	if err != nil {
		return Moved{}, about(ref, err)
	}
	s.logMoved(ctx, "an item was requeued", ref, seq, &e)
	return Moved{Ref: Ref{revived(box).String(), seq}}, nil
}

// Purge implements API.
func (s *Service) Purge(ctx context.Context, ref Ref) error {
	box, err := s.box(ref)
	if err != nil {
		return err
	}
	if err := s.Engine.Purge(ctx, box, ref.Seq); err != nil {
		return about(ref, err)
	}
	return nil
}

// Replay implements API.
func (s *Service) Replay(ctx context.Context, ref Ref, route string) (Moved, error) {
	box, err := s.box(ref)
	if err != nil {
		return Moved{}, err
	}
	if box != store.BoxInbox && box != store.BoxDeadIn {
		return Moved{}, badRequest("only messages can be replayed, and %s is none", ref)
	}
	e := s.before(ctx, box, ref.Seq)
	r, err := s.Engine.Replay(ctx, box, ref.Seq, route)
	if he, ok := errors.AsType[*relay.HandlerError](err); ok {
		return Moved{}, &Error{KindHandler, fmt.Sprintf("%s: %v", ref, he)}
	}
	if errors.Is(err, relay.ErrNoRoute) {
		return Moved{}, saying(err, "there is no route %q", route)
	}
	if err != nil {
		return Moved{}, about(ref, err)
	}
	s.logMoved(ctx, "an item was replayed", ref, r.Seq, &e, "route", route)
	return Moved{Ref: Ref{revived(box).String(), r.Seq}, Done: r.Done, Replies: r.Replies}, nil
}

// box reads the box of a reference, and refuses what needs an administration if
// there is none.
func (s *Service) box(ref Ref) (store.Box, error) {
	if s.Admin == nil {
		return 0, inWords("", relay.ErrNoAdmin)
	}
	if ref.Seq <= 0 {
		return 0, badRequest("%d is not the number of an item", ref.Seq)
	}
	return parseBox(ref.Box)
}

// Send implements API.
func (s *Service) Send(ctx context.Context, m Send) (Sent, error) {
	if err := m.validate(); err != nil {
		return Sent{}, err
	}
	sending, err := s.Engine.Send(ctx, m.outbound())
	switch {
	case errors.Is(err, relay.ErrKnown):
		return Sent{ID: m.ID, State: SendKnown}, nil
	case errors.Is(err, relay.ErrNoInstallation):
		return Sent{}, saying(err, "there is no installation %q", m.Installation)
	case err != nil:
		return Sent{}, inWords("send", err)
	}
	s.logSent(ctx, &m, sending.ID())
	out := Sent{ID: sending.ID(), State: SendQueued}
	if m.Wait <= 0 {
		return out, nil
	}
	wait, cancel := context.WithTimeout(ctx, m.Wait)
	defer cancel()
	receipt, err := sending.Wait(wait)
	if dead, ok := errors.AsType[*relay.DeadError](err); ok {
		out.State, out.Reason = SendDead, dead.Reason
	} else if err == nil {
		out.State, out.Receipt = SendSent, &receipt
	}
	return out, nil // any other error: it is stored, and nobody knows more yet
}

func (m *Send) validate() error {
	switch {
	case m.Installation == "":
		return badRequest("no installation")
	case m.Conversation == "":
		return badRequest("no conversation")
	case strings.TrimSpace(m.Text) == "":
		return badRequest("no text")
	case len(m.Text) > MaxText:
		return badRequest("the text has %d bytes; %d are allowed", len(m.Text), MaxText)
	case m.Wait > MaxWait:
		return badRequest("a wait of %v is above %v", m.Wait, MaxWait)
	}
	return nil
}

func (m *Send) outbound() message.Outbound {
	format := message.FormatText
	if m.Markdown {
		format = message.FormatMarkdown
	}
	return message.Outbound{
		ID: m.ID, Installation: m.Installation, Conversation: m.Conversation,
		Reply: message.Reply{Format: format, Title: m.Title, Text: m.Text, Mentions: m.Mentions},
	}
}
