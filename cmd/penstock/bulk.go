package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/time/rate"

	"github.com/penstock-io/penstock/internal/app"
	"github.com/penstock-io/penstock/internal/ops"
	"github.com/penstock-io/penstock/store"
)

// standardRate is how many items a second are changed unless told otherwise: a
// handler or a platform that has just recovered is not to be flooded.
const standardRate = 50

// change is a command that changes items: named by number, or selected.
type change struct {
	*desk
	// immutable once the flags are read
	verb, past string // "requeue", "requeued"
	boxes      []string
	always     bool // ask also before a single item
	do         func(ctx context.Context, api ops.API, ref ops.Ref) (ops.Moved, error)

	filter
	sides
	all, yes, dryRun bool
	rate             float64
}

// newChange gives cmd the flags of a change.
func newChange(cmd *cobra.Command, c change) *change {
	c.desk = newDesk(cmd)
	dead := len(c.boxes) > 1 || c.boxes[0] == boxDeadIn
	c.filter.flags(cmd, dead)
	c.sides.flags(cmd, c.boxes)
	fl := cmd.Flags()
	fl.BoolVar(&c.all, "all", false, "take everything that the filters select, or simply everything")
	fl.IntVar(&c.limit, "limit", 0, "take at most this many, the oldest; 0 takes all")
	fl.BoolVarP(&c.yes, "yes", "y", false, "do not ask")
	fl.BoolVar(&c.dryRun, "dry-run", false, "only say what would be done")
	fl.Float64Var(&c.rate, "rate", standardRate, "items a second; 0 is as fast as it goes")
	cmd.Annotations = map[string]string{takesArgs: ""}
	cmd.Args = func(_ *cobra.Command, args []string) error { return c.check(args) }
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		seqs, err := c.numbers(args)
		if err != nil {
			return err
		}
		return c.work(func(ctx context.Context, op *app.Operation) error { return c.run(ctx, op, seqs) })
	}
	return &c
}

// check refuses a command line that leaves open what is meant.
func (c *change) check(args []string) error {
	filters := c.names(c.cmd)
	switch {
	case len(args) > 0 && (c.all || len(filters) > 0):
		return c.usage("give numbers, or --all with filters, not both")
	case len(args) == 0 && !c.all && len(filters) > 0:
		return c.usage("add --all to %s everything that %s selects", c.verb, strings.Join(filters, " "))
	case len(args) == 0 && !c.all:
		return c.usage("give the numbers of what to %s, or --all, with filters or without", c.verb)
	case c.rate < 0 || c.limit < 0:
		return c.usage("--rate and --limit must not be negative")
	}
	return c.sides.check(c.desk)
}

// run does the change to all that is meant.
func (c *change) run(ctx context.Context, op *app.Operation, seqs []store.Seq) error {
	refs, err := c.targets(ctx, op, seqs)
	if err != nil {
		return err
	}
	if len(refs) == 0 {
		return errNothing
	}
	if c.dryRun {
		return c.rehearse(refs)
	}
	if !c.yes && (c.always || len(refs) > 1) {
		if err := c.confirm(fmt.Sprintf("%s %s", c.verb, describe(refs))); err != nil {
			return err
		}
	}
	t := &tally{change: c, total: len(refs), named: len(seqs) > 0}
	err = t.each(ctx, op, refs)
	return t.end(err)
}

// targets gives what is meant. It is read before anything changes: a letter that
// dies again meanwhile is not taken twice.
func (c *change) targets(
	ctx context.Context, op *app.Operation, seqs []store.Seq,
) ([]ops.Ref, error) {
	boxes := c.sides.of(c.boxes)
	var refs []ops.Ref
	for _, seq := range seqs {
		ref, err := c.find(ctx, op, seq, boxes)
		if err != nil {
			return nil, err
		}
		refs = append(refs, ref)
	}
	if !c.all {
		return refs, nil
	}
	for _, box := range boxes {
		left := 0
		if c.limit > 0 {
			if left = c.limit - len(refs); left == 0 {
				break
			}
		}
		more, err := ops.Collect(ctx, op, c.filter.in(box), left)
		if err != nil {
			return nil, err
		}
		refs = append(refs, more...)
	}
	return refs, nil
}

