package ops_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/penstock-io/penstock/internal/ops"
	"github.com/penstock-io/penstock/message"
	"github.com/penstock-io/penstock/relay"
	"github.com/penstock-io/penstock/store"
)

func TestListSelects(t *testing.T) {
	both(t, func(t *testing.T, api ops.API, _ kept) {
		for _, tt := range []struct {
			query ops.Query
			want  []store.Seq
		}{
			{ops.Query{Box: "inbox"}, []store.Seq{1, 2}},
			{ops.Query{Box: "inbox", Limit: 1}, []store.Seq{1}},
			{ops.Query{Box: "inbox", After: 1}, []store.Seq{2}},
			{ops.Query{Box: "inbox", Conversation: "b"}, []store.Seq{2}},
			{ops.Query{Box: "inbox", Installation: "other"}, nil},
			{ops.Query{Box: "inbox", State: "pending"}, []store.Seq{1, 2}},
			{ops.Query{Box: "inbox", Since: time.Now().Add(time.Hour)}, nil},
			{ops.Query{Box: "inbox", Until: time.Now().Add(time.Hour)}, []store.Seq{1, 2}},
			{ops.Query{Box: "outbox", State: "sending"}, nil},
			{ops.Query{Box: "outbox"}, []store.Seq{2}},
			{ops.Query{Box: "dead_in", Reason: "does not go"}, []store.Seq{3}},
			{ops.Query{Box: "dead_in", Reason: "refused"}, nil},
			{ops.Query{Box: "dead_out"}, []store.Seq{1}},
		} {
			list, err := api.List(t.Context(), tt.query)
			require.NoError(t, err)
			var got []store.Seq
			for _, e := range list {
				got = append(got, e.Seq)
			}
			require.Equal(t, tt.want, got, "%+v", tt.query)
		}
		for _, q := range []ops.Query{
			{}, {Box: "attic"}, {Box: "inbox", State: "asleep"}, {Box: "dead_in", State: "pending"},
		} {
			_, err := api.List(t.Context(), q)
			require.ErrorIs(t, err, ops.ErrBadRequest, "%+v", q)
		}
	})
}

func TestEntriesHaveTheirDocumentedFields(t *testing.T) {
	both(t, func(t *testing.T, api ops.API, _ kept) {
		list, err := api.List(t.Context(), ops.Query{Box: "dead_in"})
		require.NoError(t, err)
		require.WithinDuration(t, time.Now(), list[0].Since, time.Minute)
		list[0].Since = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
		b, err := json.Marshal(list[0])
		require.NoError(t, err)
		require.JSONEq(t, `{"box":"dead_in","seq":3,"id":"m3","installation":"bot","conversation":"a",
			"state":"dead","attempts":8,"since":"2026-01-02T03:04:05Z",
			"reason":"attempts: it does not go"}`, string(b))
	})
}

func TestShowHidesAddresses(t *testing.T) {
	both(t, func(t *testing.T, api ops.API, _ kept) {
		it, err := api.Show(t.Context(), ops.Ref{Box: "dead_in", Seq: 3})
		require.NoError(t, err)
		require.Equal(t, "text of m3", it.Message.Text)
		require.Equal(t, `{"sessionWebhook":"[secret]","n":1}`, string(it.Message.Raw))
		require.Nil(t, it.Reply)

		it, err = api.Show(t.Context(), ops.Ref{Box: "outbox", Seq: 2})
		require.NoError(t, err)
		require.Equal(t, "answer", it.Reply.Text)
		require.True(t, it.Reply.HasTarget)
		b, err := json.Marshal(it)
		require.NoError(t, err)
		require.NotContains(t, string(b), secret)

		_, err = api.Show(t.Context(), ops.Ref{Box: "inbox", Seq: 3})
		require.ErrorIs(t, err, store.ErrNotFound)
		_, err = api.Show(t.Context(), ops.Ref{Box: "inbox"})
		require.ErrorIs(t, err, ops.ErrBadRequest)
	})
}

func TestRequeueAndPurge(t *testing.T) {
	both(t, func(t *testing.T, api ops.API, s kept) {
		m, err := api.Requeue(t.Context(), ops.Ref{Box: "dead_in", Seq: 3})
		require.NoError(t, err)
		require.Equal(t, "inbox", m.Box)
		require.Greater(t, m.Seq, store.Seq(4))
		m, err = api.Requeue(t.Context(), ops.Ref{Box: "dead_out", Seq: 1})
		require.NoError(t, err)
		require.Equal(t, "outbox", m.Box)
		_, err = api.Requeue(t.Context(), ops.Ref{Box: "dead_in", Seq: 3})
		require.ErrorIs(t, err, store.ErrNotFound)
		_, err = api.Requeue(t.Context(), ops.Ref{Box: "inbox", Seq: 1})
		require.ErrorIs(t, err, ops.ErrBadRequest)

		require.NoError(t, api.Purge(t.Context(), ops.Ref{Box: "inbox", Seq: 1}))
		require.ErrorIs(t, api.Purge(t.Context(), ops.Ref{Box: "inbox", Seq: 1}), store.ErrNotFound)
		c, err := s.Counts(t.Context())
		require.NoError(t, err)
		require.Equal(t, [4]int64{2, 2, 0, 0}, [4]int64{c.Inbox, c.Outbox, c.DeadInbox, c.DeadOutbox})
	})
}

