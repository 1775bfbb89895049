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
pushes meanwhile is not acknowledged.`,
		Example: "  penstock check -c penstock.yaml --online",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return check(cmd.Context(), cmd.OutOrStdout(), path, online, within)
		},
	}
	cmd.Flags().StringVarP(&path, "config", "c", "penstock.yaml", "configuration file")
	cmd.Flags().BoolVar(&online, "online", false, "open a session for each installation")
	cmd.Flags().DurationVar(&within, "within", 30*time.Second, "longest wait for one session")
	return cmd
}

func check(ctx context.Context, out io.Writer, path string, online bool, within time.Duration) error {
	cfg, err := config.Load(path)
	if err != nil {
		return err
	}
	// Building finds what only the parts themselves can tell, such as an unusable
	// certificate file.
	if _, err := app.New(cfg, app.Options{}); err != nil {
		return config.Problems{{File: path, Text: err.Error()}}
	}
	fmt.Fprintf(out, "%s: %d installation(s), %d route(s): no mistakes\n",
		path, len(cfg.Installations), len(cfg.Routes))
	if len(cfg.Routes) == 0 {
		fmt.Fprintln(out, "note: there is no route, so messages will be taken and not handled")
	}
	if !online {
		return nil
	}
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
