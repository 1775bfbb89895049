package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/penstock-io/penstock/internal/app"
	"github.com/penstock-io/penstock/internal/config"
)

func checkCommand() *cobra.Command {
	var path string
	var online bool
	var within time.Duration
	cmd := &cobra.Command{
		Use:   "check [-c FILE]",
		Short: "Find every mistake in a configuration",
		Long: `Read a configuration and report every mistake with its line and key.

With --online, also open one session for each installation, see whether the
gateway accepts it, and close it again. No message is taken: what the gateway
pushes meanwhile is not acknowledged.

What is allowed and most likely not meant, such as a route for cards to which no
bot subscribes, is a warning on the standard error. Warnings leave the exit code
at 0; "penstock run" logs them.`,
		Example: "  penstock check -c penstock.yaml --online",
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := check(cmd.OutOrStdout(), cmd.ErrOrStderr(), path)
			if err != nil || !online {
				return err
			}
			return checkOnline(cmd.Context(), cmd.OutOrStdout(), cfg, within)
		},
	}
	cmd.Flags().StringVarP(&path, "config", "c", "penstock.yaml", "configuration file")
	cmd.Flags().BoolVar(&online, "online", false, "open a session for each installation")
	cmd.Flags().DurationVar(&within, "within", 30*time.Second, "longest wait for one session")
	return cmd
}

// check reads a configuration, warns of what is odd about it and counts what it has.
func check(out, errs io.Writer, path string) (*config.Config, error) {
	cfg, err := config.Load(path)
	if err != nil {
		return nil, err
	}
	// Building finds what only the parts themselves can tell, such as a header that a
	// handler sets itself.
	if _, err := app.New(cfg, app.Options{}); err != nil {
		return nil, config.Problems{{File: path, Text: err.Error()}}
	}
	for _, w := range cfg.Warnings {
		fmt.Fprintf(errs, "warning: %v\n", w)
	}
	fmt.Fprintf(out, "%s: %s\n", path, summary(cfg))
	return cfg, nil
}

// summary counts what a configuration has.
func summary(cfg *config.Config) string {
	s := fmt.Sprintf("%d installation(s), %d route(s)", len(cfg.Installations), len(cfg.Routes))
	if n := len(cfg.Edge.Consumers); n > 0 {
		s += fmt.Sprintf(", %d consumer(s)", n)
	}
	s += ": no mistakes"
	if n := len(cfg.Warnings); n > 0 {
		s += fmt.Sprintf(", %d warning(s)", n)
	}
	return s
}

// checkOnline opens a session for each installation.
func checkOnline(
	ctx context.Context, out io.Writer, cfg *config.Config, within time.Duration,
) error {
	failed := 0
	for _, r := range app.Probe(ctx, cfg, within) {
		if r.Err != nil {
			failed++
			fmt.Fprintf(out, "%s: %v\n", r.Installation, r.Err)
			continue
		}
		fmt.Fprintf(out, "%s: connected in %v\n", r.Installation, r.Took.Round(time.Millisecond))
	}
	if failed > 0 {
		return errors.New("not every installation could connect")
	}
	return nil
}
