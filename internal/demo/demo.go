package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/penstock-io/penstock/integrations/dingtalk/dingtalktest"
)

// Options set up a demo. The zero value of each means its default.
type Options struct {
	For           time.Duration // of pushing; default 20 s, at least 5 s
	Conversations int           // in all; default 300
	Rate          int           // messages a second in all; default 300
	Seed          uint64        // repeats the choices; default 1
	Progress      func(Progress)
	// Log gets the log of the service, in JSON; default: nobody does.
	Log io.Writer
	// Program is what runs the service. Default: this program.
	Program string
}

// Progress is how things stand while the demo runs.
type Progress struct {
	Elapsed, For     time.Duration
	Pushed           int
	Acked, Handled   int
	Replied, Redials int
	// Note tells what was just done to a socket, once.
	Note string
}

// installations is how many bots the demo connects.
const installations = 3

// The times of a gateway and a client that run minutes in seconds: silence is
// noticed after 1.5 s in place of 90 s, and what was not acknowledged comes again
// after 4 s in place of 60 s.
const (
	pingEvery    = 500 * time.Millisecond
	silence      = 1500 * time.Millisecond
	robotTimeout = 4 * time.Second
	startTime    = 600 * time.Millisecond // that a service needs to be back after a kill
	settleFor    = 15 * time.Second
	startFor     = 10 * time.Second
)

// Run plays the demo and returns what came of it. An error means that it could
// not be played; losses are in the summary.
func Run(ctx context.Context, o Options) (Summary, error) {
	o = o.withDefaults()
	if err := o.validate(); err != nil {
		return Summary{}, err
	}
	book := newLedger()
	gw, err := newGateway(o, book)
	if err != nil {
		return Summary{}, err
	}
	gwCtx, stopGateway := context.WithCancel(context.WithoutCancel(ctx))
	gwDone := make(chan error, 1)
	go func() { gwDone <- gw.Run(gwCtx) }()
	sum, err := play(ctx, o, gw, book)
	stopGateway()
	return sum, errors.Join(err, <-gwDone, ctx.Err())
}

func (o Options) withDefaults() Options {
	if o.For == 0 {
		o.For = 20 * time.Second
	}
	if o.Conversations == 0 {
		o.Conversations = 300
	}
	if o.Rate == 0 {
		o.Rate = 300
	}
	if o.Seed == 0 {
		o.Seed = 1
	}
	if o.Progress == nil {
		o.Progress = func(Progress) {}
	}
	if o.Log == nil {
		o.Log = io.Discard
	}
	return o
}

func (o Options) validate() error {
	switch {
	case o.For < 5*time.Second:
		return errors.New("a demo takes at least 5s: a black-holed socket has to be noticed")
	case o.Conversations < installations:
		return fmt.Errorf("a demo has at least %d conversations", installations)
	case o.Rate < 1 || o.Rate > 20_000:
		return errors.New("a demo pushes 1 to 20000 messages a second")
	}
	return nil
}

func clientID(i int) string { return fmt.Sprintf("demo-bot-%d", i+1) }

func newGateway(o Options, book *ledger) (*dingtalktest.Gateway, error) {
	cfg := dingtalktest.Config{
		Seed: o.Seed, RobotTimeout: robotTimeout, Redelivery: dingtalktest.RedeliverNew,
		Down: dingtalktest.DownHold, Linger: 2 * time.Second, PingEvery: time.Second,
		Record: 1 << 20, OnAck: book.acked, OnSend: book.sent,
	}
	for i := range installations {
		cfg.Apps = append(cfg.Apps, dingtalktest.Credentials{ClientID: clientID(i), Secret: "demo"})
	}
	gw, err := dingtalktest.New(cfg)
	if err != nil {
		return nil, err
	}
	return gw, gw.Listen()
}

// play runs the endpoint and the service around the traffic.
func play(
	ctx context.Context, o Options, gw *dingtalktest.Gateway, book *ledger,
) (sum Summary, err error) {
	url, stopEndpoint, err := serveEndpoint(book)
	if err != nil {
		return sum, err
	}
	defer func() { err = errors.Join(err, stopEndpoint()) }()
	svc, err := newService(o, gw.URL(), url, book.doubt)
	if err != nil {
		return sum, err
	}
	defer func() { err = errors.Join(err, svc.close()) }()
	if err := svc.start(); err != nil {
		return sum, err
	}
	s := &stage{opts: o, gw: gw, svc: svc, book: book, began: time.Now()}
	if err := s.connected(ctx); err != nil {
		return sum, err
	}
	s.traffic(ctx)
	s.settle(ctx)
	err = svc.stop()
	if ctx.Err() != nil {
		return sum, nil // an interrupt ends the service as well
	}
	return s.summary(), errors.Join(err, s.err)
}
