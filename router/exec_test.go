//go:build unix

package router_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/penstock-io/penstock/message"
	"github.com/penstock-io/penstock/router"
)

// script is a handler that runs a shell script, with a short grace unless set.
func script(t *testing.T, body string, set ...func(*router.ExecConfig)) *router.Exec {
	t.Helper()
	cfg := router.ExecConfig{
		Command: []string{"/bin/sh", "-c", body}, Grace: 100 * time.Millisecond,
	}
	for _, s := range set {
		s(&cfg)
	}
	h, err := router.NewExec(cfg)
	require.NoError(t, err)
	return h
}

func TestExecReadsAndReplies(t *testing.T) {
	dir := t.TempDir()
	h := script(t, `cat > in.json; echo "$PENSTOCK_ID $PENSTOCK_ATTEMPT $EXTRA ${LEAK-none}"`,
		func(c *router.ExecConfig) {
			c.Dir, c.Env = dir, map[string]string{"EXTRA": "more"}
		})
	t.Setenv("LEAK", "secret")
	m := text("hello\n你好")
	m.Attempt = 2
	res, err := h.Handle(t.Context(), m)
	require.NoError(t, err)
	require.Equal(t, []message.Reply{{Format: "text", Text: "bot:m1 2 more none"}}, res.Replies)

	written, err := os.ReadFile(filepath.Join(dir, "in.json"))
	require.NoError(t, err)
	var in message.Inbound
	require.NoError(t, json.Unmarshal(written, &in))
	require.Equal(t, *m, in)
}

func TestExecJSONLines(t *testing.T) {
	h := script(t, `echo '{"text":"one"}'; echo '{"format":"markdown","text":"**two**"}'; `+
		`echo '{"answer":{"ok":true}}'`)
	res, err := h.Handle(t.Context(), text("x"))
	require.NoError(t, err)
	require.Equal(t, router.Result{
		Replies: []message.Reply{{Text: "one"}, {Format: "markdown", Text: "**two**"}},
		Answer:  json.RawMessage(`{"ok":true}`),
	}, res)
}

func TestExecBadOutput(t *testing.T) {
	_, err := script(t, `echo '{"text":'`).Handle(t.Context(), text("x"))
	require.EqualError(t, err, "run /bin/sh: output cannot be used: decode: unexpected EOF")
	require.True(t, router.IsPermanent(err))
	require.Equal(t, router.ReasonBadAnswer, router.ReasonOf(err))
}

func TestExecStatuses(t *testing.T) {
	for status, permanent := range map[int]bool{
		1: false, 2: false, 63: false, 64: true, 65: true, 66: false, 75: false, 78: true,
		126: false, 127: false, 255: false,
	} {
		h := script(t, `echo partial; echo "went  wrong" >&2; exit `+strconv.Itoa(status))
		res, err := h.Handle(t.Context(), text("x"))
		require.Zero(t, res)
		require.EqualError(t, err, "run /bin/sh: exit status "+strconv.Itoa(status)+": went wrong")
		require.Equal(t, permanent, router.IsPermanent(err), "status %d", status)
		require.Equal(t, router.ReasonExit, router.ReasonOf(err))
	}
}

func TestExecKilledBySomebodyElse(t *testing.T) {
	_, err := script(t, `kill -KILL $$`).Handle(t.Context(), text("x"))
	require.EqualError(t, err, "run /bin/sh: signal: killed")
	require.False(t, router.IsPermanent(err))
}

func TestExecNotThere(t *testing.T) {
	file := filepath.Join(t.TempDir(), "plain")
	require.NoError(t, os.WriteFile(file, []byte("x"), 0o600))
	for name, c := range map[string]router.ExecConfig{
		"in path":    {Command: []string{"penstock-no-such-command"}},
		"as path":    {Command: []string{"/no/such/command"}},
		"no right":   {Command: []string{file}},
		"no dir":     {Command: []string{"/bin/sh"}, Dir: "/no/such/dir"},
		"dir a file": {Command: []string{"/bin/sh"}, Dir: file},
	} {
		t.Run(name, func(t *testing.T) {
			h, err := router.NewExec(c)
			require.NoError(t, err)
			_, err = h.Handle(t.Context(), text("x"))
			require.ErrorContains(t, err, "cannot start the command")
			require.True(t, router.IsPermanent(err))
			require.Equal(t, router.ReasonCommand, router.ReasonOf(err))
		})
	}
}

func TestExecCanceledBeforeStart(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := script(t, `exit 0`).Handle(ctx, text("x"))
	require.ErrorIs(t, err, context.Canceled)
	require.False(t, router.IsPermanent(err))
	require.Equal(t, router.ReasonCanceled, router.ReasonOf(err))
}

// The message is far larger than a pipe and the command reads none of it.
func TestExecUnreadInput(t *testing.T) {
	res, err := script(t, `echo done`).Handle(t.Context(), text(strings.Repeat("x", 1<<20)))
	require.NoError(t, err)
	require.Equal(t, "done", res.Replies[0].Text)
}

func TestExecHugeOutput(t *testing.T) {
	t.Parallel()
	start := time.Now()
	h := script(t, `while :; do echo xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx; done`,
		func(c *router.ExecConfig) { c.MaxOutput = 10_000 })
	_, err := h.Handle(t.Context(), text("x"))
	require.EqualError(t, err, "run /bin/sh: output is larger than 10000 bytes")
	require.True(t, router.IsPermanent(err))
	require.Equal(t, router.ReasonBadAnswer, router.ReasonOf(err))
	require.Less(t, time.Since(start), 20*time.Second)
}

