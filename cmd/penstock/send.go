package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/penstock-io/penstock/internal/app"
	"github.com/penstock-io/penstock/internal/ops"
	"github.com/penstock-io/penstock/message"
)

func sendCommand() *cobra.Command {
	var m ops.Send
	var mentions []string
	cmd := &cobra.Command{
		Use:   "send --installation ID --conversation ID TEXT|-",
		Short: "Send a message of your own into a conversation",
		Long: `Put a message into the outbox, behind what the conversation has there already. -
reads the text from the standard input. For DingTalk the conversation is the
openConversationId of a group in which the bot is.

With --id a repeated call is harmless: the second one sends nothing. With --wait
the command tells how it ended, and fails if the message became a dead letter or
is not sent in time; it stays queued then. Of a stopped service, the message is
sent after its next start.
` + whereHelp,
		Example: `  penstock send --installation my-bot --conversation cidAbC== "The build is green."
  build-report | penstock send --installation my-bot --conversation cidAbC== \
    --markdown --title Build --id build-1234 --wait 30s -`,
		Annotations: map[string]string{takesArgs: ""},
	}
	d := newDesk(cmd)
	f := cmd.Flags()
	f.StringVar((*string)(&m.Installation), "installation", "", "whose bot sends (required)")
	f.StringVar((*string)(&m.Conversation), "conversation", "", "where to (required)")
	f.BoolVar(&m.Markdown, "markdown", false, "the text is markdown")
	f.StringVar(&m.Title, "title", "", "title, for markdown")
	f.StringArrayVar(&mentions, "mention", nil, "id of a person to mention; may be repeated")
	f.StringVar((*string)(&m.ID), "id", "", "a key by which a repeated call is recognised")
	f.DurationVar(&m.Wait, "wait", 0, "wait this long for the platform's answer")
	cmd.Args = func(_ *cobra.Command, args []string) error {
		switch {
		case m.Installation == "" || m.Conversation == "":
			return d.usage("--installation and --conversation are needed")
		case len(args) != 1:
			return d.usage("send takes one text; quote it, or give - to read it from the input")
		case m.Wait < 0 || m.Wait > ops.MaxWait:
			return d.usage("--wait must be between 0 and %v", ops.MaxWait)
		}
		return nil
	}
	cmd.RunE = func(_ *cobra.Command, args []string) (err error) {
		if m.Text, err = d.text(args[0]); err != nil {
			return err
		}
		for _, u := range mentions {
			m.Mentions = append(m.Mentions, message.UserID(u))
		}
		return d.work(func(ctx context.Context, op *app.Operation) error { return d.send(ctx, op, m) })
	}
	return cmd
}

// text gives the text that the argument means.
func (d *desk) text(arg string) (string, error) {
	if arg != "-" {
		return arg, nil
	}
	b, err := io.ReadAll(io.LimitReader(d.cmd.InOrStdin(), ops.MaxText+1))
	if err != nil {
		return "", fmt.Errorf("read the text: %w", err)
	}
	if len(b) > ops.MaxText {
		return "", d.usage("the text is longer than %d bytes", ops.MaxText)
	}
	return strings.TrimRight(string(b), "\n"), nil
}

// send tells how the message stands; the error is for the exit code.
func (d *desk) send(ctx context.Context, op *app.Operation, m ops.Send) error {
	sent, err := op.Send(ctx, m)
	if err != nil {
		return err
	}
	if d.json {
		err = d.print(sent)
	} else {
		d.say("%s\n", sendLine(&sent, op.Running))
	}
	switch {
	case err != nil:
		return err
	case sent.State == ops.SendDead:
		return errors.New("the message became a dead letter")
	case sent.State == ops.SendQueued && m.Wait > 0 && op.Running:
		return fmt.Errorf("the message was not sent within %v; it stays queued",
			m.Wait.Round(time.Millisecond))
	}
	return nil
}

// sendLine tells how a message stands.
func sendLine(s *ops.Sent, running bool) string {
	switch {
	case s.State == ops.SendKnown:
		return fmt.Sprintf("%s: accepted before; nothing is sent twice", clean(string(s.ID)))
	case s.State == ops.SendDead:
		return fmt.Sprintf("%s: dead: %s", clean(string(s.ID)), clean(s.Reason))
	case s.State == ops.SendSent:
		return fmt.Sprintf("%s: sent%s", clean(string(s.ID)), receiptWords(s.Receipt))
	case !running:
		return fmt.Sprintf("%s: queued; the service is stopped and sends it after its next start",
			clean(string(s.ID)))
	default:
		return fmt.Sprintf("%s: queued", clean(string(s.ID)))
	}
}

// receiptWords tells what the platform said, behind a verb.
func receiptWords(r *message.Receipt) string {
	var words string
	if r == nil {
		return words
	}
	if r.Route != "" {
		words += " by " + clean(r.Route)
	}
	if r.ID != "" {
		words += ", receipt " + clean(r.ID)
	}
	if r.Warning != "" {
		words += " (" + clean(r.Warning) + ")"
	}
	return words
}
