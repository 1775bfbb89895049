package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/penstock-io/penstock/edge"
	"github.com/penstock-io/penstock/integrations"
	"github.com/penstock-io/penstock/internal/admin"
	"github.com/penstock-io/penstock/internal/config"
	"github.com/penstock-io/penstock/internal/metrics"
	"github.com/penstock-io/penstock/message"
	"github.com/penstock-io/penstock/relay"
	"github.com/penstock-io/penstock/router"
	"github.com/penstock-io/penstock/store"
)

// ErrLost means that a stop cut off work that no store keeps.
var ErrLost = errors.New("accepted work was lost")

// Options are what a configuration file cannot say. The zero value works.
type Options struct {
	// Logger: default discards.
	Logger *slog.Logger
	// Handler, if set, is used in place of the configured routes.
	Handler router.Handler
	// Hooks are called beside the service's own.
	Hooks relay.Hooks
	// OnState is told of each change of an installation's state.
	OnState func(integrations.Status)
	// OnAdmin is told the address of the admin listener.
	OnAdmin func(net.Addr)
	// WrapStore, if set, is given the configured store and returns the one to use.
	WrapStore func(store.Store) store.Store
	// DialContext, if set, opens every connection to a platform.
	DialContext func(ctx context.Context, network, addr string) (net.Conn, error)
}

// App is a service. Make it with [New], run it once with [App.Run].
type App struct {
	// immutable
	opts     Options
	log      *slog.Logger
	registry *integrations.Registry
	pacer    *integrations.Pacer
	store    store.Store
	file     *file       // what store and admin are while the store is a file, else nil
	admin    store.Admin // of store, nil if it has none
	relay    *relay.Relay
	metrics  *metrics.Set
	handler  *handlers
	edge     *edge.Server
	listens  bool // for consumers: there were some at the start
	stopping atomic.Bool
	// sessions ends all sessions; runCtx is what they run on. The context is kept
	// because Reload starts sessions on behalf of Run.
	runCtx   context.Context
	sessions context.CancelFunc

	reload sync.Mutex // one Reload at a time, and none beside a stop

	mu sync.Mutex // guards the following fields
	// cfg is the configuration in force.
	cfg       *config.Config
	installed map[message.InstallationID]*installation
	// started tells that Run has started what is installed, so that a Reload
	// starts what it adds itself.
	started bool
}

// New builds a service. It starts nothing and opens nothing.
func New(cfg *config.Config, opts Options) (*App, error) {
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	own := *cfg // a Reload changes it
	a := &App{
		opts: opts, log: opts.Logger, cfg: &own, listens: len(cfg.Edge.Consumers) > 0,
		registry:  &integrations.Registry{},
		installed: make(map[message.InstallationID]*installation),
	}
	a.runCtx, a.sessions = context.WithCancel(context.Background())
	a.metrics = metrics.New(a.samples)
	for _, step := range []func() error{
		a.buildPlatforms, a.buildEdge, a.buildHandler, a.buildStore, a.buildRelay, a.buildInstallations,
	} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	return a, nil
}

func (a *App) buildHandler() (err error) {
	a.handler, err = newHandlers(a.cfg, a.opts.Handler, a.edge)
	return err
}

func (a *App) buildInstallations() error {
	for _, in := range a.cfg.Installations {
		i, err := a.build(in)
		if err != nil {
			return err
		}
		a.installed[i.id] = i
	}
	return nil
}

// Run serves until ctx is done, then stops within the configured time. It returns
// ErrLost if work was cut off that no store keeps, nil if nothing was lost, and
// any other error if the service failed.
func (a *App) Run(ctx context.Context) error {
	if err := a.openStore(ctx); err != nil {
		return err
	}
	adminCtx, stopAdmin := context.WithCancel(context.WithoutCancel(ctx))
	defer stopAdmin()
	g, gctx := errgroup.WithContext(ctx)
	relayCtx, killRelay := context.WithCancel(context.WithoutCancel(ctx))
	defer killRelay()
	g.Go(func() error { return a.relay.Run(relayCtx) })
	g.Go(func() error { return a.serveAdmin(adminCtx) })
	g.Go(func() error { return a.serveOps(adminCtx) })
	edgeCtx, stopEdge := context.WithCancel(context.WithoutCancel(ctx))
	defer stopEdge()
	g.Go(func() error { return a.serveEdge(edgeCtx) })
	a.startAll()
	<-gctx.Done() // ctx, or one of them has failed
	err := a.stop(stopEdge, stopAdmin)
	return errors.Join(g.Wait(), err, a.store.Close())
}

