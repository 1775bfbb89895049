package app

import (
	"context"
	"fmt"
	"reflect"

	"github.com/penstock-io/penstock/integrations"
	"github.com/penstock-io/penstock/internal/config"
	"github.com/penstock-io/penstock/message"
	"github.com/penstock-io/penstock/relay"
)

// installation is one bot: its lane through the relay and the supervisor that
// keeps it connected.
type installation struct {
	// immutable
	app  *App
	id   message.InstallationID
	lane *relay.Lane
	sup  *integrations.Supervisor
	done chan struct{} // closed when the supervisor has ended

	// guarded by App.mu
	cfg    config.Installation
	driver integrations.Driver
	cancel context.CancelFunc // nil before start
}

// build makes an installation and attaches its lane. Nothing is opened.
func (a *App) build(in config.Installation) (*installation, error) {
	id := message.InstallationID(in.ID)
	d, err := a.registry.Open(message.Platform(in.Platform), id, in)
	if err != nil {
		return nil, err
	}
	i := &installation{app: a, id: id, cfg: in, driver: d, done: make(chan struct{})}
	if i.lane, err = a.relay.Attach(id, d.Sender); err != nil {
		return nil, err
	}
	re := a.cfg.Reconnect
	i.sup, err = integrations.NewSupervisor(integrations.Config{
		Installation: id, Connector: d.Connector, Sink: i.lane.Accept,
		Pacer: a.pacer, Logger: a.log, OnState: a.opts.OnState,
		RedialBase: re.Base, RedialMax: re.Max, ProbeEvery: re.ProbeEvery, MaxAge: re.MaxAge,
	})
	if err != nil {
		return nil, fmt.Errorf("installation %q: %w", in.ID, err)
	}
	return i, nil
}

// start runs the supervisor until ctx or the installation ends. The goroutine is
// waited for by way of done.
func (i *installation) start(ctx context.Context) {
	ctx, i.cancel = context.WithCancel(ctx)
	go func() {
		defer close(i.done)
		if err := i.sup.Run(ctx); err != nil {
			i.app.log.Error("supervisor ended", "installation", string(i.id), "error", err)
		}
	}()
}

// change gives the installation new settings while it runs: the new session
// opens before the old one is left.
func (i *installation) change(in config.Installation) error {
	d, err := i.app.registry.Open(message.Platform(in.Platform), i.id, in)
	if err != nil {
		return err
	}
	if err := i.sup.Replace(d.Connector); err != nil {
		return fmt.Errorf("installation %q: %w", in.ID, err)
	}
	i.lane.SetSender(d.Sender)
	i.cfg, i.driver = in, d
	return nil
}

// remove ends the installation; what it has stored stays in the store.
func (i *installation) remove(ctx context.Context) {
	i.cancel()
	select {
	case <-i.done:
	case <-ctx.Done():
	}
	i.lane.Detach(ctx)
}

func sameInstallation(a, b config.Installation) bool { return reflect.DeepEqual(a, b) }
