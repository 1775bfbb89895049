// Command daemon is the service with a failpoint: it kills itself, as SIGKILL from
// outside would, at one chosen write to its store.
//
//	PENSTOCK_FAILPOINT="before finish 1" daemon FILE
//
// kills it when the first handler's outcome is about to be committed; "after" kills
// it when that is on disk and before anybody has been told. It exists for tests; the
// program that is delivered has nothing of the kind.
package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/penstock-io/penstock/internal/app"
	"github.com/penstock-io/penstock/internal/config"
	"github.com/penstock-io/penstock/store"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run() error {
	f := &failpoint{}
	if spec := os.Getenv("PENSTOCK_FAILPOINT"); spec != "" {
		if _, err := fmt.Sscanf(spec, "%s %s %d", &f.phase, &f.op, &f.left); err != nil {
			return fmt.Errorf("failpoint %q: %w", spec, err)
		}
	}
	cfg, err := config.Load(os.Args[len(os.Args)-1])
	if err != nil {
		return err
	}
	log := slog.New(slog.NewJSONHandler(os.Stderr, nil))
	a, err := app.New(cfg, app.Options{Logger: log, WrapStore: f.wrap})
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	return a.Run(ctx)
}

// failpoint is a store that ends the process at one of its writes.
type failpoint struct {
	store.Store
	phase, op string
	left      int // how many of that op are still to come; owned by the writer
}

func (f *failpoint) wrap(s store.Store) store.Store {
	f.Store = s
	return f
}

// Commit implements store.Store, as far as it comes.
func (f *failpoint) Commit(ctx context.Context, ops []store.Op) error {
	hit := f.hit(ops)
	if hit && f.phase == "before" {
		die()
	}
	err := f.Store.Commit(ctx, ops)
	if hit && err == nil {
		die()
	}
	return err
}

// hit tells whether the op that is waited for is in the group.
func (f *failpoint) hit(ops []store.Op) bool {
	if f.left == 0 {
		return false
	}
	for _, op := range ops {
		name := strings.ToLower(strings.TrimPrefix(fmt.Sprintf("%T", op), "*store."))
		if name != f.op {
			continue
		}
		if f.left--; f.left == 0 {
			return true
		}
	}
	return false
}

// die ends the process at once: no deferred call runs and nothing is flushed.
func die() {
	self, err := os.FindProcess(os.Getpid())
	if err == nil {
		err = self.Kill()
	}
	if err != nil {
		panic(err)
	}
	select {}
}
