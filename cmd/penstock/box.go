package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/penstock-io/penstock/internal/app"
	"github.com/penstock-io/penstock/internal/ops"
	"github.com/penstock-io/penstock/store"
)

// Words of the boxes.
const (
	boxIn      = "inbox"
	boxOut     = "outbox"
	boxDeadIn  = "dead_in"
	boxDeadOut = "dead_out"
)

// whereHelp ends the help of each command.
const whereHelp = `
-c names the configuration of the service. If it runs, the work is done by it,
through its admin socket; if it is stopped, on the file of its store, which
nobody else may use meanwhile. docs/operations.md tells more.

Exit codes: 0 done; 1 failed; 2 wrong command line; 4 nothing is there of what
was named or selected.`

// boxCommand has the commands for the inbox, the outbox or the dead letters.
func boxCommand(name, short string, boxes ...string) *cobra.Command {
	cmd := &cobra.Command{
		Use: name, Short: short,
		Long: short + ".\n\nNumbers are those that list shows; they are never used again.\n" + whereHelp,
	}
	cmd.AddCommand(listCommand(name, boxes), showCommand(name, boxes), purgeCommand(name, boxes))
	if name == "dead" {
		cmd.AddCommand(requeueCommand(boxes))
	}
	return cmd
}

// The three commands differ in their boxes alone.
func inboxCommand() *cobra.Command {
	return boxCommand("inbox", "Messages that wait to be handled", boxIn)
}

func outboxCommand() *cobra.Command {
	return boxCommand("outbox", "Replies that wait to be sent", boxOut)
}

func deadCommand() *cobra.Command {
	return boxCommand("dead", "Messages and replies that were given up", boxDeadIn, boxDeadOut)
}

// sides are the flags that choose between messages and replies among the dead.
type sides struct{ in, out bool }

// flags adds them where there are two boxes to choose between.
func (s *sides) flags(cmd *cobra.Command, boxes []string) {
	if len(boxes) == 1 {
		return
	}
	cmd.Flags().BoolVar(&s.in, "in", false, "only messages that were not handled")
	cmd.Flags().BoolVar(&s.out, "out", false, "only replies that were not sent")
}

// check refuses both of them.
func (s *sides) check(d *desk) error {
	if s.in && s.out {
		return d.usage("give --in or --out, not both")
	}
	return nil
}

// of gives the boxes that are meant.
func (s *sides) of(boxes []string) []string {
	switch {
	case s.in:
		return []string{boxDeadIn}
	case s.out:
		return []string{boxDeadOut}
	default:
		return boxes
	}
}

// listLimit is how many entries list shows unless it is told otherwise.
const listLimit = 100

func listCommand(name string, boxes []string) *cobra.Command {
	var f filter
	var s sides
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List them, oldest first",
		Long:    "List what is in the " + name + ", in the order of the numbers.\n" + whereHelp,
		Example: "  penstock " + name + " list --installation my-bot --since 2h --json",
	}
	d := newDesk(cmd)
	f.flags(cmd, name == "dead")
	s.flags(cmd, boxes)
	cmd.Flags().IntVar(&f.limit, "limit", listLimit, "show at most this many; 0 shows all")
	cmd.Flags().Int64Var(&f.after, "after", 0, "leave out numbers up to this one")
	cmd.RunE = func(*cobra.Command, []string) error {
		if f.limit < 0 {
			return d.usage("--limit must not be negative")
		}
		if err := s.check(d); err != nil {
			return err
		}
		f.query.After = store.Seq(f.after)
		return d.work(func(ctx context.Context, op *app.Operation) error {
			return d.list(ctx, op, &f, s.of(boxes))
		})
	}
	return cmd
}

