package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode"

	"github.com/spf13/cobra"

	"github.com/penstock-io/penstock/internal/app"
	"github.com/penstock-io/penstock/internal/config"
	"github.com/penstock-io/penstock/internal/ops"
)

// errNothing means that nothing is there of what was named or selected.
var errNothing = errors.New("nothing matches")

// takesArgs marks a command that checks its own arguments.
const takesArgs = "takes-args"

// desk is what every operator's command has: where the service is, and how to
// answer. Its flags are filled in before its methods are called.
type desk struct {
	cmd    *cobra.Command
	config string
	json   bool
}

// newDesk gives a command the flags that all of them have.
func newDesk(cmd *cobra.Command) *desk {
	d := &desk{cmd: cmd}
	cmd.Flags().StringVarP(&d.config, "config", "c", "penstock.yaml",
		"configuration file of the service")
	cmd.Flags().BoolVar(&d.json, "json", false, "print JSON, one object a line")
	return d
}

// work calls fn with the verbs of the running service, or of its file.
func (d *desk) work(fn func(ctx context.Context, op *app.Operation) error) (err error) {
	ctx := d.cmd.Context()
	op, err := d.open(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, op.Close()) }()
	return fn(ctx, op)
}

// open finds the service. One that runs is found also by who lacks what else its
// configuration needs, such as the variables that hold its secrets.
func (d *desk) open(ctx context.Context) (*app.Operation, error) {
	cfg, err := config.Load(d.config)
	if err == nil {
		log := logger(d.cmd.ErrOrStderr(), config.Log{Level: "warn", Format: "text"})
		return app.Operate(ctx, cfg, log)
	}
	where, locateErr := config.Locate(d.config)
	if locateErr != nil {
		return nil, err
	}
	op, reachErr := app.Reach(ctx, where)
	if errors.Is(reachErr, app.ErrNotRunning) {
		return nil, err
	}
	return op, reachErr
}

// print writes one JSON object.
func (d *desk) print(v any) error {
	enc := json.NewEncoder(d.cmd.OutOrStdout())
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

// say writes for people. What it is given of messages has gone through clean.
func (d *desk) say(format string, args ...any) {
	fmt.Fprintf(d.cmd.OutOrStdout(), format, args...)
}

// note writes beside the answer.
func (d *desk) note(format string, args ...any) {
	fmt.Fprintf(d.cmd.ErrOrStderr(), format+"\n", args...)
}

// usage makes an error of the command line.
func (d *desk) usage(format string, args ...any) error {
	return usageError{d.cmd.CommandPath(), fmt.Errorf(format, args...)}
}

// confirm asks a question whose answer has to be yes. Without a terminal nobody
// can be asked, and that is an error.
func (d *desk) confirm(question string) error {
	in := d.cmd.InOrStdin()
	if !isTerminal(in) {
		return d.usage("%s? add --yes, since there is no terminal to ask on", question)
	}
	yes, err := askYes(in, d.cmd.ErrOrStderr(), question)
	if err == nil && !yes {
		err = errors.New("nothing was done")
	}
	return err
}

// askYes reads an answer: only y and yes are yes.
func askYes(in io.Reader, out io.Writer, question string) (bool, error) {
	fmt.Fprintf(out, "%s? [y/N] ", question)
	line, err := bufio.NewReader(io.LimitReader(in, 1<<10)).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return false, fmt.Errorf("read the answer: %w", err)
	}
	answer := strings.ToLower(strings.TrimSpace(line))
	return answer == "y" || answer == "yes", nil
}

// clean makes text from a chat fit for a terminal: characters that move the
// cursor, change colours or turn the direction of writing stand as a sign.
func clean(s string) string {
	return strings.Map(func(r rune) rune {
		if r != '\n' && r != '\t' && (unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r)) {
			return '\uFFFD'
		}
		return r
	}, s)
}

// cell is clean for a column: one line of at most n characters.
func cell(s string, n int) string {
	s = strings.Join(strings.Fields(clean(s)), " ")
	if r := []rune(s); len(r) > n {
		return string(r[:n-1]) + "…"
	}
	if s == "" {
		return "-"
	}
	return s
}

// stampOf is how a time is shown to people.
func stampOf(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.Local().Format("2006-01-02 15:04:05")
}

// moment is a flag with a time: a date, a time, or how long ago.
type moment struct{ time.Time }

// layouts of a moment; those without a zone are local.
var layouts = []string{time.RFC3339, "2006-01-02 15:04:05", "2006-01-02 15:04", "2006-01-02"}

// String implements pflag.Value.
func (m *moment) String() string {
	if m.IsZero() {
		return ""
	}
	return m.Format(time.RFC3339)
}

// Type implements pflag.Value.
func (m *moment) Type() string { return "time" }

// Set implements pflag.Value.
func (m *moment) Set(s string) error {
	if days, ok := strings.CutSuffix(s, "d"); ok {
		if ago, err := time.ParseDuration(days + "h"); err == nil && ago >= 0 {
			m.Time = time.Now().Add(-24 * ago)
			return nil
		}
	}
	if ago, err := time.ParseDuration(s); err == nil && ago >= 0 {
		m.Time = time.Now().Add(-ago)
		return nil
	}
	for _, layout := range layouts {
		if t, err := time.ParseInLocation(layout, s, time.Local); err == nil {
			m.Time = t
			return nil
		}
	}
	return errors.New("it is like 2006-01-02, 2006-01-02 15:04, 2006-01-02T15:04:05Z, or 2h or 3d ago")
}

// filter is the flags that select items.
type filter struct {
	query        ops.Query
	since, until moment
	limit        int
	after        int64
}

// flags adds them to a command; dead letters have no state.
func (f *filter) flags(cmd *cobra.Command, dead bool) {
	fl := cmd.Flags()
	fl.StringVar((*string)(&f.query.Installation), "installation", "", "only of this installation")
	fl.StringVar((*string)(&f.query.Conversation), "conversation", "", "only of this conversation")
	fl.StringVar(&f.query.Reason, "reason", "", "only with this in the last reason, such as attempts")
	fl.Var(&f.since, "since", "only what came into the box from then on: a time, or 2h or 3d ago")
	fl.Var(&f.until, "until", "only what came into the box before then")
	if !dead {
		fl.StringVar(&f.query.State, "state", "", "only in this state: pending, or sending")
	}
}

// names lists the filters that were given.
func (f *filter) names(cmd *cobra.Command) (given []string) {
	for _, name := range []string{
		"installation", "conversation", "state", "reason", "since", "until", "limit",
	} {
		if fl := cmd.Flags().Lookup(name); fl != nil && fl.Changed {
			given = append(given, "--"+name)
		}
	}
	return given
}

// in gives the query for one box.
func (f *filter) in(box string) ops.Query {
	q := f.query
	q.Box, q.Since, q.Until = box, f.since.Time, f.until.Time
	return q
}