func TestReplay(t *testing.T) {
	both(t, func(t *testing.T, api ops.API, _ kept) {
		ref := ops.Ref{Box: "dead_in", Seq: 3}
		_, err := api.Replay(t.Context(), ref, "bad")
		require.ErrorIs(t, err, ops.ErrHandler)
		require.NotErrorIs(t, err, store.ErrNotFound, "that is the handler's")
		_, err = api.Replay(t.Context(), ref, "none")
		require.ErrorIs(t, err, relay.ErrNoRoute)
		_, err = api.Replay(t.Context(), ops.Ref{Box: "outbox", Seq: 2}, "echo")
		require.ErrorIs(t, err, ops.ErrBadRequest)
		m, err := api.Replay(t.Context(), ref, "echo")
		require.NoError(t, err)
		require.True(t, m.Done)
		require.Equal(t, 1, m.Replies)
		require.Equal(t, "inbox", m.Box)
	})
}

func TestSendToAStoppedService(t *testing.T) {
	both(t, func(t *testing.T, api ops.API, s kept) {
		m := ops.Send{
			ID: "s1", Installation: "bot", Conversation: "a", Text: "hello", Markdown: true, Title: "T",
			Mentions: []message.UserID{"u1"}, Wait: time.Minute,
		}
		sent, err := api.Send(t.Context(), m)
		require.NoError(t, err)
		require.Equal(t, ops.Sent{ID: "s1", State: ops.SendQueued}, sent)
		it, err := api.Show(t.Context(), ops.Ref{Box: "outbox", Seq: 3})
		require.NoError(t, err)
		require.Equal(t, message.FormatMarkdown, it.Reply.Format)
		require.Equal(t, []message.UserID{"u1"}, it.Reply.Mentions)
		sent, err = api.Send(t.Context(), m)
		require.NoError(t, err)
		require.Equal(t, ops.SendKnown, sent.State)

		m.Installation = "none"
		_, err = api.Send(t.Context(), m)
		require.ErrorIs(t, err, relay.ErrNoInstallation)
		for _, bad := range []ops.Send{
			{},
			{Installation: "bot"},
			{Installation: "bot", Conversation: "a", Text: " \n"},
			{Installation: "bot", Conversation: "a", Text: strings.Repeat("x", ops.MaxText+1)},
			{Installation: "bot", Conversation: "a", Text: "x", Wait: ops.MaxWait + 1},
		} {
			_, err = api.Send(t.Context(), bad)
			require.ErrorIs(t, err, ops.ErrBadRequest)
		}
	})
}

func TestTrace(t *testing.T) {
	bothOn(t, openFile, func(t *testing.T, api ops.API, _ kept) {
		list, err := api.Trace(t.Context(), "", "m3")
		require.NoError(t, err)
		require.Len(t, list, 1)
		tr := list[0]
		require.Equal(t, message.InstallationID("bot"), tr.Installation)
		require.Equal(t, "dead", tr.State)
		require.Equal(t, message.FrameID("f-m3"), tr.FrameID)
		require.Equal(t, 8, tr.Attempts)
		require.Contains(t, tr.Reason, "it does not go")

		list, err = api.Trace(t.Context(), "bot", "m4")
		require.NoError(t, err)
		require.Equal(t, "done", list[0].State)
		require.Len(t, list[0].Replies, 2)
		require.Equal(t, "dead", list[0].Replies[0].State)
		require.Equal(t, "pending", list[0].Replies[1].State)

		_, err = api.Trace(t.Context(), "other", "m4")
		require.ErrorIs(t, err, store.ErrNotFound)
		_, err = api.Trace(t.Context(), "", "m99")
		require.ErrorIs(t, err, store.ErrNotFound)
		_, err = api.Trace(t.Context(), "", "")
		require.ErrorIs(t, err, ops.ErrBadRequest)
	})
}

func TestTraceOfWhatWasSent(t *testing.T) {
	bothOn(t, openFile, func(t *testing.T, api ops.API, s kept) {
		commit(t, s, &store.Begin{Seq: 2, Attempts: 1},
			&store.Sent{Seq: 2, Receipt: message.Receipt{ID: "r9", Route: "webhook"}})
		list, err := api.Trace(t.Context(), "bot", "m4")
		require.NoError(t, err)
		r := list[0].Replies[1]
		require.Equal(t, ops.SendSent, r.State)
		require.Equal(t, &message.Receipt{ID: "r9", Route: "webhook"}, r.Receipt)
	})
}

func TestWithoutAnAdministration(t *testing.T) {
	s := offline(t, stored(t))
	s.Admin = nil
	api := serve(t, s)
	_, err := api.List(t.Context(), ops.Query{Box: "inbox"})
	require.ErrorIs(t, err, relay.ErrNoAdmin)
	_, err = api.Show(t.Context(), ops.Ref{Box: "inbox", Seq: 1})
	require.ErrorIs(t, err, relay.ErrNoAdmin)
	_, err = api.Trace(t.Context(), "bot", "m1")
	require.ErrorIs(t, err, relay.ErrNoAdmin)
}

func TestWalkTurnsPages(t *testing.T) {
	s := stored(t)
	var all []store.Op
	for i := range 2 * ops.MaxPage {
		all = append(all, &store.Append{Message: inbound(fmt.Sprintf("w%d", i), "w")})
	}
	commit(t, s, all...)
	api := serve(t, offline(t, s))
	for _, tt := range []struct{ limit, want int }{
		{0, 2 * ops.MaxPage}, {1, 1}, {ops.MaxPage + 1, ops.MaxPage + 1}, {5 * ops.MaxPage, 2 * ops.MaxPage},
	} {
		refs, err := ops.Collect(t.Context(), api, ops.Query{Box: "inbox", Conversation: "w"}, tt.limit)
		require.NoError(t, err)
		require.Len(t, refs, tt.want)
		for i := range refs[1:] {
			require.Less(t, refs[i].Seq, refs[i+1].Seq)
		}
	}
}