// list shows what the filters select in one box after the other.
func (d *desk) list(ctx context.Context, op *app.Operation, f *filter, boxes []string) error {
	table := tabwriter.NewWriter(d.cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
	shown := 0
	for _, box := range boxes {
		left := 0
		if f.limit > 0 {
			left = f.limit - shown + 1 // the last one only tells that there are more
		}
		err := ops.Walk(ctx, op, f.in(box), left, func(e *ops.Entry) error {
			if shown++; f.limit > 0 && shown > f.limit {
				return errMore
			}
			if d.json {
				return d.print(e)
			}
			return row(table, e, shown == 1)
		})
		if errors.Is(err, errMore) {
			defer d.note("there are more; --limit 0 shows all, --after NUMBER the next ones")
			break
		}
		if err != nil {
			return err
		}
	}
	return table.Flush()
}

// errMore ends a walk that has shown enough.
var errMore = errors.New("there are more")

// row writes an entry, and the head of the table before the first one.
func row(table *tabwriter.Writer, e *ops.Entry, first bool) error {
	if first {
		fmt.Fprintln(table, "BOX\tNUMBER\tSTATE\tTRIES\tSINCE\tINSTALLATION\tCONVERSATION\tID\tREASON")
	}
	state := e.State
	if !e.RunningSince.IsZero() {
		state = "running"
	}
	_, err := fmt.Fprintf(table, "%s\t%d\t%s\t%d\t%s\t%s\t%s\t%s\t%s\n",
		e.Box, e.Seq, state, e.Attempts, stampOf(e.Since), cell(string(e.Installation), 24), cell(string(e.Conversation), 24),
		cell(string(e.ID), 32), cell(e.Reason, 60))
	return err
}

func showCommand(name string, boxes []string) *cobra.Command {
	var s sides
	cmd := &cobra.Command{
		Use:   "show NUMBER",
		Short: "Show one with what it holds",
		Long: `Show one item with what it holds, what people wrote included. Reply addresses
and webhooks, with which others could write into the chat, are hidden.
` + whereHelp,
		Example:     "  penstock " + name + " show 17",
		Annotations: map[string]string{takesArgs: ""},
	}
	d := newDesk(cmd)
	s.flags(cmd, boxes)
	cmd.Args = func(_ *cobra.Command, args []string) error {
		if len(args) != 1 {
			return d.usage("show takes one number")
		}
		return s.check(d)
	}
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		seqs, err := d.numbers(args)
		if err != nil {
			return err
		}
		return d.work(func(ctx context.Context, op *app.Operation) error {
			ref, err := d.find(ctx, op, seqs[0], s.of(boxes))
			if err != nil {
				return err
			}
			it, err := op.Show(ctx, ref)
			if err != nil {
				return err
			}
			if d.json {
				return d.print(it)
			}
			d.tellItem(&it)
			return nil
		})
	}
	return cmd
}

// numbers reads the numbers of items.
func (d *desk) numbers(args []string) ([]store.Seq, error) {
	seqs := make([]store.Seq, len(args))
	for i, arg := range args {
		n, err := strconv.ParseInt(arg, 10, 64)
		if err != nil || n <= 0 {
			return nil, d.usage("%q is not the number of an item", arg)
		}
		seqs[i] = store.Seq(n)
	}
	return seqs, nil
}

// find tells which of the boxes has an item of that number.
func (d *desk) find(
	ctx context.Context, api ops.API, seq store.Seq, boxes []string,
) (ops.Ref, error) {
	if len(boxes) == 1 {
		return ops.Ref{Box: boxes[0], Seq: seq}, nil
	}
	var found []ops.Ref
	for _, box := range boxes {
		ref := ops.Ref{Box: box, Seq: seq}
		_, err := api.Show(ctx, ref)
		switch {
		case err == nil:
			found = append(found, ref)
		case !errors.Is(err, store.ErrNotFound):
			return ops.Ref{}, err
		}
	}
	switch len(found) {
	case 0:
		return ops.Ref{}, ops.Absent(ops.Ref{Box: boxes[0], Seq: seq})
	case 1:
		return found[0], nil
	default:
		return ops.Ref{}, d.usage("both a message and a reply have the number %d: add --in or --out", seq)
	}
}

// tellItem shows an item to people.
func (d *desk) tellItem(it *ops.Item) {
	d.say("%s %d, %s since %s\n", it.Box, it.Seq, it.State, stampOf(it.Since))
	d.field("installation", string(it.Installation))
	d.field("conversation", string(it.Conversation))
	d.field("id", string(it.ID))
	d.field("attempts", strconv.Itoa(it.Attempts))
	if !it.RunningSince.IsZero() {
		d.field("running since", stampOf(it.RunningSince))
	}
	if !it.NextAttempt.IsZero() {
		d.field("next attempt", stampOf(it.NextAttempt))
	}
	d.field("reason", it.Reason)
	if m := it.Message; m != nil {
		d.field("kind", strings.TrimSpace(string(m.Kind)+" "+string(m.Type)))
		d.field("frame", string(m.FrameID))
		d.field("from", strings.TrimSpace(m.Sender.Name+" "+string(m.Sender.ID)))
		d.field("text", m.Text)
		d.field("raw", string(m.Raw))
	}
	if r := it.Reply; r != nil {
		d.field("part", fmt.Sprintf("%d of %d", r.Part, r.Parts))
		d.field("in reply to", string(r.InReplyTo))
		d.field("format", string(r.Format))
		d.field("title", r.Title)
		d.field("text", r.Text)
		d.field("card", string(r.Card))
	}
}

// field shows one field, unless it is empty; further lines are indented.
func (d *desk) field(name, value string) {
	if value == "" {
		return
	}
	d.say("  %-13s %s\n", name, strings.ReplaceAll(clean(value), "\n", "\n"+strings.Repeat(" ", 16)))
}
