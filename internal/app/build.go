package app

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/penstock-io/penstock/integrations"
	"github.com/penstock-io/penstock/integrations/dingtalk"
	"github.com/penstock-io/penstock/internal/config"
	"github.com/penstock-io/penstock/message"
	"github.com/penstock-io/penstock/relay"
	"github.com/penstock-io/penstock/router"
	"github.com/penstock-io/penstock/store"
	"github.com/penstock-io/penstock/store/memory"
	"github.com/penstock-io/penstock/store/sqlite"
)

// platformDingTalk is the name of the platform in the configuration.
const platformDingTalk = message.Platform("dingtalk")

func (a *App) buildPlatforms() (err error) {
	a.pacer, err = integrations.NewPacer(integrations.PacerConfig{Rate: a.cfg.Reconnect.PerSecond})
	if err != nil {
		return err
	}
	return a.registry.Register(platformDingTalk, a.openDingTalk)
}

func (a *App) openDingTalk(id message.InstallationID, settings any) (integrations.Driver, error) {
	in, ok := settings.(config.Installation)
	if !ok {
		return integrations.Driver{}, fmt.Errorf("settings are a %T", settings)
	}
	cfg := dingtalkConfig(in)
	cfg.Logger = a.log.With("installation", string(id))
	cfg.DialContext = a.opts.DialContext
	return dingtalk.Open(cfg)
}

func dingtalkConfig(in config.Installation) dingtalk.Config {
	return dingtalk.Config{
		Installation: message.InstallationID(in.ID),
		ClientID:     in.ClientID, ClientSecret: in.ClientSecret.Reveal(),
		RobotCode: in.RobotCode, Topics: in.Topics,
		APIBase: in.APIBase, OAPIBase: in.OAPIBase, AllowInsecure: in.AllowInsec,
		Proxy: in.Proxy.Reveal(), CAFile: in.CAFile, ReplyHosts: in.ReplyHosts,
		PingEvery: in.PingEvery, Silence: in.Silence, AppSilence: in.AppSilence,
		ReadLimit: int64(in.ReadLimit),
	}
}

func (a *App) buildStore() (err error) {
	s := a.cfg.Store
	if durable(a.cfg) {
		a.file = &file{}
		a.store, a.admin = a.file, a.file
	} else {
		a.store, err = memory.New(memory.Config{
			MaxItems: s.MaxItems, MaxBytes: int64(s.MaxBytes), Window: s.DedupWindow,
			MaxIDs: max(s.DedupIDs, memory.DefaultMaxIDs),
		})
		a.admin, _ = a.store.(store.Admin) // a store that is wrapped may hide it
	}
	if err == nil && a.opts.WrapStore != nil {
		a.store = a.opts.WrapStore(a.store)
	}
	return err
}

// file is the store in a file. Run opens it, because making a service opens
// nothing; until then both are nil and nobody calls them.
type file struct {
	store.Store
	store.Admin
}

// openStore opens the store's file, if there is one.
func (a *App) openStore(ctx context.Context) error {
	if a.file == nil {
		return nil
	}
	s := a.cfg.Store
	db, err := sqlite.Open(ctx, sqlite.Config{
		Path: s.Path, Window: s.DedupWindow, DeadFor: s.DeadFor, HistoryFor: s.HistoryFor,
		MaxBytes: int64(s.MaxFile), Logger: a.log,
	})
	if err != nil {
		return fmt.Errorf("open store: %w", err)
	}
	a.file.Store, a.file.Admin = db, db
	return nil
}

// interrupted tells whether the store in a file was not closed by who had it last.
func (a *App) interrupted() bool {
	if a.file == nil {
		return false
	}
	db, ok := a.file.Store.(*sqlite.Store)
	return ok && db.Stats().Unclean
}

// durable tells whether the configured store outlives the process.
func durable(c *config.Config) bool { return c.Store.Kind == "sqlite" }

// storePath is the file of a store that outlives the process, else empty.
func storePath(c *config.Config) string {
	if !durable(c) {
		return ""
	}
	return c.Store.Path
}

func (a *App) buildRelay() (err error) {
	in, out, st := a.cfg.Inbound, a.cfg.Outbound, a.cfg.Store
	a.relay, err = relay.New(relay.Config{
		Handler: a.handler, Route: a.handler.route,
		Store: a.store, Admin: a.admin,
		Inbound: relay.Queue{
			Workers: a.cfg.InboundWorkers(), PerKey: in.PerConversation,
			Pending: in.Pending, Timeout: in.Timeout,
		},
		Outbound: relay.Queue{
			Workers: out.Workers, PerKey: out.PerConversation,
			Pending: out.Pending, Timeout: out.Timeout,
		},
		SyncWorkers: in.SyncWorkers, SyncWithin: in.SyncWithin,
		Attempts: in.Attempts, RetryBase: in.RetryBase, RetryMax: in.RetryMax,
		NoRoute:      relay.NoRoute(in.NoRoute),
		SendAttempts: out.Attempts, SendWaits: out.Waits, SendTTL: out.TTL,
		Uncertain:        relay.Uncertain(out.Uncertain),
		InstallationRate: bucket(out.InstallationRate),
		ConversationRate: bucket(out.ConversationRate),
		DedupWindow:      st.DedupWindow, DedupIDs: frontIDs(a.cfg),
		Durable: durable(a.cfg), Interrupted: a.interrupted, Logger: a.log, Hooks: a.hooks(),
	})
	return err
}

// frontWindow is how many ids are remembered in front of a store that finds an id
// as fast itself.
const frontWindow = 4096

// frontIDs is how many ids the relay remembers. A window that holds what the
// memory store holds too would tell nothing more and take its memory again.
func frontIDs(c *config.Config) int {
	if durable(c) {
		return c.Store.DedupIDs
	}
	return min(c.Store.DedupIDs, frontWindow)
}

// bucket lets a second's worth pass at once.
func bucket(perSecond float64) relay.Rate {
	return relay.Rate{PerSecond: perSecond, Burst: int(math.Ceil(max(1, perSecond)))}
}

// hooks joins the service's own observations with those of the options.
func (a *App) hooks() relay.Hooks {
	h := a.opts.Hooks
	return relay.Hooks{
		Acked: func(took time.Duration) {
			a.metrics.Acked(took)
			if h.Acked != nil {
				h.Acked(took)
			}
		},
		Handled: func(m *message.Inbound, wait, took time.Duration, err error) {
			if !router.IsUnreached(err) { // no handler has run
				a.metrics.Handled(wait, took, err)
			}
			if h.Handled != nil {
				h.Handled(m, wait, took, err)
			}
		},
		SendTried: func(o *message.Outbound, took time.Duration, err error) {
			a.metrics.SendTried(took, err)
			if h.SendTried != nil {
				h.SendTried(o, took, err)
			}
		},
		Ended:     h.Ended,
		SendEnded: h.SendEnded,
	}
}
