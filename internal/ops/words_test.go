package ops_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/penstock-io/penstock/internal/ops"
	"github.com/penstock-io/penstock/message"
	"github.com/penstock-io/penstock/relay"
	"github.com/penstock-io/penstock/store"
)

// broken is an engine that fails as the real ones do, inside words of their own.
type broken struct{ err error }

func (b broken) wrapped() error { return fmt.Errorf("relay: %w", b.err) }

func (b broken) Requeue(context.Context, store.Box, store.Seq) (store.Seq, error) {
	return 0, b.wrapped()
}

func (b broken) Purge(context.Context, store.Box, store.Seq) error { return b.wrapped() }

func (b broken) Replay(
	context.Context, store.Box, store.Seq, string,
) (relay.Replayed, error) {
	return relay.Replayed{}, b.wrapped()
}

func (b broken) Send(context.Context, message.Outbound) (*relay.Sending, error) {
	return nil, b.wrapped()
}

func (broken) Running() map[store.Seq]time.Time { return nil }

// Operators know items and services, and no packages; errors.Is still knows what was
// meant, on both sides of the socket.
func TestErrorsAreInWordsOfOperators(t *testing.T) {
	dead := ops.Ref{Box: "dead_in", Seq: 17}
	for _, tt := range []struct {
		err  error
		do   func(ops.API) error
		want string
	}{
		{store.ErrNotFound, requeue(dead), "dead letter 17 is not there"},
		{store.ErrNotFound, purge(ops.Ref{Box: "inbox", Seq: 17}), "message 17 is not in the inbox"},
		{store.ErrNotFound, purge(ops.Ref{Box: "outbox", Seq: 17}), "reply 17 is not in the outbox"},
		{store.ErrFull, requeue(dead), "dead_in 17: the store is full"},
		{relay.ErrClosed, requeue(dead), "dead_in 17: the service is stopping"},
		{store.ErrClosed, purge(dead), "dead_in 17: the service is stopping"},
		{relay.ErrBusy, replay(dead), "dead_in 17: too many replays wait for their turn; try again later"},
		{relay.ErrNoRoute, replay(dead), `there is no route "r"`},
		{relay.ErrNoInstallation, replay(dead), "dead_in 17: its installation is not configured"},
		{relay.ErrNoInstallation, send, `there is no installation "bto"`},
		{relay.ErrClosed, send, "send: the service is stopping"},
		{store.ErrNotFound, trace, `nothing is known of a message "m99"`},
		{ops.ErrBadRequest, requeue(ops.Ref{Box: "inbox", Seq: 1}), "only dead letters can be requeued, and inbox 1 is none"},
	} {
		s := offline(t, stored(t))
		s.Engine = broken{tt.err}
		for _, api := range []ops.API{s, serve(t, s)} {
			err := tt.do(api)
			require.ErrorIs(t, err, tt.err)
			require.EqualError(t, err, tt.want)
		}
	}
}

func requeue(ref ops.Ref) func(ops.API) error {
	return func(api ops.API) error {
		_, err := api.Requeue(context.Background(), ref)
		return err
	}
}

func purge(ref ops.Ref) func(ops.API) error {
	return func(api ops.API) error { return api.Purge(context.Background(), ref) }
}

func replay(ref ops.Ref) func(ops.API) error {
	return func(api ops.API) error {
		_, err := api.Replay(context.Background(), ref, "r")
		return err
	}
}

func send(api ops.API) error {
	_, err := api.Send(context.Background(), ops.Send{Installation: "bto", Conversation: "c", Text: "x"})
	return err
}

func trace(api ops.API) error {
	_, err := api.Trace(context.Background(), "", "m99")
	return err
}

// What an operator changes is logged, a line for each change, without any text.
func TestChangesAreLogged(t *testing.T) {
	var log bytes.Buffer
	s := offline(t, stored(t))
	s.Edge = newGateway()
	s.Logger = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{
		ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		},
	}))
	said := func() string {
		defer log.Reset()
		return log.String()
	}
	_, err := s.Requeue(t.Context(), ops.Ref{Box: "dead_in", Seq: 3})
	require.NoError(t, err)
	require.Equal(t, `level=INFO msg="an item was requeued" box=dead_in number=3 to=5 `+
		"installation=bot conversation=a message_id=m3\n", said())
	_, err = s.Replay(t.Context(), ops.Ref{Box: "inbox", Seq: 5}, "echo")
	require.NoError(t, err)
	require.Equal(t, `level=INFO msg="an item was replayed" box=inbox number=5 to=5 `+
		"installation=bot conversation=a message_id=m3 route=echo\n", said())
	m := ops.Send{ID: "s1", Installation: "bot", Conversation: "b", Title: "secret title", Text: "secret text"}
	_, err = s.Send(t.Context(), m)
	require.NoError(t, err)
	require.Equal(t, `level=INFO msg="a message was queued by an operator" box=outbox `+
		"installation=bot conversation=b message_id=s1\n", said())
	_, err = s.Resend(t.Context(), "f1")
	require.NoError(t, err)
	require.Equal(t, `level=INFO msg="a frame was resent" frame_id=f1 consumer=one connection=c1 `+
		"installation=bot message_id=m-f1\n", said())

	// What changes nothing is not told.
	_, err = s.Send(t.Context(), m)
	require.NoError(t, err)
	_, err = s.Requeue(t.Context(), ops.Ref{Box: "dead_in", Seq: 3})
	require.Error(t, err)
	_, err = s.Replay(t.Context(), ops.Ref{Box: "inbox", Seq: 1}, "bad")
	require.Error(t, err)
	_, err = s.Resend(t.Context(), "f2")
	require.Error(t, err)
	_, err = s.List(t.Context(), ops.Query{Box: "inbox"})
	require.NoError(t, err)
	require.Empty(t, said())
}
