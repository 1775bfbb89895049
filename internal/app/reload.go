package app

import (
	"context"
	"errors"
	"reflect"

	"github.com/penstock-io/penstock/internal/config"
	"github.com/penstock-io/penstock/message"
)

// ErrStopping means that a stop has begun.
var ErrStopping = errors.New("the service is stopping")

// Reload puts a new configuration in force: routes are exchanged at once,
// installations are added, changed and removed without touching the others. What
// needs a restart is logged. An error leaves the installations that it names as
// they were.
func (a *App) Reload(ctx context.Context, cfg *config.Config) error {
	a.reload.Lock()
	defer a.reload.Unlock()
	if a.stopping.Load() {
		return ErrStopping
	}
	if err := a.handler.replace(cfg); err != nil {
		return err
	}
	if err := a.edge.Reload(consumers(cfg.Edge.Consumers)); err != nil {
		return err
	}
	a.warnFixed(cfg)
	ctx, cancel := context.WithTimeout(ctx, a.cfg.StopWithin)
	defer cancel()
	err := a.reconcile(ctx, cfg)
	a.log.Info("configuration reloaded", "installations", len(cfg.Installations),
		"routes", len(cfg.Routes))
	return err
}

// reconcile brings the running installations to what cfg says.
func (a *App) reconcile(ctx context.Context, cfg *config.Config) error {
	var errs []error
	wanted := map[message.InstallationID]bool{}
	for _, in := range cfg.Installations {
		wanted[message.InstallationID(in.ID)] = true
		if err := a.ensure(in); err != nil {
			errs = append(errs, err)
		}
	}
	for _, i := range a.all() {
		if !wanted[i.id] {
			a.remove(ctx, i)
			a.log.Info("installation removed", "installation", string(i.id))
		}
	}
	a.mu.Lock()
	a.cfg.Installations, a.cfg.Routes = cfg.Installations, cfg.Routes
	if a.listens { // else nobody can connect before the next start
		a.cfg.Edge.Consumers = cfg.Edge.Consumers
	}
	a.mu.Unlock()
	return errors.Join(errs...)
}

// remove ends an installation. One that has not been started is taken out first,
// so that Run does not start it meanwhile.
func (a *App) remove(ctx context.Context, i *installation) {
	a.mu.Lock()
	started := a.started
	if !started {
		delete(a.installed, i.id)
	}
	a.mu.Unlock()
	if !started {
		i.lane.Detach(ctx)
		return
	}
	i.remove(ctx)
	a.mu.Lock()
	delete(a.installed, i.id)
	a.mu.Unlock()
}

// ensure adds an installation or changes it.
func (a *App) ensure(in config.Installation) error {
	a.mu.Lock()
	i := a.installed[message.InstallationID(in.ID)]
	a.mu.Unlock()
	if i == nil {
		i, err := a.build(in)
		if err != nil {
			return err
		}
		a.mu.Lock()
		a.installed[i.id] = i
		if a.started {
			i.start(a.runCtx)
		}
		a.mu.Unlock()
		a.log.Info("installation added", "installation", in.ID)
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if sameInstallation(i.cfg, in) {
		return nil
	}
	if err := i.change(in); err != nil {
		return err
	}
	a.log.Info("installation changed", "installation", in.ID)
	return nil
}

// warnFixed names the keys that only a restart changes.
func (a *App) warnFixed(cfg *config.Config) {
	was, now := fixed(*a.cfg), fixed(*cfg)
	if a.listens {
		was.Edge.Consumers, now.Edge.Consumers = nil, nil
	}
	for _, key := range changed(reflect.ValueOf(was), reflect.ValueOf(now), "") {
		a.log.Warn("this key of the configuration changes at the next start", "key", key)
	}
}

// fixed is the part of a configuration that a reload does not change. Of the consumers
// of the edge that is only whether there are any.
func fixed(cfg config.Config) config.Config {
	cfg.Installations, cfg.Routes, cfg.Warnings = nil, nil, nil
	if len(cfg.Edge.Consumers) > 0 {
		cfg.Edge.Consumers = []config.Consumer{}
	}
	return cfg
}

// changed gives the keys of a struct, and of those inside it, whose values differ.
func changed(was, now reflect.Value, prefix string) (keys []string) {
	for f := range was.Type().Fields() {
		key := prefix + f.Tag.Get("yaml")
		was, now := was.FieldByIndex(f.Index), now.FieldByIndex(f.Index)
		switch {
		case was.Kind() == reflect.Struct:
			keys = append(keys, changed(was, now, key+".")...)
		case !reflect.DeepEqual(was.Interface(), now.Interface()):
			keys = append(keys, key)
		}
	}
	return keys
}
