package edge_test

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/penstock-io/penstock/integrations/dingtalk/dingtalktest"
	"github.com/penstock-io/penstock/internal/config"
	"github.com/penstock-io/penstock/message"
	"github.com/penstock-io/penstock/test/system"
)

// What the bots present to the edge. It is not what Penstock presents to the vendor.
const (
	botID     = "edge-client"
	botSecret = "edge-secret"
)

// patience bounds what a test waits for: clients wait for seconds before they dial
// again.
const patience = time.Minute

// world is a vendor's gateway, a service, and the bots behind it.
type world struct {
	t   *testing.T
	gw  *dingtalktest.Gateway
	cfg *config.Config
	svc *system.Service
}

// newWorld starts the gateway and the service. Each connection is given one message at
// a time: the SDK under test writes its answers from many goroutines without a lock.
func newWorld(t *testing.T) *world {
	t.Helper()
	cred := dingtalktest.Credentials{ClientID: "vendor-client", Secret: "vendor-secret"}
	w := &world{t: t, gw: dingtalktest.Serve(t, dingtalktest.Config{
		Apps: []dingtalktest.Credentials{cred}, Down: dingtalktest.DownHold,
	})}
	w.cfg = system.Config(system.Installation("bot", w.gw, cred))
	w.cfg.Store.Kind, w.cfg.Store.Path = "sqlite", filepath.Join(t.TempDir(), "p.db")
	w.cfg.Admin.Socket = "off"
	w.cfg.Reconnect.Base, w.cfg.Reconnect.Max = 10*time.Millisecond, 50*time.Millisecond
	w.cfg.Inbound.RetryBase, w.cfg.Inbound.RetryMax = 10*time.Millisecond, 100*time.Millisecond
	w.cfg.Outbound.InstallationRate = 0
	w.cfg.Edge.Listen = freeAddress(t)
	w.cfg.Edge.Consumers = []config.Consumer{{
		Name: "bots", ClientID: botID, ClientSecret: botSecret, MaxConnections: 4, MaxInFlight: 1,
	}}
	w.cfg.Routes = []config.Route{{
		Name: "bots", Handler: config.Handler{Edge: &config.ToConsumer{Consumer: "bots"}},
	}}
	w.start()
	return w
}

// freeAddress is one that the service can listen on again after a restart.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}

func (w *world) start() {
	w.t.Helper()
	w.svc = system.Start(w.t, w.cfg, system.Options{Routes: true})
	require.NoError(w.t, w.app().AwaitSessions(w.ctx(), 1))
	w.eventually(func() bool { return w.svc.App.EdgeURL() != "" })
}

func (w *world) stop() {
	w.t.Helper()
	began := time.Now()
	require.NoError(w.t, w.svc.Stop())
	require.Less(w.t, time.Since(began), w.cfg.StopWithin)
	lines := strings.Join(w.svc.Log.Lines(), "\n")
	require.NotContains(w.t, lines, botSecret)
	require.NotContains(w.t, lines, "session=")
	require.NotContains(w.t, lines, "ticket=")
}

func (w *world) app() *dingtalktest.App { return w.gw.App("") }

func (w *world) ctx() context.Context {
	ctx, cancel := context.WithTimeout(w.t.Context(), patience)
	w.t.Cleanup(cancel)
	return ctx
}

func (w *world) eventually(ok func() bool) {
	w.t.Helper()
	require.Eventually(w.t, ok, patience, 5*time.Millisecond)
}

// connections waits until the edge has n of them.
func (w *world) connections(n int) {
	w.t.Helper()
	w.eventually(func() bool {
		got, ok := w.svc.Metric("edge_connections")
		return ok && got == float64(n)
	})
}

