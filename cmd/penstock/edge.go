package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/penstock-io/penstock/internal/app"
	"github.com/penstock-io/penstock/internal/config"
	"github.com/penstock-io/penstock/internal/ops"
)

// edgeHelp ends the help of the commands on the edge.
const edgeHelp = `
-c names the configuration of the service, which has to run: what is connected is
kept in no file. docs/operations.md tells what each column means.

Exit codes: 0 done; 1 failed, as when the service does not run; 2 wrong command
line, or no such consumer; 4 no such frame.`

// edgeCommand has the commands for the gateway to which bots connect. Alone it is
// its list.
func edgeCommand() *cobra.Command {
	cmd := listConsumersCommand("edge", "Bots that are connected, and what they owe an answer to")
	cmd.AddCommand(
		listConsumersCommand("list", "List the consumers and their connections"),
		listFramesCommand(), resendCommand())
	return cmd
}

func listConsumersCommand(use, short string) *cobra.Command {
	cmd := &cobra.Command{
		Use: use, Short: short,
		Long: `List the consumers of the edge, also those without a connection, and each
connection with what it has not answered.
` + edgeHelp,
		Example: "  penstock edge\n  penstock edge list --consumer my-bot --json",
	}
	d := newDesk(cmd)
	consumer := d.consumerFlag()
	cmd.RunE = func(*cobra.Command, []string) error {
		return d.running(func(ctx context.Context, op *app.Operation) error {
			list, err := op.Consumers(ctx, *consumer)
			if err != nil {
				return err
			}
			return d.consumers(list)
		})
	}
	return cmd
}

func listFramesCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "frames",
		Short: "List what may still be answered",
		Long: `List the frames with a message that their consumers may still answer.
` + edgeHelp,
		Example: "  penstock edge frames --consumer my-bot",
	}
	d := newDesk(cmd)
	consumer := d.consumerFlag()
	cmd.RunE = func(*cobra.Command, []string) error {
		return d.running(func(ctx context.Context, op *app.Operation) error {
			list, err := op.Frames(ctx, *consumer)
			if err != nil {
				return err
			}
			if len(list) == 0 && *consumer == "" {
				return d.noteNoConsumers(ctx, op)
			}
			return d.frames(list)
		})
	}
	return cmd
}

func resendCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "resend FRAME",
		Short: "Write a frame once more",
		Long: `Write a frame that edge frames lists once more, byte for byte, to the connection
that has it. An answer to either copy counts. One that still waits to be written
is left as it is.
` + edgeHelp,
		Example:           "  penstock edge resend a2kq5zvw7mxn_m1f",
		Annotations:       map[string]string{takesArgs: ""},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	d := newDesk(cmd)
	cmd.Args = func(_ *cobra.Command, args []string) error {
		if len(args) != 1 || args[0] == "" {
			return d.usage("resend takes one frame, as edge frames lists them")
		}
		return nil
	}
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		return d.running(func(ctx context.Context, op *app.Operation) error {
			f, err := op.Resend(ctx, args[0])
			if err != nil {
				return err
			}
			if d.json {
				return d.print(f)
			}
			d.say("frame %s: resent to %s on connection %s, with message %s\n", clean(f.ID),
				clean(f.Consumer), clean(f.Connection), clean(string(f.Message)))
			return nil
		})
	}
	return cmd
}

// consumerFlag adds the flag that chooses a consumer. It is completed from the
// configuration, which is there also while the service is not.
func (d *desk) consumerFlag() *string {
	name := d.cmd.Flags().String("consumer", "", "only this consumer")
	complete := func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
		var names []cobra.Completion
		if cfg, err := config.Locate(d.config); err == nil {
			for _, c := range cfg.Edge.Consumers {
				names = append(names, c.Name)
			}
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
	_ = d.cmd.RegisterFlagCompletionFunc("consumer", complete) // the flag is there, once
	return name
}

// running calls fn with the verbs of the service that runs. There is no other way to
// its edge, so what it does not need of the configuration may be missing or wrong.
func (d *desk) running(fn func(ctx context.Context, op *app.Operation) error) (err error) {
	cfg, err := config.Locate(d.config)
	if err != nil {
		return err
	}
	op, err := app.Reach(d.cmd.Context(), cfg)
	if errors.Is(err, app.ErrNotRunning) {
		return fmt.Errorf("%w: %w", ops.ErrNoEdge, err)
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, op.Close()) }()
	return fn(d.cmd.Context(), op)
}

// noteNoConsumers says so if the service has none.
func (d *desk) noteNoConsumers(ctx context.Context, op *app.Operation) error {
	list, err := op.Consumers(ctx, "")
	if err == nil && len(list) == 0 {
		d.note("the service has no consumers: there are none in edge.consumers of its configuration")
	}
	return err
}

// consumers shows consumers, and then their connections.
func (d *desk) consumers(list []ops.Consumer) error {
	if len(list) == 0 {
		d.note("the service has no consumers: there are none in edge.consumers of its configuration")
		return nil
	}
	if d.json {
		for i := range list {
			if err := d.print(&list[i]); err != nil {
				return err
			}
		}
		return nil
	}
	table := tabwriter.NewWriter(d.cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "CONSUMER\tCONNECTIONS")
	open := 0
	for _, c := range list {
		open += len(c.Connections)
		fmt.Fprintf(table, "%s\t%s\n", cell(c.Name, 64), connectionsOf(&c))
	}
	if open > 0 {
		if err := table.Flush(); err != nil { // the columns of the other table are its own
			return err
		}
		d.say("\n")
		connectionTable(table, list)
	}
	return table.Flush()
}

func connectionsOf(c *ops.Consumer) string {
	if c.Removed {
		return fmt.Sprintf("%d, not configured any more", len(c.Connections))
	}
	return fmt.Sprintf("%d of %d", len(c.Connections), c.MaxConnections)
}

func connectionTable(table *tabwriter.Writer, list []ops.Consumer) {
	fmt.Fprintln(table,
		"CONSUMER\tCONNECTION\tSTATE\tAGENT\tREMOTE\tSINCE\tSILENT\tUNANSWERED\tFRAMES\tBYTES\tTOPICS")
	for i := range list {
		for _, c := range list[i].Connections {
			silent := time.Duration(c.SilentMS) * time.Millisecond
			fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%d\t%d\t%d\t%s\n",
				cell(list[i].Name, 64), cell(c.ID, 32), c.State, cell(c.Agent, 32), cell(c.Remote, 48),
				stampOf(c.Since), silent.Round(time.Second), c.Unanswered, c.Frames, c.Bytes,
				cell(strings.Join(c.Topics, " "), 80))
		}
	}
}

// frames shows frames.
func (d *desk) frames(list []ops.Frame) error {
	table := tabwriter.NewWriter(d.cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
	for i := range list {
		f := &list[i]
		if d.json {
			if err := d.print(f); err != nil {
				return err
			}
			continue
		}
		if i == 0 {
			fmt.Fprintln(table, "FRAME\tCONSUMER\tCONNECTION\tINSTALLATION\tMESSAGE\tSENT\tSTATE\tWAITING")
		}
		waiting := "no"
		if f.Waiting {
			waiting = "yes"
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n",
			cell(f.ID, 48), cell(f.Consumer, 64), cell(f.Connection, 32),
			cell(string(f.Installation), 24), cell(string(f.Message), 32), stampOf(f.Sent),
			f.State, waiting)
	}
	return table.Flush()
}
