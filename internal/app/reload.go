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
	if len(a.cfg.Edge.Consumers) > 0 { // else nothing listens before the next start
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

// warnFixed names the parts that only a restart changes.
func (a *App) warnFixed(cfg *config.Config) {
	was, now := *a.cfg, *cfg
	for _, part := range []struct {
		key      string
		was, now any
	}{
		{"stop_within", was.StopWithin, now.StopWithin},
		{"log", was.Log, now.Log},
		{"admin", was.Admin, now.Admin},
		{"store", was.Store, now.Store},
		{"inbound", was.Inbound, now.Inbound},
		{"outbound", was.Outbound, now.Outbound},
		{"reconnect", was.Reconnect, now.Reconnect},
		{"edge", fixedEdge(was.Edge), fixedEdge(now.Edge)},
	} {
		if !reflect.DeepEqual(part.was, part.now) {
			a.log.Warn("this part of the configuration changes at the next start", "key", part.key)
		}
	}
}

// fixedEdge is the part of the edge that a reload does not change: all but who the
// consumers are, and also that there are any.
func fixedEdge(e config.Edge) config.Edge {
	if len(e.Consumers) > 0 {
		e.Consumers = []config.Consumer{}
	}
	return e
}
