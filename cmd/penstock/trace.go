package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/penstock-io/penstock/internal/app"
	"github.com/penstock-io/penstock/internal/ops"
	"github.com/penstock-io/penstock/message"
)

func traceCommand() *cobra.Command {
	var in string
	cmd := &cobra.Command{
		Use:   "trace [--installation ID] MESSAGE_ID",
		Short: "Tell what became of a message",
		Long: `Tell the way of one message: when it was taken in and acknowledged, the attempts
of its handler, how it ended, and what became of each reply. MESSAGE_ID is the
platform's id, as in the log and in what handlers get.

What is known of a message that is done goes after a day, and that of a dead one
with its letter; a store in memory remembers less.
` + whereHelp,
		Example: "  penstock trace msgAbCdEf==\n" +
			"  penstock trace --installation my-bot msgAbCdEf== --json",
		Annotations: map[string]string{takesArgs: ""},
	}
	d := newDesk(cmd)
	cmd.Flags().StringVar(&in, "installation", "", "only of this installation")
	cmd.Args = func(_ *cobra.Command, args []string) error {
		if len(args) != 1 {
			return d.usage("trace takes one message id")
		}
		return nil
	}
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		return d.work(func(ctx context.Context, op *app.Operation) error {
			traces, err := op.Trace(ctx, message.InstallationID(in), message.ID(args[0]))
			if err != nil {
				return err
			}
			for i := range traces {
				if !d.json {
					d.tellTrace(&traces[i])
				} else if err := d.print(&traces[i]); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return cmd
}

// tellTrace tells a trace to people, a line for each step.
func (d *desk) tellTrace(t *ops.Trace) {
	d.say("message %s of %s", clean(string(t.ID)), clean(string(t.Installation)))
	if t.Conversation != "" {
		d.say(" in conversation %s", clean(string(t.Conversation)))
	}
	d.say("\n")
	from := ""
	if t.FrameID != "" {
		from = " from frame " + clean(string(t.FrameID))
	}
	d.step(stampOf(t.Received), "taken in%s: stored as inbox %d, then acknowledged", from, t.Seq)
	d.tellEnd(t)
	for i := range t.Replies {
		d.tellReply(i+1, &t.Replies[i])
	}
}

// tellEnd tells of the attempts and of the end.
func (d *desk) tellEnd(t *ops.Trace) {
	why := ""
	if t.Reason != "" {
		why = ": " + clean(t.Reason)
	}
	switch {
	case t.Out != nil:
		d.step(stampOf(t.Out.Sent), "it is out to consumer %s: frame %s on connection %s, %s",
			clean(t.Out.Consumer), t.Out.ID, t.Out.Connection, t.Out.State)
	case !t.RunningSince.IsZero():
		d.step(stampOf(t.RunningSince), "it is with its handler, which has not ended")
	case t.State == "pending" && t.Attempts == 0 && t.Reason != "":
		d.step("now", "it waits%s", why)
	case t.State == "pending" && t.Attempts == 0:
		d.step("now", "it waits for its handler")
	case t.State == "pending":
		d.step("now", "%s failed%s", tries(t.Attempts), why)
		d.step(stampOf(t.NextAttempt), "the next attempt is due")
	case t.State == "dead":
		d.step(stampOf(t.Ended), "given up after %s%s", tries(t.Attempts), why)
	case t.Reason != "":
		d.step(stampOf(t.Ended), "ended%s", why)
	default:
		after := ""
		if t.Attempts > 0 {
			after = " after " + tries(t.Attempts)
		}
		replies := "replies"
		if len(t.Replies) == 1 {
			replies = "reply"
		}
		d.step(stampOf(t.Ended), "handled%s, with %d %s", after, len(t.Replies), replies)
	}
}

// tellReply tells of one reply.
func (d *desk) tellReply(n int, r *ops.ReplyTrace) {
	why := ""
	if r.Reason != "" {
		why = ": " + clean(r.Reason)
	}
	name := fmt.Sprintf("reply %d (outbox %d)", n, r.Seq)
	switch {
	case r.State == ops.SendSent:
		d.step(stampOf(r.Ended), "%s was sent%s", name, receiptWords(r.Receipt))
	case r.State == "dead":
		d.step(stampOf(r.Ended), "%s was given up after %s%s", name, tries(r.Attempts), why)
	case r.State == "sending":
		d.step("now", "%s is being sent, %s", name, tries(r.Attempts))
	case r.Attempts > 0:
		d.step("now", "%s waits: %s failed%s", name, tries(r.Attempts), why)
		d.step(stampOf(r.NextAttempt), "the next attempt to send it is due")
	default:
		d.step("now", "%s waits to be sent", name)
	}
}

// step is one line: when it was, and what.
func (d *desk) step(when, format string, args ...any) {
	d.say("  %-19s  %s\n", when, fmt.Sprintf(format, args...))
}

func tries(n int) string {
	if n == 1 {
		return "1 attempt"
	}
	return fmt.Sprintf("%d attempts", n)
}