// describe names the items of a question.
func describe(refs []ops.Ref) string {
	if len(refs) == 1 {
		return refs[0].String()
	}
	counts := map[string]int{}
	for _, r := range refs {
		counts[r.Box]++
	}
	var parts []string
	for _, box := range []string{boxIn, boxOut, boxDeadIn, boxDeadOut} {
		if n := counts[box]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d of %s", n, box))
		}
	}
	return strings.Join(parts, " and ")
}

// outcome is what a change prints of one item as JSON.
type outcome struct {
	ops.Ref
	// Action is requeued, purged, replayed, gone, failed, or with --dry-run
	// would_requeue and so on.
	Action string   `json:"action"`
	To     *ops.Ref `json:"to,omitempty"`
	// Done and Replies tell of a replay whose handler has run.
	Done    bool   `json:"done,omitempty"`
	Replies int    `json:"replies,omitempty"`
	Error   string `json:"error,omitempty"`
}

// rehearse tells what would be done.
func (c *change) rehearse(refs []ops.Ref) error {
	if !c.json {
		c.say("would %s %s\n", c.verb, describe(refs))
		return nil
	}
	for _, ref := range refs {
		if err := c.print(outcome{Ref: ref, Action: "would_" + c.verb}); err != nil {
			return err
		}
	}
	return nil
}

// tally counts what came of a change, and shows it.
type tally struct {
	*change
	total              int
	named              bool // items were named, so each is answered for
	done, gone, failed int
	shown              time.Time
}

// progressEvery is how often progress is shown on a terminal.
const progressEvery = 100 * time.Millisecond

// each changes one item after the other at the pace that was asked for, and shows
// on a terminal how far it is.
func (t *tally) each(ctx context.Context, op *app.Operation, refs []ops.Ref) error {
	limit := rate.NewLimiter(rate.Inf, 1)
	if t.rate > 0 {
		limit = rate.NewLimiter(rate.Limit(t.rate), 1)
	}
	live := !t.json && isTerminal(t.cmd.ErrOrStderr())
	if live {
		defer fmt.Fprint(t.cmd.ErrOrStderr(), "\r\x1b[K")
	}
	for _, ref := range refs {
		if err := limit.Wait(ctx); err != nil {
			return err
		}
		moved, err := t.do(ctx, op, ref)
		if err := t.count(ref, moved, err); err != nil {
			return err
		}
		if live && time.Since(t.shown) >= progressEvery {
			t.shown = time.Now()
			fmt.Fprintf(t.cmd.ErrOrStderr(), "\r\x1b[K%s %d of %d", t.past, t.done, t.total)
		}
	}
	return nil
}

// count takes note of one outcome. An error ends the work: the next item would
// not fare better.
func (t *tally) count(ref ops.Ref, moved ops.Moved, err error) error {
	out := outcome{Ref: ref, Action: t.past, Done: moved.Done, Replies: moved.Replies}
	switch {
	case err == nil:
		t.done++
		if moved.Seq != 0 {
			out.To = &moved.Ref
		}
	case errors.Is(err, store.ErrNotFound):
		t.gone++
		out.Action = "gone"
	case errors.Is(err, ops.ErrHandler):
		t.failed++
		out.Action, out.Error = "failed", err.Error()
	default:
		return err
	}
	switch {
	case t.json:
		return t.print(out)
	case t.named || out.Error != "":
		t.tell(&out)
	}
	return nil
}

// tell answers for one item.
func (t *tally) tell(out *outcome) {
	switch {
	case out.Error != "":
		t.say("%s: %s: %s\n", out.Ref, out.Action, clean(out.Error))
	case out.Done:
		t.say("%s: %s as %s, %d replies queued\n", out.Ref, out.Action, *out.To, out.Replies)
	case out.To != nil:
		t.say("%s: %s as %s\n", out.Ref, out.Action, *out.To)
	default:
		t.say("%s: %s\n", out.Ref, out.Action)
	}
}

