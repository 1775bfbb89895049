package main

import (
	"bufio"
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/penstock-io/penstock/integrations/dingtalk/dingtalktest"
)

// patience bounds every wait of these tests.
const patience = 20 * time.Second

// startGateway runs a gateway until the test ends.
func startGateway(t *testing.T) *dingtalktest.Gateway {
	t.Helper()
	gw, err := dingtalktest.New(dingtalktest.Config{Down: dingtalktest.DownHold})
	require.NoError(t, err)
	require.NoError(t, gw.Listen())
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- gw.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-ended)
	})
	return gw
}

// botFor is a configuration without routes.
func botFor(url string) string {
	return `admin: {listen: "127.0.0.1:0"}
installations:
- id: bot
  client_id: dingtestclient01
  client_secret: test-secret
  api_base: ` + url + `
  oapi_base: ` + url + `
  allow_insecure: true
`
}

const echoRoute = "routes: [{name: e, handler: {echo: }}]\n"

// process is a running penstock.
type process struct {
	t   *testing.T
	cmd *exec.Cmd

	mu    sync.Mutex // guards the following fields
	lines []string
	// more is closed and replaced when a line comes.
	more chan struct{}
	done chan struct{} // closed when the process has closed its standard error
}

// start runs this test's binary as the command.
func start(t *testing.T, args ...string) *process {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	p := &process{
		t: t, cmd: exec.Command(self, args...), //nolint:gosec // the test's own
		more: make(chan struct{}), done: make(chan struct{}),
	}
	p.cmd.Env = append(os.Environ(), asCommand+"=1")
	stderr, err := p.cmd.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, p.cmd.Start())
	t.Cleanup(func() { _ = p.cmd.Process.Kill() }) // if it has not ended
	go func() {
		defer close(p.done)
		for s := bufio.NewScanner(stderr); s.Scan(); {
			p.mu.Lock()
			p.lines = append(p.lines, s.Text())
			close(p.more)
			p.more = make(chan struct{})
			p.mu.Unlock()
		}
	}()
	return p
}

func (p *process) log() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return strings.Join(p.lines, "\n")
}

// await waits for the log to match pattern and gives its first group.
func (p *process) await(pattern string) string {
	p.t.Helper()
	re := regexp.MustCompile(pattern)
	late := time.After(patience)
	for {
		p.mu.Lock()
		text, more := strings.Join(p.lines, "\n"), p.more
		p.mu.Unlock()
		if m := re.FindStringSubmatch(text); m != nil {
			return m[len(m)-1]
		}
		select {
		case <-more:
		case <-p.done:
			p.t.Fatalf("ended without %s:\n%s", pattern, p.log())
		case <-late:
			p.t.Fatalf("no %s:\n%s", pattern, p.log())
		}
	}
}

func (p *process) signal(s syscall.Signal) {
	p.t.Helper()
	require.NoError(p.t, p.cmd.Process.Signal(s))
}

// code waits for the end and gives the exit code.
func (p *process) code() int {
	p.t.Helper()
	select {
	case <-p.done:
	case <-time.After(patience):
		p.t.Fatalf("it does not end:\n%s", p.log())
	}
	var exit *exec.ExitError
	if err := p.cmd.Wait(); err != nil && !errors.As(err, &exit) {
		require.NoError(p.t, err)
	}
	return p.cmd.ProcessState.ExitCode()
}

// connected waits for a session.
func connected(t *testing.T, gw *dingtalktest.Gateway) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	require.NoError(t, gw.App("").AwaitSessions(ctx, 1))
}

// ask pushes a message, waits until n replies have been sent, and gives the last.
func ask(t *testing.T, gw *dingtalktest.Gateway, text string, n int) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	pushed, err := gw.App("").Push(dingtalktest.Text("cid1", text))
	require.NoError(t, err)
	_, err = pushed.Wait(ctx)
	require.NoError(t, err)
	sent, err := gw.App("").AwaitSent(ctx, n)
	require.NoError(t, err)
	return sent[n-1].Text
}

func TestRunServesAndStops(t *testing.T) {
	gw := startGateway(t)
	p := start(t, "run", "-c", write(t, botFor(gw.URL())+echoRoute))
	address := p.await(`admin listener is up.*address=(\S+)`)
	connected(t, gw)
	require.Equal(t, "hello", ask(t, gw, "hello", 1))
	for _, page := range []string{"/healthz", "/readyz", "/readyz/bot", "/metrics"} {
		require.Equal(t, http.StatusOK, status(t, "http://"+address+page), page)
	}
	require.Equal(t, http.StatusNotFound, status(t, "http://"+address+"/readyz/none"))
	p.signal(syscall.SIGTERM)
	require.Zero(t, p.code(), p.log())
	require.Contains(t, p.log(), "handled=1 sent=1 unfinished=0")
	require.NotContains(t, p.log(), "test-secret")
}

