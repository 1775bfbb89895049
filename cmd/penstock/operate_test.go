package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/penstock-io/penstock/integrations/dingtalk/dingtalktest"
	"github.com/penstock-io/penstock/internal/ops"
	"github.com/penstock-io/penstock/message"
	"github.com/penstock-io/penstock/store/sqlite"
)

// operated is a service whose first route gives up every message.
type operated struct {
	t      *testing.T
	gw     *dingtalktest.Gateway
	config string
	dir    string
}

func newOperated(t *testing.T) *operated {
	t.Helper()
	dir, err := os.MkdirTemp("", "ps") //nolint:usetesting // the test's own is too long for a socket
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	o := &operated{t: t, gw: startGateway(t), dir: dir}
	o.config = write(t, botFor(o.gw.URL())+`
store: {path: `+filepath.Join(dir, "p.db")+`}
inbound: {attempts: 1}
routes:
- {name: bad, match: {prefix: /bad}, handler: {exec: {command: ["false"]}}}
- {name: e, handler: {echo: }}
`)
	return o
}

// run starts the service and waits until it can be reached.
func (o *operated) run() *process {
	o.t.Helper()
	p := start(o.t, "run", "-c", o.config)
	p.await("admin socket is up")
	connected(o.t, o.gw)
	return p
}

func (o *operated) stop(p *process) {
	o.t.Helper()
	p.signal(syscall.SIGTERM)
	require.Zero(o.t, p.code(), p.log())
}

// push has people write, and waits until all is acknowledged.
func (o *operated) push(texts ...string) {
	o.t.Helper()
	o.pushTo("cid1", texts...)
}

func (o *operated) pushTo(conversation message.ConversationID, texts ...string) {
	o.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for _, text := range texts {
		pushed, err := o.gw.App("").Push(dingtalktest.Text(conversation, text))
		require.NoError(o.t, err)
		_, err = pushed.Wait(ctx)
		require.NoError(o.t, err)
	}
}

// call runs a command that has to end with that code.
func (o *operated) call(want int, args ...string) (stdout, stderr string) {
	o.t.Helper()
	code, stdout, stderr := call(append(args, "-c", o.config)...)
	require.Equal(o.t, want, code, "%s\n%s%s", strings.Join(args, " "), stdout, stderr)
	require.NotContains(o.t, stdout+stderr, "sendBySession?session=0")
	return stdout, stderr
}

// lines reads what a command with --json printed.
func lines[T any](t *testing.T, stdout string) (all []T) {
	t.Helper()
	for line := range strings.Lines(stdout) {
		var v T
		dec := json.NewDecoder(strings.NewReader(line))
		dec.DisallowUnknownFields()
		require.NoError(t, dec.Decode(&v), line)
		all = append(all, v)
	}
	return all
}

// dead waits until there are n dead letters.
func (o *operated) dead(n int) (letters []ops.Entry) {
	o.t.Helper()
	require.Eventually(o.t, func() bool {
		out, _ := o.call(exitOK, "dead", "list", "--json")
		letters = lines[ops.Entry](o.t, out)
		return len(letters) == n
	}, patience, 10*time.Millisecond)
	return letters
}

func (o *operated) sent(n int) dingtalktest.Sent {
	o.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	sent, err := o.gw.App("").AwaitSent(ctx, n)
	require.NoError(o.t, err)
	return sent[n-1]
}

