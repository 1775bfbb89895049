package ops

import (
	"context"
	"log/slog"

	"github.com/penstock-io/penstock/message"
	"github.com/penstock-io/penstock/store"
)

// What an operator changes is logged, one line for each item and act, and never with
// what people wrote. A purge is not logged here because the relay does it.

// before gives the entry of an item that is about to move, for the log: nobody may be
// able to look it up afterwards. It is empty if nobody logs, or nothing is there.
func (s *Service) before(ctx context.Context, box store.Box, seq store.Seq) store.Entry {
	if s.Logger == nil || !s.Logger.Enabled(ctx, slog.LevelInfo) {
		return store.Entry{}
	}
	it, _ := s.Admin.Show(ctx, box, seq) // the change itself tells what is wrong
	return it.Entry
}

// logMoved tells that an item is somewhere else now.
func (s *Service) logMoved(
	ctx context.Context, act string, from Ref, to store.Seq, e *store.Entry, more ...any,
) {
	args := append([]any{
		"box", from.Box, "number", int64(from.Seq), "to", int64(to),
		"installation", string(e.Installation), "conversation", string(e.Conversation),
		"message_id", string(e.ID),
	}, more...)
	s.info(ctx, act, args...)
}

// logSent tells that a message of an operator's own is in the outbox.
func (s *Service) logSent(ctx context.Context, m *Send, id message.ID) {
	s.info(ctx, "a message was queued by an operator", "box", store.BoxOutbox.String(),
		"installation", string(m.Installation), "conversation", string(m.Conversation),
		"message_id", string(id))
}

// logResent tells that a frame goes to its consumer once more.
func (s *Service) logResent(ctx context.Context, f *Frame) {
	s.info(ctx, "a frame was resent", "frame_id", f.ID, "consumer", f.Consumer,
		"connection", f.Connection, "installation", string(f.Installation),
		"message_id", string(f.Message))
}

func (s *Service) info(ctx context.Context, act string, args ...any) {
	if s.Logger != nil {
		s.Logger.InfoContext(ctx, act, args...)
	}
}
