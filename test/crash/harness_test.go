package crash_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/penstock-io/penstock/integrations/dingtalk/dingtalktest"
	"github.com/penstock-io/penstock/message"
	"github.com/penstock-io/penstock/store"
	"github.com/penstock-io/penstock/store/sqlite"
)

// patience bounds every wait for something that has to happen.
const patience = 60 * time.Second

// bots is how many installations the daemon serves.
const bots = 2

// harness is everything around a daemon. It is owned by the test's goroutine.
type harness struct {
	t    *testing.T
	dir  string
	gw   *dingtalktest.Gateway
	url  string // of the endpoint
	book *book
	log  *os.File // of all lives of the daemon
	life int
	more string // configuration beside the usual
	// answer is what the endpoint does with a message, by its number of runs before.
	answer func(id message.ID, before int) (status int)
}

func newHarness(t *testing.T, robotTimeout time.Duration) *harness {
	h := &harness{t: t, dir: t.TempDir(), book: newBook()}
	h.answer = func(message.ID, int) int { return http.StatusOK }
	cfg := dingtalktest.Config{
		RobotTimeout: robotTimeout, Down: dingtalktest.DownHold, HoldLimit: 1 << 20,
		PingEvery: time.Second, Record: 1 << 20,
		OnAck:  h.book.ack,
		OnSend: func(s dingtalktest.Sent) { h.book.send(message.ID(s.Text)) },
	}
	for i := range bots {
		cfg.Apps = append(cfg.Apps, dingtalktest.Credentials{ClientID: clientID(i), Secret: "s"})
	}
	h.gw = dingtalktest.Serve(t, cfg)
	h.serveEndpoint()
	var err error
	h.log, err = os.OpenFile(filepath.Join(h.dir, "log"),
		os.O_CREATE|os.O_APPEND|os.O_RDWR, 0o600)
	require.NoError(t, err)
	t.Cleanup(func() {
		if t.Failed() {
			tail, _ := os.ReadFile(h.log.Name())
			t.Logf("the end of the daemon's log:\n%s", tail[max(0, len(tail)-4000):])
		}
		require.NoError(t, h.log.Close())
	})
	return h
}

func clientID(i int) string { return fmt.Sprintf("client-%d", i) }

// serveEndpoint serves the handler's endpoint. Each life of the daemon calls it
// under a path of its own.
func (h *harness) serveEndpoint() {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(h.t, err)
	h.url = "http://" + l.Addr().String()
	srv := &http.Server{Handler: http.HandlerFunc(h.handle), ReadHeaderTimeout: time.Minute}
	ended := make(chan error, 1)
	go func() { ended <- srv.Serve(l) }()
	h.t.Cleanup(func() {
		require.NoError(h.t, srv.Close())
		require.ErrorIs(h.t, <-ended, http.ErrServerClosed)
	})
}

// handle is the endpoint: it notes, works a little, and answers with the id of the
// message.
func (h *harness) handle(w http.ResponseWriter, r *http.Request) {
	var m message.Inbound
	var life int
	_, err := fmt.Sscanf(r.URL.Path, "/%d", &life)
	if err != nil || json.NewDecoder(r.Body).Decode(&m) != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	status := h.answer(m.ID, h.book.runsOf(m.ID))
	h.book.begin(m.ID, life, m.Attempt)
	<-time.After(time.Duration(len(m.ID)%4) * time.Millisecond)
	h.book.end(m.ID, life, status == http.StatusOK)
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	if status == http.StatusOK {
		fmt.Fprintf(w, `{"text":%q}`, m.ID)
	}
}

// daemon is one life of the program.
type daemon struct {
	cmd  *exec.Cmd
	done chan struct{} // closed when it has ended
	err  error         // of Wait, written before done is closed
}

// start begins the next life of the daemon.
func (h *harness) start(program string, env ...string) *daemon {
	h.t.Helper()
	h.life++
	path := filepath.Join(h.dir, "penstock.yaml")
	require.NoError(h.t, os.WriteFile(path, []byte(h.config()), 0o600))
	d := &daemon{cmd: exec.Command(program, "run", "--watch=false", "-c", path), done: make(chan struct{})}
	if program == failing {
		d.cmd.Args = []string{program, path}
	}
	d.cmd.Env = append(os.Environ(), env...)
	d.cmd.Stderr = h.log
	require.NoError(h.t, d.cmd.Start())
	go func() {
		defer close(d.done)
		d.err = d.cmd.Wait()
	}()
	h.t.Cleanup(func() {
		_ = d.cmd.Process.Kill() // it has ended, unless the test has failed
		<-d.done
	})
	return d
}