func TestOperateARunningService(t *testing.T) {
	o := newOperated(t)
	p := o.run()
	o.push("/bad 1", "/bad 2", "/bad 3")
	letters := o.dead(3)
	number := strconv.FormatInt(int64(letters[0].Seq), 10)
	id := string(letters[0].ID)

	out, _ := o.call(exitOK, "dead", "list", "--in", "--reason", "attempts", "--since", "1h")
	require.Len(t, strings.Split(strings.TrimSpace(out), "\n"), 4, out)
	out, notes := o.call(exitOK, "dead", "list", "--limit", "2", "--json")
	require.Len(t, lines[ops.Entry](t, out), 2)
	require.Contains(t, notes, "there are more")
	out, _ = o.call(exitOK, "dead", "list", "--until", "2020-01-01")
	require.Empty(t, out)

	out, _ = o.call(exitOK, "dead", "show", number)
	require.Contains(t, out, "text          /bad 1")
	require.Contains(t, out, `"sessionWebhook":"[secret]"`)
	out, _ = o.call(exitOK, "dead", "show", number, "--json")
	require.Equal(t, "/bad 1", lines[ops.Item](t, out)[0].Message.Text)
	out, _ = o.call(exitOK, "trace", id)
	require.Contains(t, out, "taken in from frame")
	require.Contains(t, out, "given up after 1 attempt: attempts")

	_, notes = o.call(exitUsage, "replay", "--dead", number, "--route", "none")
	require.Contains(t, notes, `penstock: there is no route "none"`)
	out, _ = o.call(exitOK, "replay", "--dead", number, "--route", "e")
	require.Contains(t, out, "dead_in "+number+": replayed as inbox")
	require.Equal(t, "/bad 1", o.sent(1).Text)
	require.Eventually(t, func() bool {
		out, _ = o.call(exitOK, "trace", id)
		return strings.Contains(out, "reply 1") && strings.Contains(out, "was sent by")
	}, patience, 10*time.Millisecond)
	require.Contains(t, out, "with 1 reply")

	out, _ = o.call(exitOK, "dead", "requeue", "--all", "--dry-run", "--json")
	require.Equal(t, "would_requeue", lines[outcome](t, out)[1].Action)
	_, notes = o.call(exitUsage, "dead", "requeue", "--all")
	require.Contains(t, notes, "requeue 2 of dead_in? add --yes")
	out, _ = o.call(exitOK, "dead", "requeue", "--all", "--yes", "--rate", "0", "--json")
	moved := lines[outcome](t, out)
	require.Equal(t, "requeued", moved[1].Action)
	require.Greater(t, moved[1].To.Seq, letters[2].Seq)

	letters = o.dead(2) // they have died again, under new numbers
	require.Equal(t, moved[0].To.Seq, letters[0].Seq)
	number = strconv.FormatInt(int64(letters[0].Seq), 10)
	o.call(exitUsage, "dead", "purge", number)
	out, _ = o.call(exitOK, "dead", "purge", number, "--yes")
	require.Equal(t, "dead_in "+number+": purged\n", out)
	_, notes = o.call(exitNone, "dead", "purge", number, "--yes")
	require.Equal(t, "penstock: dead letter "+number+" is not there\n", notes)
	out, _ = o.call(exitOK, "dead", "purge", "--all", "--yes")
	require.Equal(t, "purged 1 of 1\n", out)
	o.call(exitNone, "dead", "requeue", "--all", "--yes")

	out, _ = o.call(exitOK, "send", "--installation", "bot", "--conversation", "cid9", "--id", "k1",
		"--markdown", "--title", "T", "--wait", "20s", "hello")
	require.Contains(t, out, "k1: sent by")
	require.Equal(t, "hello", o.sent(2).Text)
	out, _ = o.call(exitOK, "send", "--installation", "bot", "--conversation", "cid9", "--id", "k1", "again")
	require.Contains(t, out, "accepted before")
	_, notes = o.call(exitUsage, "send", "--installation", "bto", "--conversation", "cid9", "x")
	require.Contains(t, notes, `there is no installation "bto"`)
	o.stop(p)
	for act, n := range map[string]int{
		`"an item was requeued" box=dead_in number=\d+ to=\d+ installation=bot conversation=cid1 message_id=\S+`:    2,
		`"an item was replayed" box=dead_in .* message_id="` + regexp.QuoteMeta(id) + `" route=e`:                   1,
		`"an item was purged" box=dead_in .* message_id=\S+`:                                                        2,
		`"a message was queued by an operator" box=outbox installation=bot conversation=cid9 message_id=k1(?:$|\n)`: 1,
	} {
		require.Len(t, regexp.MustCompile(act).FindAllString(p.log(), -1), n, "%s in\n%s", act, p.log())
	}
	require.NotContains(t, p.log(), "hello")
	require.NotContains(t, p.log(), "/bad")
}