func TestExecOutputOfExactlyTheLimit(t *testing.T) {
	res, err := script(t, `printf 12345`, func(c *router.ExecConfig) { c.MaxOutput = 5 }).
		Handle(t.Context(), text("x"))
	require.NoError(t, err)
	require.Equal(t, "12345", res.Replies[0].Text)
}

func TestExecStderrIsBoundedAndHidesSecrets(t *testing.T) {
	h := script(t, `echo "token $TOKEN" >&2; i=0; while [ $i -lt 2000 ]; do `+
		`echo "some more text" >&2; i=$((i+1)); done; exit 1`,
		func(c *router.ExecConfig) { c.Env = map[string]string{"TOKEN": "s3cret-t0ken"} })
	_, err := h.Handle(t.Context(), text("x"))
	require.ErrorContains(t, err, "exit status 1: token [hidden] some more text some")
	requireHidden(t, err, "s3cret-t0ken")
	require.Less(t, len(err.Error()), router.StderrShown+100)
}

func TestExecTimeout(t *testing.T) {
	h := script(t, `exec sleep 60`, func(c *router.ExecConfig) { c.Timeout = 20 * time.Millisecond })
	_, err := h.Handle(t.Context(), text("x"))
	require.EqualError(t, err, "run /bin/sh: stopped: took longer than 20ms")
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.Equal(t, router.ReasonTimeout, router.ReasonOf(err))
	require.False(t, router.IsPermanent(err))
}

// stopWhen runs h, cancels it once the script has written the file, and gives
// its error.
func stopWhen(t *testing.T, h router.Handler, file string) error {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan error, 1)
	go func() {
		_, err := h.Handle(ctx, text("x"))
		done <- err
	}()
	require.Eventually(t, func() bool {
		b, err := os.ReadFile(file)
		return err == nil && strings.HasSuffix(string(b), "\n")
	}, 10*time.Second, 5*time.Millisecond)
	cancel()
	select {
	case err := <-done:
		return err
	case <-time.After(20 * time.Second):
		require.FailNow(t, "the handler hangs")
	}
	return nil
}

// Each process of the group may say something before it goes.
func TestExecStopIsPolite(t *testing.T) {
	t.Parallel()
	ready := filepath.Join(t.TempDir(), "ready")
	h := script(t, `trap 'echo bye >&2; exit 1' TERM; `+
		`sh -c 'trap "echo child >&2; exit 1" TERM; echo > `+ready+
		`; while :; do sleep 0.05; done' & wait`,
		func(c *router.ExecConfig) { c.Grace = time.Minute })
	err := stopWhen(t, h, ready)
	require.ErrorContains(t, err, "run /bin/sh: stopped: context canceled: ")
	require.ErrorContains(t, err, "bye")
	require.ErrorContains(t, err, "child", "the signal goes to the whole group")
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, router.ReasonCanceled, router.ReasonOf(err))
}

// Nobody of the group listens to SIGTERM, so all are killed.
func TestExecStopKillsTheGroup(t *testing.T) {
	t.Parallel()
	pid := filepath.Join(t.TempDir(), "pid")
	h := script(t, `trap '' TERM; sh -c 'trap "" TERM; echo $$ > `+pid+
		`; while :; do sleep 60; done' & while :; do sleep 60; done`)
	require.ErrorIs(t, stopWhen(t, h, pid), context.Canceled)
	requireGone(t, pid)
}

// The command ends and leaves somebody who holds its output.
func TestExecLeavesAChildBehind(t *testing.T) {
	for name, status := range map[string]int{"success": 0, "failure": 1} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pid := filepath.Join(t.TempDir(), "pid")
			h := script(t, `sh -c 'echo $$ > `+pid+`; exec sleep 60' & `+
				`while [ ! -s `+pid+` ]; do :; done; echo done; exit `+strconv.Itoa(status))
			start := time.Now()
			res, err := h.Handle(t.Context(), text("x"))
			require.Less(t, time.Since(start), 20*time.Second)
			if status == 0 {
				require.NoError(t, err)
				require.Equal(t, "done", res.Replies[0].Text)
			} else {
				require.EqualError(t, err, "run /bin/sh: exit status 1")
			}
			requireGone(t, pid)
		})
	}
}

// requireGone waits for the process whose id is in the file to be gone, which
// its new parent has to notice.
func requireGone(t *testing.T, file string) {
	t.Helper()
	b, err := os.ReadFile(file)
	require.NoError(t, err)
	pid, err := strconv.Atoi(strings.TrimSpace(string(b)))
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		return errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) || zombie(pid)
	}, 5*time.Second, 5*time.Millisecond)
}

// zombie tells whether a process has ended and nobody has asked for its status.
func zombie(pid int) bool {
	b, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	_, state, ok := strings.Cut(string(b), ") ")
	return err == nil && ok && strings.HasPrefix(state, "Z")
}

func TestNewExecRefuses(t *testing.T) {
	command := []string{"true"}
	for name, c := range map[string]struct {
		cfg  router.ExecConfig
		want string
	}{
		"no command":    {router.ExecConfig{}, "command: not set"},
		"empty command": {router.ExecConfig{Command: []string{""}}, "command: not set"},
		"grace":         {router.ExecConfig{Command: command, Grace: -1}, "grace: -1ns is negative"},
		"output size": {
			router.ExecConfig{Command: command, MaxOutput: -1}, "max_output: -1 is negative",
		},
		"output": {
			router.ExecConfig{Command: command, Output: "xml"},
			`output: "xml" is none of auto, text, json`,
		},
		"env": {
			router.ExecConfig{Command: command, Env: map[string]string{"A=B": "x"}},
			`env: "A=B" is no valid variable`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := router.NewExec(c.cfg)
			require.EqualError(t, err, "exec handler: "+c.want)
		})
	}
}
