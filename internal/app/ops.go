package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/penstock-io/penstock/integrations"
	"github.com/penstock-io/penstock/internal/config"
	"github.com/penstock-io/penstock/internal/ops"
	"github.com/penstock-io/penstock/message"
	"github.com/penstock-io/penstock/relay"
)

// ErrNotRunning means that no service runs on a configuration, and that nothing is
// kept of one that has stopped.
var ErrNotRunning = errors.New("the service does not run")

// socketOff is the word that turns the admin socket off.
const socketOff = "off"

// SocketPath is where a service with this configuration serves its admin socket,
// empty for nowhere: where admin.socket says, else beside the file of the store.
func SocketPath(cfg *config.Config) string {
	switch socket := cfg.Admin.Socket; {
	case socket == socketOff:
		return ""
	case socket == "" && durable(cfg):
		return storePath(cfg) + ".sock"
	default:
		return socket
	}
}

// serveOps serves the admin socket until ctx is done.
func (a *App) serveOps(ctx context.Context) error {
	path := SocketPath(a.cfg)
	if path == "" {
		<-ctx.Done()
		return nil
	}
	api := &ops.Service{
		Admin: a.admin, Engine: a.relay, Installations: a.ids, Edge: gateway{a}, Logger: a.log,
	}
	err := ops.NewServer(path, api).Run(ctx, func() {
		a.log.Info("admin socket is up", "path", path)
	})
	if a.cfg.Admin.Socket == "" && errors.Is(err, ops.ErrSocketName) {
		a.log.Warn("there is no admin socket; admin.socket may give it a shorter path", "error", err)
		<-ctx.Done()
		return nil
	}
	return err
}

func (a *App) ids() []message.InstallationID {
	var ids []message.InstallationID
	for _, i := range a.all() {
		ids = append(ids, i.id)
	}
	return ids
}

// Operation is the verbs of an operator on one configuration.
type Operation struct {
	ops.API
	// Running tells that a service does them; else they work on its file, and what
	// they queue waits for the next start.
	Running bool

	close []func() error
}

// Close ends an operation; a file is free again for a service.
func (o *Operation) Close() error {
	var errs []error
	for _, c := range o.close {
		errs = append(errs, c())
	}
	return errors.Join(errs...)
}

// Operate gives the verbs on a configuration: by the admin socket of the service
// that runs on it; if nobody serves that, on the file of its store, which is held
// alone until Close. ErrNotRunning means that there is neither. A file that is in
// use is refused with the store's error, which names the owner.
func Operate(ctx context.Context, cfg *config.Config, log *slog.Logger) (*Operation, error) {
	op, err := Reach(ctx, cfg)
	switch {
	case errors.Is(err, ErrNotRunning) && durable(cfg):
		return offline(ctx, cfg, log)
	case errors.Is(err, ErrNotRunning) && SocketPath(cfg) != "":
		return nil, fmt.Errorf("%w, and a store in memory keeps nothing", err)
	}
	return op, err
}

// Reach gives the verbs by the admin socket of the service that runs on a
// configuration, of which it needs only what says where that is. ErrNotRunning means
// that nobody serves it.
func Reach(ctx context.Context, cfg *config.Config) (*Operation, error) {
	path := SocketPath(cfg)
	if path == "" {
		return nil, notRunning(path)
	}
	c, err := ops.Dial(ctx, path)
	if errors.Is(err, ops.ErrNobody) {
		return nil, notRunning(path)
	}
	if err != nil {
		return nil, err
	}
	return &Operation{API: c, Running: true, close: []func() error{c.Close}}, nil
}

func notRunning(path string) error {
	if path == "" {
		return fmt.Errorf("%w, or serves no socket: set admin.socket to reach it", ErrNotRunning)
	}
	return fmt.Errorf("%w: nobody serves %s", ErrNotRunning, path)
}

// offline opens the store of a service that is stopped, and what its verbs need:
// the routes for replays, the senders to cut and address replies.
func offline(
	ctx context.Context, cfg *config.Config, log *slog.Logger,
) (_ *Operation, err error) {
	a := &App{opts: Options{Logger: log}, log: log, cfg: cfg, registry: &integrations.Registry{}}
	op := &Operation{}
	defer func() {
		if err != nil {
			err = errors.Join(err, op.Close())
		}
	}()
	for _, step := range []func() error{
		a.buildPlatforms, a.buildHandler, a.buildStore, func() error { return a.openStore(ctx) },
	} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	op.close = []func() error{a.store.Close, func() error { a.handler.close(); return nil }}
	senders, ids, err := a.senders()
	if err != nil {
		return nil, err
	}
	engine, err := relay.NewOffline(relay.OfflineConfig{
		Store: a.store, Senders: senders, Route: a.handler.route,
		Timeout: cfg.Inbound.Timeout, Logger: log,
	})
	if err != nil {
		return nil, err
	}
	op.API = &ops.Service{
		Admin: a.admin, Engine: engine,
		Installations: func() []message.InstallationID { return ids },
	}
	return op, nil
}

// senders makes the senders of all installations. They connect to nothing.
func (a *App) senders() (
	senders map[message.InstallationID]relay.Sender, ids []message.InstallationID, err error,
) {
	senders = make(map[message.InstallationID]relay.Sender)
	for _, in := range a.cfg.Installations {
		id := message.InstallationID(in.ID)
		d, err := a.registry.Open(message.Platform(in.Platform), id, in)
		if err != nil {
			return nil, nil, err
		}
		senders[id] = d.Sender
		ids = append(ids, id)
	}
	return senders, ids, nil
}
