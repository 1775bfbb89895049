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

	"github.com/spf13/cobra"

	"github.com/penstock-io/penstock/internal/app"
	"github.com/penstock-io/penstock/internal/config"
)

// Exit codes.
const (
	exitOK     = 0
	exitFailed = 1 // something went wrong while running
	exitUsage  = 2 // the command line or the configuration is wrong
	exitLost   = 3 // stopped, and work that no store keeps was cut off
	exitForced = 130
)

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

// run executes one command line and gives the exit code.
func run(args []string, stdout, stderr io.Writer) int {
	ctx, stop := interruptible()
	defer stop()
	root := rootCommand()
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.ExecuteContext(ctx)
	if err != nil {
		fmt.Fprintln(stderr, render(err))
	}
	return exitCode(err)
}

// usageError marks an error of the command line.
type usageError struct{ err error }

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
		return fmt.Sprintf("penstock: %v\ntry: penstock --help", err)
	}
	return fmt.Sprintf("penstock: %v", err)
}

// interruptible gives a context that the first SIGINT or SIGTERM ends; the second
// ends the process.
func interruptible() (context.Context, func()) {
	ctx, cancel := context.WithCancel(context.Background())
	sig := make(chan os.Signal, 2)
	signal.Notify(sig, os.Interrupt, syscall.SIGTERM)
	done := make(chan struct{})
	go func() {
		select {
		case <-sig:
			cancel()
		case <-done:
			return
		}
		select {
		case <-sig:
			fmt.Fprintln(os.Stderr, "penstock: second signal, leaving at once")
			os.Exit(exitForced)
		case <-done:
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
  penstock check -c FILE         find every mistake in a configuration
  penstock run -c FILE           serve

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
3 stopped, and work that no store keeps was cut off; 130 second interrupt.`

func rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:           "penstock",
		Short:         "Chat-bot messages, each one once and in order",
		Long:          longHelp,
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          cobra.NoArgs,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	root.AddCommand(runCommand(), demoCommand(), checkCommand(), versionCommand())
	for _, c := range append(root.Commands(), root) {
		strict(c)
	}
	return root
}

// strict makes a wrong argument an error of the command line.
func strict(c *cobra.Command) {
	args := c.Args
	if args == nil {
		return
	}
	c.Args = func(cmd *cobra.Command, given []string) error {
		if err := args(cmd, given); err != nil {
			return usageError{err}
		}
		return nil
	}
}
