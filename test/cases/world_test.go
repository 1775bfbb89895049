package cases_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/penstock-io/penstock/integrations/dingtalk/dingtalktest"
	"github.com/penstock-io/penstock/internal/app"
	"github.com/penstock-io/penstock/internal/config"
	"github.com/penstock-io/penstock/test/system"
)

// bot is the installation that a case is about.
const bot = "bot"

// secret is the client secret of the bot.
const secret = "client-secret-of-the-case"

// patience bounds every wait for an event; in a bubble it is fake time.
const patience = 20 * time.Second

// world is a service with its platform, for one case. It is owned by the test's
// goroutine.
type world struct {
	*findings
	c      *replayed
	t      *testing.T
	bubble bool
	net    *system.Network
	store  *system.Store
	gw     *dingtalktest.Gateway
	bot    *dingtalktest.App
	cfg    *config.Config
	file   string // of the store, empty for one in memory
	svc    *system.Service
	record *system.Record
	began  time.Time
}

// newWorld makes the gateway. In a bubble it first lets the clock reach the case's.
func newWorld(t *testing.T, c *replayed, bubble bool) *world {
	w := &world{
		findings: newFindings(), c: c, t: t, bubble: bubble,
		net: &system.Network{}, store: &system.Store{}, record: system.NewRecord(),
	}
	if bubble {
		if early := time.Until(c.clock()); early > 0 {
			<-time.After(early)
		}
	}
	w.serve("127.0.0.1:1", dingtalktest.Config{})
	return w
}

// serve makes the gateway and the configuration of the bot.
func (w *world) serve(addr string, cfg dingtalktest.Config) {
	w.gw = w.gateway(addr, cfg)
	w.bot = w.gw.App("")
	w.cfg = system.Config(system.Installation(bot, w.gw, w.bot.Credentials()))
	if w.c.needsFile() {
		w.file = filepath.Join(w.t.TempDir(), "penstock.db")
		system.OnFile(w.cfg, w.file)
	}
}

// needsFile tells that a case is about what outlives a process or a disk.
func (c *replayed) needsFile() bool {
	return c.Kind == "shutdown" || c.Kind == "recovery" || c.Input.Kill9Between
}

// gateway serves one more gateway of the world.
func (w *world) gateway(addr string, cfg dingtalktest.Config) *dingtalktest.Gateway {
	if w.bubble {
		cfg.Listener = w.net.Listen(addr)
	}
	cfg.Apps = []dingtalktest.Credentials{{ClientID: "client-example", Secret: secret}}
	return dingtalktest.Serve(w.t, cfg)
}

// run starts the service.
func (w *world) run() {
	w.began = time.Now()
	w.svc = system.Start(w.t, w.cfg, system.Options{
		Network: w.net, Store: w.store, Record: w.record,
	})
}

// connect starts the service and waits for its socket.
func (w *world) connect() *dingtalktest.Session {
	w.run()
	return w.session(0)
}

// kill ends the service and starts another on what was on the disk at that instant;
// what the first one writes in its last moments is lost.
func (w *world) kill() *dingtalktest.Session {
	w.t.Helper()
	old := w.lastSession()
	left := filepath.Join(w.t.TempDir(), "penstock.db")
	for _, end := range []string{"", "-wal"} {
		b, err := os.ReadFile(w.file + end)
		require.NoError(w.t, err)
		require.NoError(w.t, os.WriteFile(left+end, b, 0o600))
	}
	cfg := *w.cfg // the service that runs reads the old one
	system.OnFile(&cfg, left)
	w.cfg, w.file = &cfg, left
	require.NoError(w.t, w.svc.Stop())
	w.run()
	return w.session(old)
}

func (w *world) ctx() (context.Context, context.CancelFunc) {
	return context.WithTimeout(w.t.Context(), patience)
}

// session waits for the only open socket, younger than the one numbered after.
func (w *world) session(after int) *dingtalktest.Session {
	w.t.Helper()
	deadline := time.Now().Add(10 * time.Minute)
	if !w.bubble {
		deadline = time.Now().Add(patience)
	}
	ctx, cancel := context.WithDeadline(w.t.Context(), deadline)
	defer cancel()
	for {
		require.NoError(w.t, w.bot.AwaitSessions(ctx, 1))
		for _, s := range w.bot.Sessions() {
			if s.Info().ID > after {
				return s
			}
		}
		// The old socket has not been noticed as gone.
		require.NoError(w.t, w.bot.AwaitSessions(ctx, 0))
	}
}

// lastSession is the number of the youngest open socket, 0 if there is none.
func (w *world) lastSession() int {
	last := 0
	for _, s := range w.bot.Sessions() {
		last = max(last, s.Info().ID)
	}
	return last
}

// pass lets time pass in a bubble, and none on real sockets.
func (w *world) pass(d time.Duration) {
	if w.bubble {
		<-time.After(d)
	}
}

// settle waits until everything that was pushed has had its effect. On real
// sockets last messages of another conversation tell: they are acknowledged after
// all before them, and the world has one worker, which serves conversations in
// turns: one last message for each turn that the case's may need.
func (w *world) settle() {
	w.t.Helper()
	if w.bubble {
		synctest.Wait()
		return
	}
	for range len(w.c.Input.Wire) + 1 {
		w.lastMessage()
	}
}

func (w *world) lastMessage() {
	w.t.Helper()
	ctx, cancel := w.ctx()
	defer cancel()
	p, err := w.bot.Push(dingtalktest.Text("cidSettle", settleText))
	require.NoError(w.t, err)
	_, err = p.Wait(ctx)
	require.NoError(w.t, err)
	require.NoError(w.t, w.svc.Record.Await(ctx, "the last message", func() bool {
		for _, e := range w.svc.Record.Ended() {
			if e.Message.ID == p.ID() {
				return true
			}
		}
		return false
	}))
}

const settleText = "this message ends a replay"

// runs are the calls of the handler for the case's own messages.
func (w *world) runs() []system.Run {
	var out []system.Run
	for _, r := range w.svc.Record.Runs() {
		if r.Message.Text != settleText {
			out = append(out, r)
		}
	}
	return out
}

// dead are the case's messages that became dead letters.
func (w *world) dead() []system.Ended {
	var out []system.Ended
	for _, e := range w.svc.Record.Ended() {
		if e.Dead != "" {
			out = append(out, e)
		}
	}
	return out
}

// giveUp ends a service that may have work left, which is lost.
func (w *world) giveUp() {
	w.t.Helper()
	if err := w.svc.Stop(); !errors.Is(err, app.ErrLost) {
		require.NoError(w.t, err)
	}
}

// stop ends the service, which must not have lost anything.
func (w *world) stop() {
	w.t.Helper()
	require.NoError(w.t, w.svc.Stop())
}
