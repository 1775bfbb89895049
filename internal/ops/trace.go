package ops

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/penstock-io/penstock/message"
	"github.com/penstock-io/penstock/relay"
	"github.com/penstock-io/penstock/store"
)

// Trace implements API.
func (s *Service) Trace(
	ctx context.Context, in message.InstallationID, id message.ID,
) ([]Trace, error) {
	if s.Admin == nil {
		return nil, inWords("", relay.ErrNoAdmin)
	}
	if id == "" {
		return nil, badRequest("no message id")
	}
	where := []message.InstallationID{in}
	if in == "" {
		where = s.Installations()
	}
	var found []Trace
	for _, in := range where {
		h, err := s.Admin.Trace(ctx, in, id)
		if errors.Is(err, store.ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, inWords(fmt.Sprintf("trace %s", id), err)
		}
		found = append(found, s.trace(ctx, in, id, &h))
	}
	if len(found) == 0 {
		return nil, saying(store.ErrNotFound, "nothing is known of a message %q", id)
	}
	return found, nil
}

// trace adds to a history what the kept message tells.
func (s *Service) trace(
	ctx context.Context, in message.InstallationID, id message.ID, h *store.History,
) Trace {
	t := Trace{
		Installation: in, ID: id, Seq: h.Seq, State: h.State.String(), Received: h.Received,
		Attempts: h.Attempts, NextAttempt: h.At, Ended: h.Ended, Reason: h.Reason,
		Replies: make([]ReplyTrace, len(h.Replies)),
	}
	for i := range h.Replies {
		t.Replies[i] = replyTrace(&h.Replies[i])
	}
	if since, ok := s.Engine.Running()[h.Seq]; ok && h.State == store.StatePending {
		t.RunningSince, t.NextAttempt, t.Out = since, time.Time{}, s.out(in, id)
	}
	box := store.BoxInbox
	if h.State == store.StateDead {
		box = store.BoxDeadIn
	}
	// It may have ended since, or be kept no more; then nothing is added.
	if it, err := s.Admin.Show(ctx, box, h.Seq); err == nil && it.Message != nil {
		t.FrameID, t.Conversation = it.Message.FrameID, it.Conversation
	}
	return t
}

// out finds the frame by which a consumer has a message.
func (s *Service) out(in message.InstallationID, id message.ID) *Frame {
	if s.Edge == nil {
		return nil
	}
	for _, f := range s.Edge.Frames() {
		if f.Waiting && f.Message == id && f.Installation == in {
			return &f
		}
	}
	return nil
}

// running gives the messages of a box that are with their handlers.
func (s *Service) running(b store.Box) map[store.Seq]time.Time {
	if b != store.BoxInbox {
		return nil
	}
	return s.Engine.Running()
}

// run notes that an entry is with its handler, if it is.
func (e *Entry) run(running map[store.Seq]time.Time) {
	if since, ok := running[e.Seq]; ok {
		e.RunningSince, e.NextAttempt, e.Reason = since, time.Time{}, ""
	}
}

func replyTrace(h *store.ReplyHistory) ReplyTrace {
	r := ReplyTrace{
		Seq: h.Seq, State: h.State.String(), Attempts: h.Attempts, NextAttempt: h.At,
		Ended: h.Ended, Reason: h.Reason,
	}
	if h.State == store.StateDone {
		r.State = SendSent
		r.Receipt = &h.Receipt
	}
	return r
}