func (a *App) startAll() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.started = true
	for _, i := range a.installed {
		i.start(a.runCtx)
	}
}

func (a *App) serveAdmin(ctx context.Context) error {
	if a.cfg.Admin.Listen == "off" {
		<-ctx.Done()
		return nil
	}
	srv := admin.New(a.cfg.Admin.Listen, a.cfg.Admin.Token.Reveal(), admin.Source{
		Health: a.Health, Stopping: a.stopping.Load, Metrics: a.metrics.Handler(),
	})
	return srv.Run(ctx, func(addr net.Addr) {
		a.log.Info("admin listener is up", "address", addr.String())
		if a.opts.OnAdmin != nil {
			a.opts.OnAdmin(addr)
		}
	})
}

// stop ends the service in this order: readiness, sessions, handlers, sends,
// store, consumers. One deadline spans all of it. Consumers come late because what
// handlers wait for are their answers: many clients close their connection as soon
// as they are asked to leave, and would take the answers they owe with them.
func (a *App) stop(stopEdge, stopAdmin func()) error {
	began := time.Now()
	a.stopping.Store(true)
	a.reload.Lock()
	defer a.reload.Unlock()
	ctx, cancel := context.WithDeadline(context.Background(), began.Add(a.cfg.StopWithin))
	defer cancel()
	a.log.Info("stopping", "within", a.cfg.StopWithin)
	a.sessions()
	a.waitSessions(ctx)
	rep := a.shutRelay(ctx, began)
	stopEdge()
	stopAdmin()
	a.handler.close()
	return a.account(rep, time.Since(began))
}

// shutRelay ends handlers and sends. Consumers of the edge that hold an answer back
// to the end still get time to be told that they are to leave.
func (a *App) shutRelay(ctx context.Context, began time.Time) relay.Report {
	if a.listens {
		farewell := min(edge.StopGrace, a.cfg.StopWithin/4)
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, began.Add(a.cfg.StopWithin-farewell))
		defer cancel()
	}
	return a.relay.Shutdown(ctx)
}

// waitSessions lets the sessions send the acknowledgements they owe.
func (a *App) waitSessions(ctx context.Context) {
	for _, i := range a.all() {
		select {
		case <-i.done:
		case <-ctx.Done():
			a.log.Warn("a session did not end in time", "installation", string(i.id))
			return
		}
	}
}

// maxNamed bounds how many unfinished items a stop names in the log.
const maxNamed = 1000

// account logs what a stop left.
func (a *App) account(rep relay.Report, took time.Duration) error {
	for n, u := range rep.Unfinished {
		if n == maxNamed {
			a.log.Warn("more work was cut off", "items", len(rep.Unfinished)-maxNamed)
			break
		}
		a.log.Warn("work was cut off by the stop", "direction", u.Direction,
			"installation", string(u.Installation), "conversation", string(u.Conversation),
			"message_id", string(u.ID))
	}
	s := a.relay.Stats()
	a.log.Info("stopped", "took", took.Round(time.Millisecond), "handled", s.Done, "sent", s.Sent,
		"unfinished", len(rep.Unfinished), "messages_left", rep.Inbox, "replies_left", rep.Outbox)
	if !durable(a.cfg) && rep.Inbox+rep.Outbox > 0 {
		return fmt.Errorf("%w: %d messages and %d replies were in memory only",
			ErrLost, rep.Inbox, rep.Outbox)
	}
	return nil
}

func (a *App) all() []*installation {
	a.mu.Lock()
	defer a.mu.Unlock()
	all := make([]*installation, 0, len(a.installed))
	for _, in := range a.cfg.Installations {
		if i := a.installed[message.InstallationID(in.ID)]; i != nil {
			all = append(all, i)
		}
	}
	return all
}
