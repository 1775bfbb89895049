package app

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/penstock-io/penstock/integrations"
	"github.com/penstock-io/penstock/integrations/dingtalk"
	"github.com/penstock-io/penstock/internal/config"
	"github.com/penstock-io/penstock/message"
)

// Probed is what came of opening one session.
type Probed struct {
	Installation message.InstallationID
	Took         time.Duration
	Err          error // nil if the platform accepted the session
}

// settleFor is how long an open socket must stand to count as accepted: a gateway
// that refuses late closes it at once.
const settleFor = time.Second

// probeEvery is how often the socket is looked at meanwhile.
const probeEvery = 50 * time.Millisecond

// Probe opens one session for each installation of cfg, all at once, and closes
// it again when the platform has accepted it or within has passed. No delivery is
// taken.
func Probe(ctx context.Context, cfg *config.Config, within time.Duration) []Probed {
	out := make([]Probed, len(cfg.Installations))
	var wg sync.WaitGroup
	for i, in := range cfg.Installations {
		wg.Go(func() {
			began := time.Now()
			err := probe(ctx, in, within)
			out[i] = Probed{message.InstallationID(in.ID), time.Since(began), err}
		})
	}
	wg.Wait()
	return out
}

func probe(ctx context.Context, in config.Installation, within time.Duration) error {
	d, err := dingtalk.Open(dingtalkConfig(in))
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	intake := probeIntake{live: make(chan struct{}, 1)}
	ended := make(chan integrations.End, 1)
	go func() { ended <- d.Connector.Run(ctx, nil, intake) }()
	err = accepted(ctx, d.Connector, intake.live, ended)
	cancel()
	if err == nil {
		<-ended // Run closes its socket
	}
	return err
}

// counted is a connector that tells how many sockets are open.
type counted interface{ Stats() dingtalk.Stats }

// accepted waits until the session is live, has stood a while, or has ended.
func accepted(
	ctx context.Context, c integrations.Connector, live chan struct{}, ended chan integrations.End,
) error {
	stats, _ := c.(counted)
	tick := time.NewTicker(probeEvery)
	defer tick.Stop()
	var since time.Time
	for {
		select {
		case <-live:
			return nil
		case end := <-ended:
			return endError(ctx, end)
		case now := <-tick.C:
			switch {
			case stats == nil || stats.Stats().Sessions == 0:
				since = time.Time{}
			case since.IsZero():
				since = now
			case now.Sub(since) >= settleFor:
				return nil
			}
		}
	}
}

func endError(ctx context.Context, end integrations.End) error {
	switch {
	case end.Err != nil:
		return fmt.Errorf("%s: %w", end.Why, end.Err)
	case ctx.Err() != nil:
		return fmt.Errorf("no session: %w", ctx.Err())
	default:
		return errors.New("the session ended: " + end.Why.String())
	}
}

// probeIntake takes nothing.
type probeIntake struct{ live chan struct{} }

func (p probeIntake) Live() {
	select {
	case p.live <- struct{}{}:
	default:
	}
}

func (p probeIntake) Offer(context.Context, message.Delivery) error {
	return errors.New("only looking")
}

func (p probeIntake) Retire(time.Duration) {}
