// Command penstock takes chat-bot traffic off vendor stream gateways and brings
// every message to its handler, once and in order.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/penstock-io/penstock/internal/app"
	"github.com/penstock-io/penstock/internal/config"
	"github.com/penstock-io/penstock/internal/ops"
	"github.com/penstock-io/penstock/internal/version"
	"github.com/penstock-io/penstock/relay"
	"github.com/penstock-io/penstock/store"
)

// Exit codes.
const (
	exitOK     = 0
	exitFailed = 1 // something went wrong while running
	exitUsage  = 2 // the command line or the configuration is wrong
	exitLost   = 3 // stopped, and work that no store keeps was cut off
	exitNone   = 4 // nothing is there of what an operator named or selected
	exitForced = 130
)

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

// run executes one command line and gives the exit code.
func run(args []string, stdout, stderr io.Writer) int {
	ctx, stop := interruptible()
	defer stop()
	root := rootCommand(stdout, stderr)
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if err != nil {
		fmt.Fprintln(stderr, render(err))
	}
	return exitCode(err)
}

// usageError marks an error of the command line; command is what to ask for help.
type usageError struct {
	command string
	err     error
}

func (e usageError) Error() string { return e.err.Error() }
func (e usageError) Unwrap() error { return e.err }

func exitCode(err error) int {
	var usage usageError
	var problems config.Problems
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &usage), errors.As(err, &problems):
		return exitUsage
	case errors.Is(err, ops.ErrBadRequest), errors.Is(err, relay.ErrNoRoute),
		errors.Is(err, relay.ErrNoInstallation), errors.Is(err, ops.ErrNoConsumer):
		return exitUsage
	case errors.Is(err, store.ErrNotFound), errors.Is(err, ops.ErrNoFrame),
		errors.Is(err, errNothing):
		return exitNone
	case errors.Is(err, app.ErrLost):
		return exitLost
	default:
		return exitFailed
	}
}

func render(err error) string {
	var problems config.Problems
	if errors.As(err, &problems) {
		return fmt.Sprintf("%v\n%d problem(s) in the configuration; docs/configuration.md lists every key",
			problems, len(problems))
	}
	var usage usageError
	if errors.As(err, &usage) {
		return fmt.Sprintf("penstock: %v\ntry: %s --help", err, usage.command)
	}
	return "penstock: " + clean(err.Error())
}

// sameSignal is how soon after the first a second signal is taken for its echo:
// some programs signal a process and then its whole group.
const sameSignal = 250 * time.Millisecond

// interruptible gives a context that the first SIGINT or SIGTERM ends; the second
// ends the process.
func interruptible() (context.Context, func()) {
	ctx, cancel := context.WithCancel(context.Background())
	sig := make(chan os.Signal, 2)
	signal.Notify(sig, os.Interrupt, syscall.SIGTERM)
	done := make(chan struct{})
	go func() {
		var first time.Time
		for {
			select {
			case <-done:
				return
			case <-sig:
			}
			switch {
			case first.IsZero():
				first = time.Now()
				cancel()
			case time.Since(first) > sameSignal:
				fmt.Fprintln(os.Stderr, "penstock: second signal, leaving at once")
				os.Exit(exitForced)
			}
		}
	}()
	return ctx, func() {
		signal.Stop(sig)
		close(done)
		cancel()
	}
}

const longHelp = `Penstock takes chat-bot traffic off vendor stream gateways (DingTalk Stream) and
brings every message to your bot's handler: once, and in order per conversation,
across redials and deploys; and it sends the bot's replies back in order, within
the platform's limits.

  penstock demo                  see it work: a simulated gateway, no account needed
  penstock simulate              a simulated DingTalk to develop a bot against
  penstock check -c FILE         find every mistake in a configuration
  penstock run -c FILE           serve

  penstock inbox, outbox, dead   look at what is kept; requeue and purge
  penstock send, replay, trace   write into a chat, handle again, follow a message
  penstock edge                  look at the bots that are connected

A minimal configuration:

  installations:
    - id: my-bot
      client_id: dingxxxxxxxx
      client_secret: ${DINGTALK_CLIENT_SECRET}
  routes:
    - handler:
        http:
          url: http://127.0.0.1:8080/messages

Exit codes: 0 success; 1 failure; 2 wrong command line or configuration;
3 stopped, and work that no store keeps was cut off; 4 nothing is there of what
was named or selected; 130 second interrupt.`

func rootCommand(stdout, stderr io.Writer) *cobra.Command {
	root := &cobra.Command{
		Use:           "penstock",
		Short:         "Chat-bot messages, each one once and in order",
		Long:          longHelp,
		Version:       version.String(),
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetVersionTemplate("{{.Version}}\n")
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usageError{cmd.CommandPath(), err}
	})
	root.AddCommand(runCommand(), demoCommand(), simulateCommand(), checkCommand(), versionCommand(),
		inboxCommand(), outboxCommand(), deadCommand(),
		sendCommand(), replayCommand(), traceCommand(), edgeCommand())
	root.SetOut(stdout) // the command below keeps what is set now
	root.SetErr(stderr)
	root.InitDefaultCompletionCmd("completion") // the argument says that there is one
	root.InitDefaultHelpCmd()
	strict(root)
	return root
}

// strict makes a wrong argument of c, or of a command below it, an error of the
// command line.
func strict(c *cobra.Command) {
	switch {
	case c.Name() == "help":
		c.Args = helpArgs
	case c.HasSubCommands():
		c.Args = subcommandArgs
		if c.RunE == nil {
			c.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
		}
	default:
		if _, ok := c.Annotations[takesArgs]; !ok {
			c.Args = noArgs
		}
	}
	for _, sub := range c.Commands() {
		strict(sub)
	}
}

func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return usageError{cmd.CommandPath(), fmt.Errorf("%s takes no argument %q", cmd.Name(), args[0])}
}

// subcommandArgs is for a command that only has others below it: an argument is
// one that does not exist.
func subcommandArgs(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	err := fmt.Errorf("there is no command %q", cmd.CommandPath()+" "+args[0])
	cmd.SuggestionsMinimumDistance = 2
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		err = fmt.Errorf("%w; did you mean %s?", err, near[0])
	}
	return usageError{cmd.CommandPath(), err}
}

func helpArgs(cmd *cobra.Command, args []string) error {
	found, rest, err := cmd.Root().Find(args)
	if err != nil || len(rest) > 0 {
		return subcommandArgs(found, rest)
	}
	return nil
}
