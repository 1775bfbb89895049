package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/penstock-io/penstock/internal/app"
	"github.com/penstock-io/penstock/internal/config"
)

// watchEvery is how often the configuration file is looked at.
const watchEvery = 2 * time.Second

func runCommand() *cobra.Command {
	var path string
	var watch bool
	cmd := &cobra.Command{
		Use:   "run [-c FILE]",
		Short: "Connect the configured bots and serve until stopped",
		Long: `Connect the configured bots and serve until SIGINT or SIGTERM.

A stop ends within stop_within (15s by default): sessions stop reading and send
the acknowledgements they owe, handlers and sends in flight end, the store is
flushed. A second signal leaves at once.

SIGHUP, or a change of the file, reloads installations and routes without
touching what has not changed. A faulty file is reported and the old one stays
in force.

The log goes to standard error; health and metrics are served on admin.listen:
/healthz, /readyz, /readyz/INSTALLATION, /metrics.`,
		Example: "  penstock run -c configs/minimal.yaml",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return serve(cmd.Context(), cmd.ErrOrStderr(), path, watch)
		},
	}
	cmd.Flags().StringVarP(&path, "config", "c", "penstock.yaml", "configuration file")
	cmd.Flags().BoolVar(&watch, "watch", true, "reload when the file changes")
	return cmd
}

func serve(ctx context.Context, stderr io.Writer, path string, watch bool) error {
	cfg, err := config.Load(path)
	if err != nil {
		return err
	}
	log := logger(stderr, cfg.Log)
	warn(log, cfg)
	a, err := app.New(cfg, app.Options{Logger: log})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	done := make(chan struct{})
	go func() {
		defer close(done)
		reloads(ctx, a, log, path, watch)
	}()
	log.Info("starting", "config", path, "installations", len(cfg.Installations),
		"routes", len(cfg.Routes), "store", cfg.Store.Kind)
	err = a.Run(ctx)
	cancel()
	<-done
	return err
}

// reloads applies the file at path on SIGHUP and, if watch is set, when it changes.
func reloads(ctx context.Context, a *app.App, log *slog.Logger, path string, watch bool) {
	hup := make(chan os.Signal, 1)
	signal.Notify(hup, syscall.SIGHUP)
	defer signal.Stop(hup)
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	seen := stamp(path)
	for {
		select {
		case <-ctx.Done():
			return
		case <-hup:
		case <-tick.C:
			if !watch || stamp(path) == seen {
				continue
			}
		}
		seen = stamp(path)
		if err := reload(ctx, a, log, path); err != nil {
			log.Error("the configuration was not reloaded", "config", path, "error", err)
		}
	}
}

// warn logs what the configuration most likely does not mean.
func warn(log *slog.Logger, cfg *config.Config) {
	for _, w := range cfg.Warnings {
		log.Warn("the configuration may do something else than is meant",
			"config", w.File, "line", w.Line, "key", w.Key, "warning", w.Text)
	}
}

func reload(ctx context.Context, a *app.App, log *slog.Logger, path string) error {
	cfg, err := config.Load(path)
	if err != nil {
		return err
	}
	warn(log, cfg)
	return a.Reload(ctx, cfg)
}

// stamp changes when the file does; a file that is missing has none.
func stamp(path string) string {
	info, err := os.Stat(path)
	if err != nil {
		return ""
	}
	return fmt.Sprint(info.ModTime().UnixNano(), info.Size())
}

func logger(w io.Writer, c config.Log) *slog.Logger {
	var level slog.Level
	_ = level.UnmarshalText([]byte(c.Level)) // the configuration has checked the word
	opts := &slog.HandlerOptions{Level: level}
	if c.Format == "json" {
		return slog.New(slog.NewJSONHandler(w, opts))
	}
	return slog.New(slog.NewTextHandler(w, opts))
}
