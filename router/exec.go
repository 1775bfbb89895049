package router

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"strconv"
	"syscall"

	"github.com/penstock-io/penstock/message"
)

// Exec is a [Handler] that runs a command for each message: JSON on its standard
// input, replies from its standard output. docs/handlers.md tells what it reads
// and what the exit statuses mean: 0 is done, 64, 65 and 78 are permanent, 75
// and all others may be tried again. A command that cannot be started is
// permanent, unless the machine is short of something.
type Exec struct {
	// immutable
	cfg  ExecConfig
	env  []string
	hide hider
}

// Exit statuses of sysexits.h that say that another try cannot do better.
const (
	exitUsage  = 64
	exitData   = 65
	exitConfig = 78
)

// Limits of what is kept of the standard error.
const (
	stderrKept  = 8 << 10 // while the command runs
	stderrShown = 4 << 10 // in the error
)

// NewExec makes a handler. It starts nothing and does not look for the command.
// The error names the field of cfg that is wrong.
func NewExec(cfg ExecConfig) (*Exec, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, fmt.Errorf("exec handler: %w", err)
	}
	env, secrets := cfg.environment()
	return &Exec{cfg: cfg, env: env, hide: newHider(secrets...)}, nil
}

// Handle runs the command once and blocks until it has ended. When the timeout
// of the configuration has passed, or ctx ends, the command and what it started
// get SIGTERM, and SIGKILL after the grace time. The same befalls one that
// writes too much. A process that the command leaves behind and that holds its
// output open is waited for no longer than that, and killed.
func (e *Exec) Handle(ctx context.Context, m *message.Inbound) (Result, error) {
	in, err := encode(m)
	if err != nil {
		return Result{}, refused(ReasonHandler, "%s: %w", e.name(), err)
	}
	ctx, cancel := withLimit(ctx, e.cfg.Timeout)
	defer cancel()
	out, err := e.run(ctx, m, in)
	if err != nil {
		return Result{}, err
	}
	res, err := e.cfg.Output.decode(out)
	if err != nil {
		why := e.hide.clean([]byte(err.Error()), snippetShown)
		return Result{}, refused(ReasonBadAnswer, "%s: output cannot be used: %s", e.name(), why)
	}
	return res, nil
}

// name is what errors call the command: no arguments, which may be secret.
func (e *Exec) name() string { return "run " + e.cfg.Command[0] }

var errOutputLimit = errors.New("output is larger than allowed")

// run gives the standard output of a command that succeeded.
func (e *Exec) run(ctx context.Context, m *message.Inbound, in []byte) ([]byte, error) {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	out := capture{limit: e.cfg.MaxOutput, full: func() { stop(errOutputLimit) }}
	said := capture{limit: stderrKept}

	cmd := exec.CommandContext(ctx, e.cfg.Command[0], e.cfg.Command[1:]...)
	cmd.Dir = e.cfg.Dir
	cmd.Env = append(e.inherited(),
		"PENSTOCK_ID="+deliveryID(m), "PENSTOCK_ATTEMPT="+strconv.Itoa(m.Attempt))
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(in), &out, &said

	err := runGroup(ctx, cmd, e.cfg.Grace)
	switch {
	case errors.Is(context.Cause(ctx), errOutputLimit):
		return nil, refused(ReasonBadAnswer,
			"%s: output is larger than %d bytes", e.name(), e.cfg.MaxOutput)
	case err == nil, errors.Is(err, exec.ErrWaitDelay):
		// The command itself succeeded; only somebody it left behind did not end.
		return out.buf, nil
	case cmd.Process == nil:
		return nil, e.unstarted(ctx, err)
	}
	return nil, e.failure(ctx, err, said.buf)
}

// unstarted judges a command that did not come to life. A shortage passes;
// what is missing or not allowed stays so until somebody acts.
func (e *Exec) unstarted(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("%s: %w", e.name(), ctx.Err())
	}
	for _, lasting := range []error{
		exec.ErrNotFound, exec.ErrDot, fs.ErrNotExist, fs.ErrPermission,
		syscall.ENOEXEC, syscall.ENOTDIR,
	} {
		if errors.Is(err, lasting) {
			return refused(ReasonCommand, "%s: cannot start the command: %w", e.name(), err)
		}
	}
	return broken(ReasonCommand, "%s: cannot start the command: %w", e.name(), err)
}

// failure judges a command that ended badly, and quotes what it said.
func (e *Exec) failure(ctx context.Context, err error, said []byte) error {
	out := broken(ReasonExit, "%s: %w", e.name(), err)
	if ended := ctx.Err(); ended != nil {
		reason := ReasonOf(ended)
		if limit := limitOf(ctx, ended); limit != nil {
			ended = limit
		}
		out = broken(reason, "%s: stopped: %w", e.name(), ended)
	} else if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		switch exit.ExitCode() {
		case exitUsage, exitData, exitConfig:
			out.Permanent = true
		}
	}
	if s := e.hide.clean(said, stderrShown); s != "" {
		out.Err = fmt.Errorf("%w: %s", out.Err, s)
	}
	return out
}

// inherited is the environment of every command. Penstock's own is not passed
// on, because it holds the platforms' secrets.
func (e *Exec) inherited() []string {
	var env []string
	for _, name := range passedOn {
		if value, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+value)
		}
	}
	return append(env, e.env...)
}

// capture keeps the first limit bytes and swallows the rest, so that the writer
// is never held up.
type capture struct {
	// immutable
	limit int64
	full  func() // called at each write beyond the limit; may be nil

	// owned by the goroutine that writes, until the command has ended
	buf []byte
}

func (c *capture) Write(p []byte) (int, error) {
	room := c.limit - int64(len(c.buf))
	if int64(len(p)) <= room {
		c.buf = append(c.buf, p...)
		return len(p), nil
	}
	c.buf = append(c.buf, p[:room]...)
	if c.full != nil {
		c.full()
	}
	return len(p), nil
}
