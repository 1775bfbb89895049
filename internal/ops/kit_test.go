package ops_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/penstock-io/penstock/internal/ops"
	"github.com/penstock-io/penstock/message"
	"github.com/penstock-io/penstock/relay"
	"github.com/penstock-io/penstock/router"
	"github.com/penstock-io/penstock/store"
	"github.com/penstock-io/penstock/store/memory"
	"github.com/penstock-io/penstock/store/sqlite"
)

const secret = "s3cr3tsession"

// sender sends nothing: what it is asked for is for the relay to keep.
type sender struct{}

func (sender) Address(*message.Inbound) (message.Target, error) {
	return message.Target(`{"webhook":"https://h/s?session=` + secret + `"}`), nil
}

func (sender) Split(o message.Outbound) []message.Outbound { return []message.Outbound{o} }

func (sender) Send(_ context.Context, o message.Outbound) (message.Receipt, error) {
	if o.Text == "never" {
		return message.Receipt{}, &message.SendError{Next: message.NextNever, Err: errors.New("refused")}
	}
	return message.Receipt{ID: "r1", Route: "webhook"}, nil
}

// kept is a store that an operator can look into.
type kept interface {
	store.Store
	store.Admin
}

// openMemory opens a store that knows little of what has ended.
func openMemory(t *testing.T) kept {
	t.Helper()
	s, err := memory.New(memory.Config{})
	require.NoError(t, err)
	return s
}

// openFile opens a store that knows more.
func openFile(t *testing.T) kept {
	t.Helper()
	s, err := sqlite.Open(t.Context(), sqlite.Config{Path: filepath.Join(t.TempDir(), "s.db")})
	require.NoError(t, err)
	return s
}

// stored is a store in memory, filled.
func stored(t *testing.T) kept { return filled(t, openMemory(t)) }

// filled puts into a store one message of each fate: 1 pending, 2 pending in another
// conversation, 3 dead, 4 handled with a reply that is dead (1) and one that
// waits (2).
func filled(t *testing.T, s kept) kept {
	t.Helper()
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	reply := func(n int) message.Outbound {
		target, _ := sender{}.Address(nil)
		return message.Outbound{
			ID: message.ID(fmt.Sprintf("m4/%d", n)), Installation: "bot", Conversation: "a",
			InReplyTo: "m4", Part: 1, Parts: 1, Target: target, Reply: message.Reply{Text: "answer"},
		}
	}
	commit(t, s,
		&store.Append{Message: inbound("m1", "a")},
		&store.Append{Message: inbound("m2", "b")},
		&store.Append{Message: inbound("m3", "a")},
		&store.Append{Message: inbound("m4", "a")},
		&store.Bury{Seq: 3, Attempts: 8, Reason: "attempts: it does not go"},
		&store.Finish{Seq: 4, Replies: []message.Outbound{reply(1), reply(2)}},
		&store.Discard{Seq: 1, Attempts: 5, Reason: "refused: no"},
	)
	return s
}

func commit(t *testing.T, s store.Store, all ...store.Op) {
	t.Helper()
	require.NoError(t, s.Commit(t.Context(), all))
	for _, op := range all {
		require.NoError(t, op.Result())
	}
}

func inbound(id, conversation string) *message.Inbound {
	return &message.Inbound{
		ID: message.ID(id), FrameID: message.FrameID("f-" + id), Installation: "bot",
		Kind: message.KindMessage, Type: message.TypeText, Text: "text of " + id,
		Conversation: message.Conversation{ID: message.ConversationID(conversation)},
		Raw:          message.Raw(`{"sessionWebhook":"https://h/s?session=` + secret + `","n":1}`),
	}
}

// offline is the verbs on a stopped store.
func offline(t *testing.T, s kept) *ops.Service {
	t.Helper()
	engine, err := relay.NewOffline(relay.OfflineConfig{
		Store: s, Senders: map[message.InstallationID]relay.Sender{"bot": sender{}},
		Route: func(name string) router.Handler {
			return map[string]router.Handler{"echo": router.Echo{}, "bad": fails{}}[name]
		},
	})
	require.NoError(t, err)
	return &ops.Service{
		Admin: s, Engine: engine,
		Installations: func() []message.InstallationID { return []message.InstallationID{"other", "bot"} },
	}
}

type fails struct{}

// Handle fails with an error that means something else to the verbs.
func (fails) Handle(context.Context, *message.Inbound) (router.Result, error) {
	return router.Result{}, fmt.Errorf("the database has no row: %w", store.ErrNotFound)
}

// serve gives api over a socket until the test ends.
func serve(t *testing.T, api ops.API) *ops.Client {
	t.Helper()
	path := socketPath(t)
	run(t, path, api)
	c, err := ops.Dial(t.Context(), path)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	return c
}

// run serves path and gives the function that ends it, which the test's end calls
// as well.
func run(t *testing.T, path string, api ops.API) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	up, ended := make(chan struct{}), make(chan error, 1)
	go func() { ended <- ops.NewServer(path, api).Run(ctx, func() { close(up) }) }()
	select {
	case <-up:
	case err := <-ended:
		cancel()
		require.NoError(t, err)
	}
	stop = func() {
		cancel()
		if ended != nil {
			require.NoError(t, <-ended)
			ended = nil
		}
	}
	t.Cleanup(stop)
	return stop
}

// socketPath is a path that is short enough on every system.
func socketPath(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "ps") //nolint:usetesting // the test's own is too long a name
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	return filepath.Join(dir, "run", "p.sock")
}

// both runs a test on the verbs themselves and through a socket.
func both(t *testing.T, test func(t *testing.T, api ops.API, s kept)) {
	bothOn(t, openMemory, test)
}

func bothOn(t *testing.T, open func(*testing.T) kept, test func(t *testing.T, api ops.API, s kept)) {
	t.Run("local", func(t *testing.T) {
		s := filled(t, open(t))
		test(t, offline(t, s), s)
	})
	t.Run("socket", func(t *testing.T) {
		s := filled(t, open(t))
		test(t, serve(t, offline(t, s)), s)
	})
}