func status(t *testing.T, url string) int {
	t.Helper()
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: patience}
	resp, err := client.Get(url)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	return resp.StatusCode
}

// blocked is a route whose command signals that it runs and then goes on.
func blocked(began string) string {
	return "routes: [{handler: {exec: {command: [sh, -c, 'touch " + began + "; sleep 10'], timeout: 1m}}}]\n"
}

// awaitFile waits until path is there.
func awaitFile(t *testing.T, path string) {
	t.Helper()
	require.Eventually(t, func() bool { _, err := os.Stat(path); return err == nil },
		patience, 5*time.Millisecond)
}

func TestASecondSignalLeavesAtOnce(t *testing.T) {
	gw := startGateway(t)
	began := filepath.Join(t.TempDir(), "began")
	p := start(t, "run", "-c", write(t, botFor(gw.URL())+blocked(began)))
	connected(t, gw)
	_, err := gw.App("").Push(dingtalktest.Text("cid1", "hello"))
	require.NoError(t, err)
	awaitFile(t, began)
	p.signal(syscall.SIGTERM)
	p.await("stopping")
	<-time.After(2 * sameSignal) // a signal that comes sooner is an echo
	p.signal(syscall.SIGINT)
	require.Equal(t, exitForced, p.code())
}

func TestAStopThatCutsWorkOffSaysSo(t *testing.T) {
	gw := startGateway(t)
	began := filepath.Join(t.TempDir(), "began")
	text := "stop_within: 300ms\nstore: {kind: memory}\n" + botFor(gw.URL()) + blocked(began)
	p := start(t, "run", "-c", write(t, text))
	connected(t, gw)
	_, err := gw.App("").Push(dingtalktest.Text("cid1", "hello"))
	require.NoError(t, err)
	awaitFile(t, began)
	p.signal(syscall.SIGTERM)
	require.Equal(t, exitLost, p.code(), p.log())
	require.Contains(t, p.log(), "accepted work was lost: 1 messages")
}

func TestReload(t *testing.T) {
	gw := startGateway(t)
	path := write(t, botFor(gw.URL())+echoRoute)
	p := start(t, "run", "-c", path, "--watch=false")
	connected(t, gw)
	require.Equal(t, "before", ask(t, gw, "before", 1))

	exchange(t, path, botFor(gw.URL())+"routes: [{handler: {exec: {command: [echo, new], output: text}}}]\n")
	p.signal(syscall.SIGHUP)
	p.await("configuration reloaded")
	require.Equal(t, "new", ask(t, gw, "after", 2))
	require.Len(t, gw.App("").Sessions(), 1, "the session is not touched")

	exchange(t, path, "nonsense: 1\n")
	p.signal(syscall.SIGHUP)
	p.await("configuration was not reloaded.*nonsense: no such key")
	require.Equal(t, "new", ask(t, gw, "still", 3), "the old routes stay")

	p.signal(syscall.SIGTERM)
	require.Zero(t, p.code(), p.log())
}

func TestAChangeOfTheFileReloads(t *testing.T) {
	gw := startGateway(t)
	path := write(t, botFor(gw.URL())+echoRoute)
	p := start(t, "run", "-c", path)
	connected(t, gw)
	exchange(t, path, botFor(gw.URL())+echoRoute+"stop_within: 5s\nedge: {ping_every: 9s}\n")
	p.await("changes at the next start.*key=stop_within")
	p.await("changes at the next start.*key=edge.ping_every")
	p.await(`level=WARN .*key=edge warning="has no consumers`)
	p.await("configuration reloaded")
	p.signal(syscall.SIGINT)
	require.Zero(t, p.code(), p.log())
}

// exchange replaces a file in one step, as an editor does.
func exchange(t *testing.T, path, text string) {
	t.Helper()
	require.NoError(t, os.WriteFile(path+".new", []byte(text), 0o600))
	require.NoError(t, os.Rename(path+".new", path))
}

func TestAPortInUseIsTold(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { require.NoError(t, taken.Close()) }()
	address := taken.Addr().String()
	text := strings.Replace(botFor("http://127.0.0.1:1"), "127.0.0.1:0", address, 1)
	p := start(t, "run", "-c", write(t, text))
	require.Equal(t, exitFailed, p.code())
	require.Regexp(t, `level=WARN .*line=0 key=routes warning="is missing`, p.log())
	require.Regexp(t, `(?m)^penstock: .*admin listener: listen tcp `+address+`: .*in use`, p.log())
}

func TestRunRefusesAWrongFile(t *testing.T) {
	p := start(t, "run", "-c", write(t, "installation: []\n"))
	require.Equal(t, exitUsage, p.code())
	require.Contains(t, p.log(), "did you mean installations?")
}