// push sends the texts "from" to "to" to each of the conversations, in turn.
func (w *world) push(conversations []string, from, to int) {
	w.t.Helper()
	for i := from; i <= to; i++ {
		for _, c := range conversations {
			m := dingtalktest.Text(message.ConversationID(c), fmt.Sprint(i))
			m.ID = message.ID(fmt.Sprintf("msg-%s-%d", c, i))
			_, err := w.app().Push(m)
			require.NoError(w.t, err)
		}
	}
}

// said is what has been replied to each conversation, in order.
func (w *world) said() map[string][]string {
	all := map[string][]string{}
	for _, s := range w.app().Sent() {
		c := string(s.Conversation)
		all[c] = append(all[c], s.Text)
	}
	return all
}

// heard tells whether n different things have been replied to each conversation.
func (w *world) heard(n int) bool {
	for _, c := range chats {
		if len(firsts(w.said()[c])) < n {
			return false
		}
	}
	return true
}

// press presses a card's button and gives what the platform is answered.
func (w *world) press() string {
	w.t.Helper()
	p, err := w.app().Push(dingtalktest.Card{Params: map[string]any{"button": "ok"}})
	require.NoError(w.t, err)
	ack, err := p.Wait(w.ctx())
	require.NoError(w.t, err)
	return ack.Data
}

// leaveAndComeBack has the edge ask the only connection to leave, while others may
// not come, and waits until the bot is back.
func (w *world) leaveAndComeBack() {
	w.t.Helper()
	away, back := *w.cfg, *w.cfg // the service keeps what it is given
	away.Edge.Consumers = nil
	require.NoError(w.t, w.svc.App.Reload(w.ctx(), &away))
	w.connections(0)
	require.NoError(w.t, w.svc.App.Reload(w.ctx(), &back))
	w.connections(1)
}

// numbers are the replies to the texts from 1 to n.
func numbers(prefix string, n int) (all []string) {
	for i := 1; i <= n; i++ {
		all = append(all, fmt.Sprint(prefix, i))
	}
	return all
}

// firsts leaves out what has been said before.
func firsts(said []string) (all []string) {
	for _, s := range said {
		if !slices.Contains(all, s) {
			all = append(all, s)
		}
	}
	return all
}

// bot is a running client.
type bot struct {
	cmd   *exec.Cmd
	out   lineCounter
	close func()
}

// lineCounter counts the lines that a bot writes, one for each answer sent.
type lineCounter struct {
	mu    sync.Mutex
	lines int // guarded by mu
}

func (l *lineCounter) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines += bytes.Count(b, []byte("\n"))
	return len(b), nil
}

func (l *lineCounter) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lines
}

// run starts a command that ends when its standard input does.
func (w *world) run(cmd *exec.Cmd) *bot {
	w.t.Helper()
	b := &bot{cmd: cmd}
	var stderr bytes.Buffer
	cmd.Stderr, cmd.Stdout = &stderr, &b.out
	stdin, err := cmd.StdinPipe()
	require.NoError(w.t, err)
	require.NoError(w.t, cmd.Start())
	b.close = sync.OnceFunc(func() {
		_ = stdin.Close()
		_ = cmd.Wait() // one that was killed says so
	})
	w.t.Cleanup(func() {
		b.close()
		if w.t.Failed() {
			w.t.Logf("the bot said: %s", stderr.String())
		}
	})
	return b
}

// kill ends a bot as a crash does.
func (b *bot) kill() {
	_ = b.cmd.Process.Kill()
	b.close()
}

var built struct {
	sync.Mutex
	path string
}

// sdkBot starts a bot on the vendor's Go SDK.
func (w *world) sdkBot() *bot {
	w.t.Helper()
	built.Lock()
	defer built.Unlock()
	if built.path == "" {
		path := filepath.Join(botDir, "sdkbot")
		out, err := exec.Command("go", "build", "-o", path,
			"../../integrations/dingtalk/dingtalktest/testdata/sdkbot").CombinedOutput()
		require.NoError(w.t, err, string(out))
		built.path = path
	}
	return w.run(exec.Command(built.path, w.svc.App.EdgeURL(), botID, botSecret))
}
