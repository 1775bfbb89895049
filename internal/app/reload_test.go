package app_test

import (
	"bytes"
	"context"
	"log/slog"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/penstock-io/penstock/integrations/dingtalk/dingtalktest"
	"github.com/penstock-io/penstock/internal/app"
	"github.com/penstock-io/penstock/internal/config"
	"github.com/penstock-io/penstock/message"
)

// secret is in no log line and no error.
const secret = "hunter2hunter2"

// bench is a gateway with two apps and a service under test.
type bench struct {
	t   *testing.T
	ctx context.Context // of the test, for its helpers
	gw  *dingtalktest.Gateway
	app *app.App
	log *safeBuffer
	// stop ends the service and gives what Run returned.
	stop func() error
}

// safeBuffer is a buffer for a log.
type safeBuffer struct {
	mu sync.Mutex // guards b
	b  bytes.Buffer
}

func (s *safeBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *safeBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// installation is one bot's lines of a configuration.
func (b *bench) installation(id, client, more string) string {
	return "- id: " + id + "\n  client_id: " + client + "\n  client_secret: " + secret + client +
		"\n  api_base: " + b.gw.URL() + "\n  oapi_base: " + b.gw.URL() +
		"\n  allow_insecure: true\n" + more
}

func (b *bench) config(installations, rest string) *config.Config {
	b.t.Helper()
	text := "admin: {listen: off}\n" + rest + "\ninstallations:\n" + installations
	cfg, err := config.Parse("f", []byte(text), anything)
	require.NoError(b.t, err)
	return cfg
}

const echo = "routes: [{name: e, handler: {echo: }}]"

// serve starts a gateway and a service with the installation "one".
func serve(t *testing.T) *bench {
	t.Helper()
	t.Chdir(t.TempDir()) // what a service writes, it writes there
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	b := &bench{t: t, ctx: ctx, log: &safeBuffer{}}
	var err error
	b.gw, err = dingtalktest.New(dingtalktest.Config{Apps: []dingtalktest.Credentials{
		{ClientID: "a", Secret: secret + "a"}, {ClientID: "b", Secret: secret + "b"},
	}})
	require.NoError(t, err)
	require.NoError(t, b.gw.Listen())
	gwEnded, appEnded := make(chan error, 1), make(chan error, 1)
	gctx, closeGateway := context.WithCancel(context.Background())
	go func() { gwEnded <- b.gw.Run(gctx) }()

	b.app, err = app.New(b.config(b.installation("one", "a", ""), echo),
		app.Options{Logger: slog.New(slog.NewTextHandler(b.log, nil))})
	require.NoError(t, err)
	runCtx, stop := context.WithCancel(ctx)
	go func() { appEnded <- b.app.Run(runCtx) }()
	b.stop = sync.OnceValue(func() error { stop(); return <-appEnded })
	t.Cleanup(func() {
		_ = b.stop() // tests that care have looked
		closeGateway()
		require.NoError(t, <-gwEnded)
		require.NotContains(t, b.log.String(), secret)
	})
	b.sessions("a", 1)
	return b
}

// sessions waits until an app has at least n sockets.
func (b *bench) sessions(client string, n int) {
	b.t.Helper()
	require.NoError(b.t, b.gw.App(client).AwaitSessions(b.ctx, n))
}

// gone waits until an app has no socket.
func (b *bench) gone(client string) {
	b.t.Helper()
	require.Eventually(b.t, func() bool { return len(b.gw.App(client).Sessions()) == 0 },
		20*time.Second, 5*time.Millisecond)
}

// ask pushes a text to an app and gives its n-th reply.
func (b *bench) ask(client, conversation, text string, n int) string {
	b.t.Helper()
	_, err := b.gw.App(client).Push(dingtalktest.Text(message.ConversationID(conversation), text))
	require.NoError(b.t, err)
	sent, err := b.gw.App(client).AwaitSent(b.ctx, n)
	require.NoError(b.t, err)
	return sent[n-1].Text
}

func (b *bench) reload(cfg *config.Config) {
	b.t.Helper()
	require.NoError(b.t, b.app.Reload(b.ctx, cfg))
}

func TestReloadAddsAndRemovesInstallations(t *testing.T) {
	b := serve(t)
	require.Equal(t, "hi", b.ask("a", "c1", "hi", 1))
	first := b.gw.App("a").Sessions()[0].Info().ID

	one, two := b.installation("one", "a", ""), b.installation("two", "b", "")
	b.reload(b.config(one+two, echo))
	b.sessions("b", 1)
	require.Equal(t, "ho", b.ask("b", "c1", "ho", 1))
	require.Len(t, b.app.Health(), 2)
	require.Equal(t, first, b.gw.App("a").Sessions()[0].Info().ID, "the other is not touched")

	b.reload(b.config(two, echo))
	b.gone("a")
	require.Len(t, b.app.Health(), 1)
	require.Equal(t, "two", b.app.Health()[0].Installation)
	require.Equal(t, "ho ho", b.ask("b", "c1", "ho ho", 2))

	b.reload(b.config(one+two, echo))
	b.sessions("a", 1)
	require.Equal(t, "again", b.ask("a", "c1", "again", 2), "one that was removed can come back")
	require.NoError(t, b.stop())
}

func TestReloadChangesAnInstallationWithoutAGap(t *testing.T) {
	b := serve(t)
	first := b.gw.App("a").Sessions()[0].Info().ID
	b.reload(b.config(b.installation("one", "a", "  ping_every: 20s\n"), echo))
	require.Eventually(t, func() bool {
		all := b.gw.App("a").Sessions()
		return len(all) == 1 && all[0].Info().ID != first
	}, 20*time.Second, 5*time.Millisecond, "a new session, and then the old one is left")
	require.Equal(t, "hi", b.ask("a", "c1", "hi", 1))
	require.Contains(t, b.log.String(), "installation changed")
	require.NoError(t, b.stop())
}

func TestReloadExchangesRoutes(t *testing.T) {
	b := serve(t)
	require.Equal(t, "hi", b.ask("a", "c1", "hi", 1))
	b.reload(b.config(b.installation("one", "a", ""),
		"routes: [{handler: {exec: {command: [echo, new], output: text}}}]"))
	require.Equal(t, "new", b.ask("a", "c1", "hi", 2))
	require.NoError(t, b.stop())
}

func TestReloadThatFailsChangesNothing(t *testing.T) {
	b := serve(t)
	// Only the handler can tell that a header is its own.
	err := b.app.Reload(b.ctx, b.config(b.installation("two", "b", ""),
		"routes: [{name: y, handler: {http: {url: 'http://a', headers: {webhook-id: x}}}}]"))
	require.ErrorContains(t, err, `route "y"`)
	require.Equal(t, "hi", b.ask("a", "c1", "hi", 1))
	require.Empty(t, b.gw.App("b").Sessions())
	require.NoError(t, b.stop())
}

func TestReloadNamesWhatWaitsForTheNextStart(t *testing.T) {
	b := serve(t)
	b.reload(b.config(b.installation("one", "a", ""), `
stop_within: 3s
log: {level: debug}
store: {max_items: 5}
inbound: {workers: 2}
outbound: {workers: 2}
reconnect: {base: 2s}
`+echo))
	keys := regexp.MustCompile(`changes at the next start" key=(\S+)\n`).
		FindAllStringSubmatch(b.log.String(), -1)
	var named []string
	for _, key := range keys {
		named = append(named, key[1])
	}
	require.Equal(t, []string{
		"stop_within", "log.level", "store.max_items", "inbound.workers", "outbound.workers",
		"reconnect.base",
	}, named)
	require.NoError(t, b.stop())
	require.Equal(t, 1, strings.Count(b.log.String(), "within=15s"), "the old budget holds")
}

func TestReloadAfterAStopIsRefused(t *testing.T) {
	b := serve(t)
	require.NoError(t, b.stop())
	err := b.app.Reload(b.ctx, b.config(b.installation("one", "a", ""), echo))
	require.ErrorIs(t, err, app.ErrStopping)
}

// A signal may come while the store is still being opened.
func TestReloadBeforeTheStart(t *testing.T) {
	t.Chdir(t.TempDir())
	b := &bench{t: t, ctx: t.Context(), gw: dingtalktest.Serve(t, dingtalktest.Config{
		Apps: []dingtalktest.Credentials{
			{ClientID: "a", Secret: secret + "a"}, {ClientID: "b", Secret: secret + "b"},
		},
	})}
	one, two := b.installation("one", "a", ""), b.installation("two", "b", "")
	var err error
	b.app, err = app.New(b.config(one, echo), app.Options{})
	require.NoError(t, err)
	b.reload(b.config(two, echo))

	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- b.app.Run(ctx) }()
	b.sessions("b", 1)
	require.Equal(t, "hi", b.ask("b", "c1", "hi", 1))
	require.Empty(t, b.gw.App("a").Sessions())
	stop()
	require.NoError(t, <-ended)
}