// end sums up and gives the error of the whole.
func (t *tally) end(err error) error {
	if !t.json && (!t.named || t.total > 1) {
		t.say("%s %d of %d", t.past, t.done, t.total)
		if t.gone > 0 {
			t.say("; %d had gone meanwhile", t.gone)
		}
		if t.failed > 0 {
			t.say("; %d failed", t.failed)
		}
		t.say("\n")
	}
	switch {
	case err != nil && t.done > 0:
		return fmt.Errorf("stopped after %d of %d: %w", t.done, t.total, err)
	case err != nil:
		return err
	case t.failed > 0:
		return fmt.Errorf("%d of %d failed", t.failed, t.total)
	case t.done == 0:
		return errNothing
	}
	return nil
}

func requeueCommand(boxes []string) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "requeue NUMBER… | --all [filters]",
		Short: "Give them another chance",
		Long: `Put dead letters at the end of the inbox or the outbox again, under new numbers
and with no attempts made. A message that is handled once more is the same message,
with the same id. More than one needs a yes, on the terminal or by --yes.
` + whereHelp,
		Example: `  penstock dead requeue 17
  penstock dead requeue --in --all --reason attempts --since 2h --yes`,
	}
	newChange(cmd, change{
		verb: "requeue", past: "requeued", boxes: boxes,
		do: func(ctx context.Context, api ops.API, ref ops.Ref) (ops.Moved, error) {
			return api.Requeue(ctx, ref)
		},
	})
	return cmd
}

func purgeCommand(name string, boxes []string) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "purge NUMBER… | --all [filters]",
		Short: "Remove them for good",
		Long: `Remove items for good, without handling or sending them. What has not begun does
not begin any more; a handler that runs just then may have acted all the same. A
yes is needed, on the terminal or by --yes.
` + whereHelp,
		Example: "  penstock " + name + " purge 17 --yes\n" +
			"  penstock " + name + " purge --all --conversation cidAbC --dry-run",
	}
	newChange(cmd, change{
		verb: "purge", past: "purged", boxes: boxes, always: true,
		do: func(ctx context.Context, api ops.API, ref ops.Ref) (ops.Moved, error) {
			return ops.Moved{}, api.Purge(ctx, ref)
		},
	})
	return cmd
}

func replayCommand() *cobra.Command {
	var route string
	var dead bool
	cmd := &cobra.Command{
		Use:   "replay --route NAME [--dead] NUMBER… | --all [filters]",
		Short: "Handle messages by a route of your choice",
		Long: `Have messages that are kept handled by the route of that name, whatever it
matches: pending ones, or with --dead those that were given up. The body of a
message that is done is not kept, so it cannot be replayed.

A running service handles a pending message at its turn, and a dead one at the end
of its conversation; the choice of the route is forgotten at a restart. On the
file of a stopped service the handlers run in this process, one after the other,
and their replies are sent after the next start; a message whose handler fails
stays as it was.
` + whereHelp,
		Example: `  penstock replay --dead 17 --route support
  penstock replay --dead --all --reason no_route --route catch-all --yes`,
	}
	cmd.Flags().StringVar(&route, "route", "", "name of the route (required)")
	cmd.Flags().BoolVar(&dead, "dead", false, "take dead letters; else pending messages")
	c := newChange(cmd, change{
		verb: "replay", past: "replayed", boxes: []string{boxIn},
		do: func(ctx context.Context, api ops.API, ref ops.Ref) (ops.Moved, error) {
			return api.Replay(ctx, ref, route)
		},
	})
	check := cmd.Args
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if route == "" {
			return c.usage("--route is missing")
		}
		if dead {
			c.boxes = []string{boxDeadIn}
		}
		return check(cmd, args)
	}
	return cmd
}
