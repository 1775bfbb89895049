package ops_test

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/penstock-io/penstock/internal/ops"
	"github.com/penstock-io/penstock/message"
	"github.com/penstock-io/penstock/relay"
	"github.com/penstock-io/penstock/router"
	"github.com/penstock-io/penstock/store"
)

func TestSocketIsForItsOwnerOnly(t *testing.T) {
	path := socketPath(t)
	stop := run(t, path, offline(t, stored(t)))
	info, err := os.Lstat(path)
	require.NoError(t, err)
	require.Equal(t, os.ModeSocket|0o600, info.Mode())
	dir, err := os.Lstat(filepath.Dir(path))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o700), dir.Mode().Perm())
	entries, err := os.ReadDir(filepath.Dir(path))
	require.NoError(t, err)
	require.Len(t, entries, 1, "nothing is left of its making")

	err = ops.NewServer(path, nil).Run(t.Context(), func() {})
	require.ErrorIs(t, err, ops.ErrSocketInUse)
	stop()
	require.NoFileExists(t, path)
	_, err = ops.Dial(t.Context(), path)
	require.ErrorIs(t, err, ops.ErrNobody)
}

func TestSocketOfADeadProcessIsReplaced(t *testing.T) {
	path := socketPath(t)
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
	dead, err := net.ListenUnix("unix", &net.UnixAddr{Name: path})
	require.NoError(t, err)
	dead.SetUnlinkOnClose(false)
	require.NoError(t, dead.Close())
	_, err = ops.Dial(t.Context(), path)
	require.ErrorIs(t, err, ops.ErrNobody)

	run(t, path, offline(t, stored(t)))
	c, err := ops.Dial(t.Context(), path)
	require.NoError(t, err)
	require.NoError(t, c.Close())
}

func TestSocketTouchesNothingElse(t *testing.T) {
	path := socketPath(t)
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
	require.NoError(t, os.WriteFile(path, []byte("precious"), 0o600))
	require.ErrorContains(t, ops.NewServer(path, nil).Run(t.Context(), func() {}), "not a socket")
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, "precious", string(b))

	long := filepath.Join(filepath.Dir(path), strings.Repeat("x", 60), strings.Repeat("y", 60))
	require.ErrorIs(t, ops.NewServer(long, nil).Run(t.Context(), func() {}), ops.ErrSocketName)
	_, err = ops.Dial(t.Context(), long)
	require.ErrorIs(t, err, ops.ErrNobody)
}

func TestSocketThatWasTakenOverIsLeft(t *testing.T) {
	path := socketPath(t)
	stop := run(t, path, offline(t, stored(t)))
	require.NoError(t, os.Remove(path))
	run(t, path, offline(t, stored(t)))
	stop()
	c, err := ops.Dial(t.Context(), path)
	require.NoError(t, err, "the second one's socket stays")
	require.NoError(t, c.Close())
}

func TestHandlerRefuses(t *testing.T) {
	h := ops.Handler(offline(t, stored(t)))
	for _, tt := range []struct {
		method, path, body string
		want               int
	}{
		{"POST", "/v1/list", `{"box":"inbox"}`, 200},
		{"GET", "/v1/list", ``, 405},
		{"POST", "/v1/nothing", `{}`, 404},
		{"POST", "/v1/list", `{"box":"inbox","colour":"red"}`, 400},
		{"POST", "/v1/list", `{"box":`, 400},
		{"POST", "/v1/list", ``, 400},
		{"POST", "/v1/purge", `{"box":"inbox","seq":99}`, 404},
		{"POST", "/v1/send", `{"text":"` + strings.Repeat("x", 2<<20) + `"}`, 400},
	} {
		w := httptest.NewRecorder()
		r := httptest.NewRequestWithContext(t.Context(), tt.method, tt.path, strings.NewReader(tt.body))
		h.ServeHTTP(w, r)
		require.Equal(t, tt.want, w.Code, "%s %s %.40s", tt.method, tt.path, tt.body)
		require.Empty(t, w.Header().Get("Access-Control-Allow-Origin"))
	}
}

func TestClientOfSomethingElse(t *testing.T) {
	path := socketPath(t)
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
	ln, err := net.Listen("unix", path)
	require.NoError(t, err)
	answers := make(chan http.HandlerFunc, 1)
	srv := &http.Server{
		Handler:           http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { (<-answers)(w, r) }),
		ReadHeaderTimeout: time.Second,
	}
	ended := make(chan error, 1)
	go func() { ended <- srv.Serve(ln) }()
	defer func() {
		require.NoError(t, srv.Close())
		require.ErrorIs(t, <-ended, http.ErrServerClosed)
	}()
	c, err := ops.Dial(t.Context(), path)
	require.NoError(t, err)
	defer func() { require.NoError(t, c.Close()) }()

	answers <- func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) }
	_, err = c.List(t.Context(), ops.Query{})
	require.ErrorContains(t, err, "status 418")
	answers <- http.NotFound
	_, err = c.Frames(t.Context(), "")
	require.EqualError(t, err, "frames: the service does not know how; it is older than this command")
	answers <- func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>")) }
	_, err = c.List(t.Context(), ops.Query{})
	require.ErrorContains(t, err, "list: ")
	answers <- func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusInternalServerError)
		_, _ = w.Write([]byte(`{"error":{"kind":"full","text":"no room"}}`))
	}
	_, err = c.Requeue(t.Context(), ops.Ref{})
	require.ErrorIs(t, err, store.ErrFull)
	require.EqualError(t, err, "no room")
}

// TestRunningService drives a relay that runs: what is sent is followed to its
// end, and a stop ends every wait.
func TestRunningService(t *testing.T) {
	s := filled(t, openFile(t))
	r, err := relay.New(relay.Config{Handler: router.Echo{}, Store: s, Durable: true})
	require.NoError(t, err)
	_, err = r.Attach("bot", sender{})
	require.NoError(t, err)
	done := make(chan error, 1)
	go func() { done <- r.Run(context.Background()) }()
	api := serve(t, &ops.Service{
		Admin: s, Engine: r,
		Installations: func() []message.InstallationID { return []message.InstallationID{"bot"} },
	})
	m := ops.Send{Installation: "bot", Conversation: "z", Text: "hello", Wait: time.Minute}
	sent, err := api.Send(t.Context(), m)
	require.NoError(t, err)
	require.Equal(t, ops.SendSent, sent.State)
	require.Equal(t, "r1", sent.Receipt.ID)
	m.Text = "never"
	sent, err = api.Send(t.Context(), m)
	require.NoError(t, err)
	require.Equal(t, ops.SendDead, sent.State)
	require.Equal(t, "refused", sent.Reason)

	moved, err := api.Requeue(t.Context(), ops.Ref{Box: "dead_in", Seq: 3})
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		list, err := api.Trace(t.Context(), "bot", "m3")
		return err == nil && list[0].Seq == moved.Seq && list[0].State == "done"
	}, 10*time.Second, time.Millisecond)

	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	require.True(t, r.Shutdown(ctx).Drained)
	require.NoError(t, <-done)
	_, err = api.Send(t.Context(), m)
	require.ErrorIs(t, err, relay.ErrClosed)
}