func TestOperateAStoppedService(t *testing.T) {
	o := newOperated(t)
	p := o.run()
	o.push("/bad 1", "/bad 2")
	letters := o.dead(2)
	o.stop(p)
	require.NoFileExists(t, filepath.Join(o.dir, "p.db.sock"))

	first := strconv.FormatInt(int64(letters[0].Seq), 10)
	out, _ := o.call(exitOK, "dead", "requeue", first, "--json")
	require.Equal(t, "inbox", lines[outcome](t, out)[0].To.Box)
	out, _ = o.call(exitOK, "inbox", "list", "--json")
	pending := lines[ops.Entry](t, out)
	require.Len(t, pending, 1)
	require.Zero(t, pending[0].Attempts)
	out, _ = o.call(exitFailed, "replay", "--all", "--yes", "--route", "bad")
	require.Contains(t, out, "failed: ")
	require.Contains(t, out, "replayed 0 of 1; 1 failed")
	out, _ = o.call(exitOK, "replay", "--dead", "--all", "--yes", "--route", "e", "--json")
	done := lines[outcome](t, out)
	require.True(t, done[0].Done)
	require.Equal(t, 1, done[0].Replies)
	out, _ = o.call(exitOK, "send", "--installation", "bot", "--conversation", "cid9", "--wait", "1s", "later")
	require.Contains(t, out, "queued; the service is stopped")
	out, _ = o.call(exitOK, "outbox", "list", "--json")
	require.Len(t, lines[ops.Entry](t, out), 2)
	o.call(exitOK, "outbox", "show", "1")
	_, notes := o.call(exitNone, "inbox", "show", "99")
	require.Equal(t, "penstock: message 99 is not in the inbox\n", notes)
	_, notes = o.call(exitNone, "trace", "no-such-message")
	require.Equal(t, "penstock: nothing is known of a message \"no-such-message\"\n", notes)

	p = o.run()                                           // what was queued goes out, what was requeued dies again
	require.ElementsMatch(t, []string{"/bad 2", "later"}, // conversations have no order
		[]string{o.sent(1).Text, o.sent(2).Text})
	require.Len(t, o.dead(1), 1)
	o.stop(p)
}

func TestOperateNamesWhoHoldsTheFile(t *testing.T) {
	o := newOperated(t)
	s, err := sqlite.Open(t.Context(), sqlite.Config{Path: filepath.Join(o.dir, "p.db")})
	require.NoError(t, err)
	_, errs := o.call(exitFailed, "dead", "list")
	require.Contains(t, errs, "is in use by process "+strconv.Itoa(os.Getpid()))
	require.NoError(t, s.Close())
	o.call(exitOK, "dead", "list")
}

func TestOperateWithoutTheSecretsOfTheService(t *testing.T) {
	o := newOperated(t)
	text, err := os.ReadFile(o.config)
	require.NoError(t, err)
	secret := "client_secret: " + o.gw.App("").Credentials().Secret
	require.Contains(t, string(text), secret)
	whole, bare := o.config, write(t, strings.Replace(string(text), secret, "client_secret: ${NOT_SET_HERE}", 1))
	p := o.run()
	o.push("/bad one")
	o.dead(1)
	o.config = bare
	stdout, _ := o.call(0, "dead", "list")
	require.Contains(t, stdout, "attempts: run false")
	o.config = whole
	o.stop(p)
	o.config = bare
	_, stderr := o.call(2, "dead", "list")
	require.Contains(t, stderr, "NOT_SET_HERE")
}

func TestOperateAStoreInMemory(t *testing.T) {
	config := write(t, botFor("http://127.0.0.1:1")+"store: {kind: memory}\n"+echoRoute)
	code, _, errs := call("inbox", "list", "-c", config)
	require.Equal(t, exitFailed, code)
	require.Contains(t, errs, "set admin.socket")
}