func (h *harness) config() string {
	var b strings.Builder
	fmt.Fprintf(&b, `log: {format: json}
admin: {listen: "off", socket: "off"}
store: {path: %q}
reconnect: {base: 10ms, max: 100ms}
inbound: {retry_base: 20ms, retry_max: 200ms}
routes: [{handler: {http: {url: "%s/%d"}}}]
%s
installations:
`, filepath.Join(h.dir, "penstock.db"), h.url, h.life, h.more)
	for i := range bots {
		fmt.Fprintf(&b, `- {id: bot-%d, client_id: %s, client_secret: s, allow_insecure: true,
   api_base: %q, oapi_base: %q}
`, i, clientID(i), h.gw.URL(), h.gw.URL())
	}
	return b.String()
}

// push pushes the next message of a conversation. Any goroutine may call it.
func (h *harness) push(chat int) *entry {
	e := h.book.add(chat)
	m := dingtalktest.Text(message.ConversationID(fmt.Sprintf("cid-%d", chat)), string(e.id))
	m.ID = e.id
	p, err := h.gw.App(clientID(chat % bots)).Push(m)
	if err != nil {
		h.book.change(func() { h.book.complainLocked("push %s: %v", e.id, err) })
	}
	h.book.pushed(e, p)
	return e
}

// kill ends a daemon in the middle of what it does.
func (h *harness) kill(d *daemon) {
	h.t.Helper()
	require.NoError(h.t, d.cmd.Process.Kill())
	h.died(d)
}

// died waits for a daemon to be killed, and fails if it ended in another way.
func (h *harness) died(d *daemon) {
	h.t.Helper()
	h.ended(d)
	status, ok := d.cmd.ProcessState.Sys().(syscall.WaitStatus)
	require.True(h.t, ok && status.Signal() == syscall.SIGKILL, "it ended by itself: %v", d.err)
}

// stop ends a daemon as an operator does.
func (h *harness) stop(d *daemon) {
	h.t.Helper()
	require.NoError(h.t, d.cmd.Process.Signal(syscall.SIGTERM))
	h.ended(d)
	require.NoError(h.t, d.err)
}

func (h *harness) ended(d *daemon) {
	h.t.Helper()
	select {
	case <-d.done:
	case <-time.After(patience):
		h.t.Fatal("the daemon does not end")
	}
}

// await waits until ok holds, which is asked after each change.
func (h *harness) await(what string, within time.Duration, ok func() bool) {
	h.t.Helper()
	ctx, cancel := context.WithTimeout(h.t.Context(), within)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond) // pushes end without a word
	defer tick.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			h.t.Fatalf("no %s: %s", what, h.book.unsettled())
		}
	}
}

// inDoubt reads from the log how often a reply was said to have arrived perhaps.
func (h *harness) inDoubt() map[message.ID]int {
	_, err := h.log.Seek(0, 0)
	require.NoError(h.t, err)
	maybe := make(map[message.ID]int)
	for s := bufio.NewScanner(h.log); s.Scan(); {
		var line struct {
			Msg   string `json:"msg"`
			Reply string `json:"reply_id"`
		}
		if json.Unmarshal(s.Bytes(), &line) == nil && strings.HasSuffix(line.Msg, "it may have arrived") {
			id, _, _ := strings.Cut(line.Reply, "/")
			maybe[message.ID(id)]++
		}
	}
	return maybe
}

// left counts what is in the store once the daemon has ended.
func (h *harness) left() store.Counts {
	h.t.Helper()
	db, err := sqlite.Open(h.t.Context(), sqlite.Config{Path: filepath.Join(h.dir, "penstock.db")})
	require.NoError(h.t, err)
	c, err := db.Counts(h.t.Context())
	require.NoError(h.t, err)
	require.NoError(h.t, db.Close())
	return c
}
