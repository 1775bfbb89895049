// Command penstockbench is Penstock as `penstock run` wires it, with a Go handler
// in place of the routes, as a client of the benchmark.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"log/slog"
	"net/http"
	_ "net/http/pprof" // served on -pprof only
	"os"
	"sync/atomic"
	"time"

	"github.com/penstock-io/penstock/internal/app"
	"github.com/penstock-io/penstock/internal/config"
	"github.com/penstock-io/penstock/relay"
	"github.com/penstock-io/penstock/test/bench/internal/line"
)

type options struct {
	url, pprof string
	bots       int
	work       time.Duration
	jitter     bool
	ledger     bool
	stopWithin time.Duration
	store      string
	keep       time.Duration
	fill, send int
	edge       int
	workers    int
}

// began is about when the process began.
var began = time.Now()

func main() {
	var o options
	flag.StringVar(&o.url, "url", "", "gateway")
	flag.IntVar(&o.bots, "bots", 1, "installations")
	flag.DurationVar(&o.work, "work", 0, "how long the handler takes")
	flag.BoolVar(&o.jitter, "jitter", false, "between nothing and -work")
	flag.BoolVar(&o.ledger, "ledger", false, "check the order of messages")
	flag.DurationVar(&o.stopWithin, "stop-within", time.Second, "budget of a stop")
	flag.StringVar(&o.pprof, "pprof", "", "address for profiles")
	flag.StringVar(&o.store, "store", "", "file of the store; default: in memory")
	flag.DurationVar(&o.keep, "keep", 0, "how long the store remembers; default: as configured")
	flag.IntVar(&o.fill, "fill", 0, "put so many messages into the store and end")
	flag.IntVar(&o.send, "send", 0, "put so many replies into the store, send them and end")
	flag.IntVar(&o.edge, "edge", 0, "leave messages to a consumer with up to so many sockets")
	flag.IntVar(&o.workers, "workers", 0, "messages that are out at once; default: as configured")
	flag.Parse()
	do := run
	switch {
	case o.fill > 0:
		do = fill
	case o.send > 0:
		do = sendAll
	}
	if err := do(o); err != nil {
		fmt.Fprintln(os.Stderr, "penstockbench:", err)
		os.Exit(1)
	}
}

func run(o options) error {
	if o.pprof != "" {
		go func() { _ = http.ListenAndServe(o.pprof, nil) }() // ends with the process
	}
	h := &handler{work: o.work, jitter: o.jitter}
	if o.ledger {
		h.ledger = newLedger()
	}
	var cut cutOff
	opts := app.Options{
		Handler: h, Logger: slog.New(&cut),
		Hooks: relay.Hooks{Acked: func(time.Duration) { note(&h.firstAck) }},
	}
	if o.edge > 0 {
		opts.Handler = nil // the routes lead to the edge
	}
	a, err := app.New(configOf(o), opts)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = a.Run(ctx) // work that was cut off is counted
	}()
	figures := func() (line.Figures, error) {
		f := h.figures()
		return f, scrape(a.Metrics(), &f)
	}
	return line.Serve(map[string]line.Word{
		"stats": func(json.RawMessage) (any, error) { return figures() },
		"edge":  func(json.RawMessage) (any, error) { return a.EdgeURL(), nil },
		"stop": func(json.RawMessage) (any, error) {
			began := time.Now()
			cancel()
			<-done
			took := time.Since(began)
			f, err := figures()
			f.StopTook, f.Unfinished = took, int(cut.named.Load())
			return f, err
		},
	})
}

func configOf(o options) *config.Config {
	cfg := config.Default()
	cfg.Store.Kind = "memory"
	if o.store != "" {
		cfg.Store.Kind, cfg.Store.Path = "sqlite", o.store
	}
	if o.keep > 0 {
		cfg.Store.DedupWindow, cfg.Store.HistoryFor, cfg.Store.DeadFor = o.keep, o.keep, o.keep
	}
	cfg.Admin.Socket = "off"
	cfg.Admin.Listen = "off"
	cfg.StopWithin = o.stopWithin
	cfg.Reconnect.PerSecond = 1000 // so that thousands of bots connect in seconds
	if o.workers > 0 {
		cfg.Inbound.Workers = o.workers
	}
	if o.edge > 0 {
		cfg.Edge.Listen, cfg.Edge.MaxConnections = "127.0.0.1:0", o.edge
		cfg.Edge.Consumers = []config.Consumer{{
			Name: "bench", ClientID: "bench-0", ClientSecret: "bench", MaxConnections: o.edge,
		}}
		cfg.Routes = []config.Route{{
			Name: "bench", Handler: config.Handler{Edge: &config.ToConsumer{Consumer: "bench"}},
		}}
	}
	for i := range o.bots {
		cfg.Installations = append(cfg.Installations, config.Installation{
			ID: fmt.Sprintf("bot-%d", i), Platform: "dingtalk",
			ClientID: fmt.Sprintf("bench-%d", i), ClientSecret: "bench",
			APIBase: o.url, OAPIBase: o.url, AllowInsec: true,
		})
	}
	return &cfg
}

// cutOff is a log that only counts the items which a stop names.
type cutOff struct{ named atomic.Int64 }

// Enabled implements slog.Handler.
func (*cutOff) Enabled(_ context.Context, l slog.Level) bool { return l >= slog.LevelInfo }

// Handle implements slog.Handler.
func (c *cutOff) Handle(_ context.Context, r slog.Record) error {
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == "message_id" && r.Level == slog.LevelWarn {
			c.named.Add(1)
		}
		return true
	})
	return nil
}

// WithAttrs implements slog.Handler.
func (c *cutOff) WithAttrs([]slog.Attr) slog.Handler { return c }

// WithGroup implements slog.Handler.
func (c *cutOff) WithGroup(string) slog.Handler { return c }
