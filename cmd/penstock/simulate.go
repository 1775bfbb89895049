package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/penstock-io/penstock/internal/simulate"
)

func simulateCommand() *cobra.Command {
	var o simulate.Options
	cmd := &cobra.Command{
		Use:   "simulate",
		Short: "A simulated DingTalk, to develop a bot without an account",
		Long: `Serve the DingTalk stream gateway and open API on this machine, for a bot on
Penstock or on the vendor's SDK. It begins with a penstock.yaml that points at it.
Each line that is typed is said to the bot; each acknowledgement, each reply and each
socket that opens, closes or is refused is shown in a line. A line that begins with /
is a command: /conv and /direct choose the conversation, /cut and /disconnect end
sockets, /fault makes requests fail; /help lists them all, and docs/simulate.md
explains them.

With --script the lines come from a file (- is the standard input), where # begins a
comment. It is read as a whole first, and every mistake in it is named. The command
ends when the script is done, everything pushed has its outcome and the bot has been
quiet for a second, or when --for has passed; and so it does with --random --for.
Without either it goes on until /quit, the end of the input on a terminal, or Ctrl-C.

Exit codes: 0 done; 1 failed, or something was not acknowledged with 200 (if there is
--script or --for); 2 wrong command line or a mistake in the script.`,
		Example: `  penstock simulate
  penstock simulate --random --rate 5 --conversations 20
  penstock simulate --script smoke.txt --for 1m --json`,
	}
	var script string
	f := cmd.Flags()
	f.StringVar(&o.Listen, "listen", simulate.DefaultListen, "where bots connect, on loopback")
	f.StringVar(&o.ClientID, "client-id", simulate.DefaultClient, "client id of the bot")
	f.StringVar(&o.Secret, "client-secret", simulate.DefaultSecret, "client secret of the bot")
	f.StringVar(&script, "script", "", "read the lines from this file; - is the standard input")
	f.BoolVar(&o.Random, "random", false, "say things by itself")
	f.IntVar(&o.Rate, "rate", simulate.DefaultRate, "with --random: messages a second")
	f.IntVar(&o.Conversations, "conversations", simulate.DefaultConversations,
		"with --random: number of conversations")
	f.DurationVar(&o.For, "for", 0, "end after this long (default with --script: 5m)")
	f.Uint64Var(&o.Seed, "seed", 1, "repeat the same choices")
	f.BoolVar(&o.AwkwardTickets, "awkward-tickets", false,
		"give tickets that must be escaped, which the vendor's SDKs do not")
	f.Bool("plain-tickets", true, "does nothing: tickets are plain anyway")
	_ = f.MarkHidden("plain-tickets") // the flag is there
	f.BoolVar(&o.JSON, "json", false, "print one JSON object for each thing that happens")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := simulable(cmd, o); err != nil {
			return usageError{cmd.CommandPath(), err}
		}
		if err := source(cmd, script, &o); err != nil {
			return err
		}
		o.Out, o.Err = cmd.OutOrStdout(), cmd.ErrOrStderr()
		return simulate.Run(cmd.Context(), o)
	}
	return cmd
}

// simulable refuses what is wrong with the flags. A number that was given is not
// taken for one that was left out.
func simulable(cmd *cobra.Command, o simulate.Options) error {
	f := cmd.Flags()
	switch {
	case o.Rate == 0:
		return errors.New("--rate must be at least 1")
	case o.Conversations == 0:
		return errors.New("--conversations must be at least 1")
	case o.ClientID == "" || o.Secret == "":
		return errors.New("--client-id and --client-secret must not be empty")
	case !o.Random && (f.Changed("rate") || f.Changed("conversations")):
		return errors.New("--rate and --conversations need --random")
	}
	return o.Validate()
}

// source sets where the lines come from.
func source(cmd *cobra.Command, script string, o *simulate.Options) error {
	switch script {
	case "":
		o.In = cmd.InOrStdin()
		o.EndWithIn = isTerminal(o.In)
		return nil
	case "-":
		return parseScript(cmd, "standard input", cmd.InOrStdin(), o)
	}
	file, err := os.Open(script)
	if err != nil {
		return usageError{cmd.CommandPath(), fmt.Errorf("--script: %w", err)}
	}
	return errors.Join(parseScript(cmd, script, file, o), file.Close())
}

func parseScript(cmd *cobra.Command, name string, in io.Reader, o *simulate.Options) (err error) {
	o.File = name
	o.Script, err = simulate.ParseScript(name, in)
	if errors.Is(err, simulate.ErrScript) {
		return usageError{cmd.CommandPath(), fmt.Errorf("the script:\n%w", err)}
	}
	return err
}