func TestOperatorsCommandLines(t *testing.T) {
	for _, tt := range []struct {
		args, want string
	}{
		{"inbox lits", "did you mean list?"},
		{"inbox requeue 1", `there is no command "penstock inbox requeue"`},
		{"dead show", "show takes one number"},
		{"dead show x", `"x" is not the number of an item`},
		{"dead purge 0", `"0" is not the number of an item`},
		{"dead purge", "give the numbers of what to purge, or --all"},
		{"dead requeue 1 --all", "not both"},
		{"dead requeue --reason x", "add --all to requeue everything that --reason selects"},
		{"dead requeue 1 --rate -1", "must not be negative"},
		{"dead list --in --out", "give --in or --out, not both"},
		{"dead list --state pending", "unknown flag: --state"},
		{"dead list --since yesterday", "it is like 2006-01-02"},
		{"inbox list --limit -1", "--limit must not be negative"},
		{"outbox list x", `list takes no argument "x"`},
		{"replay 1", "--route is missing"},
		{"send hello", "--installation and --conversation are needed"},
		{"send --installation a --conversation b x y", "takes one text"},
		{"send --installation a --conversation b --wait 2h x", "--wait must be between"},
		{"trace", "trace takes one message id"},
		{"edge lits", `there is no command "penstock edge lits"; did you mean list?`},
		{"edge resend", "resend takes one frame"},
		{"edge resend a b", "resend takes one frame"},
		{"edge frames x", `frames takes no argument "x"`},
	} {
		code, out, errs := call(strings.Fields(tt.args)...)
		require.Equal(t, exitUsage, code, tt.args+errs)
		require.Empty(t, out)
		require.Contains(t, errs, tt.want)
	}
}

func TestAskYes(t *testing.T) {
	for in, want := range map[string]bool{
		"y\n": true, "YES\n": true, " yes \n": true, "y": true,
		"n\n": false, "\n": false, "": false, "yep\n": false,
	} {
		var out bytes.Buffer
		got, err := askYes(strings.NewReader(in), &out, "purge inbox 1")
		require.NoError(t, err)
		require.Equal(t, want, got, "%q", in)
		require.Equal(t, "purge inbox 1? [y/N] ", out.String())
	}
}

func TestCleanTakesTheTerminalAway(t *testing.T) {
	require.Equal(t, "a\uFFFD[31mred\uFFFD\nb\tc", clean("a\x1b[31mred\x07\nb\tc"))
	require.Equal(t, "x\uFFFDy\uFFFDz", clean("x\u202ey\u009bz"))
	require.Equal(t, "one two …", cell("one\n two  three", 9))
	require.Equal(t, "-", cell("", 9))
}

func TestMoment(t *testing.T) {
	var m moment
	require.NoError(t, m.Set("2026-01-02T03:04:05Z"))
	require.Equal(t, time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), m.UTC())
	require.NoError(t, m.Set("2026-01-02 03:04"))
	require.Equal(t, time.Date(2026, 1, 2, 3, 4, 0, 0, time.Local), m.Time)
	for ago, want := range map[string]time.Duration{"90m": 90 * time.Minute, "1.5d": 36 * time.Hour} {
		require.NoError(t, m.Set(ago))
		require.WithinDuration(t, time.Now().Add(-want), m.Time, time.Minute)
	}
	for _, bad := range []string{"", "-1h", "d", "-2d", "noon"} {
		require.Error(t, m.Set(bad), bad)
	}
}

var goldenUpdate = os.Getenv("PENSTOCK_UPDATE_GOLDEN") != ""

// The help is what people learn from, so a change of it is looked at.
func TestHelpOfTheOperatorsCommands(t *testing.T) {
	for _, command := range []string{
		"inbox", "outbox", "dead", "inbox list", "dead list", "dead show", "dead requeue", "dead purge",
		"send", "replay", "trace", "simulate", "edge", "edge list", "edge frames", "edge resend",
	} {
		t.Run(command, func(t *testing.T) {
			code, out, _ := call(append(strings.Fields(command), "--help")...)
			require.Zero(t, code)
			path := filepath.Join("testdata", "help", strings.ReplaceAll(command, " ", "-")+".txt")
			if goldenUpdate {
				require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
				require.NoError(t, os.WriteFile(path, []byte(out), 0o600))
			}
			want, err := os.ReadFile(path)
			require.NoError(t, err)
			require.Equal(t, string(want), out)
		})
	}
}
