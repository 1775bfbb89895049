package app

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/penstock-io/penstock/edge"
	"github.com/penstock-io/penstock/internal/config"
	"github.com/penstock-io/penstock/message"
	"github.com/penstock-io/penstock/relay"
)

// errNoInstallation means that a reply belongs to a bot that is not configured.
var errNoInstallation = errors.New("there is no such installation")

func (a *App) buildEdge() (err error) {
	c := a.cfg.Edge
	a.edge, err = edge.New(edge.Config{
		Listen: c.Listen, PublicURL: c.PublicURL, CertFile: c.TLSCert, KeyFile: c.TLSKey,
		MaxConnections: c.MaxConnections, MaxFrame: int64(c.MaxFrame),
		AckWithin: c.AckWithin, PingEvery: c.PingEvery, WriteTimeout: c.WriteTimeout,
		AwayWithin:  c.AwayWithin,
		PassWebhook: c.PassthroughWebhook,
		Consumers:   consumers(c.Consumers), Outbox: outbox{a},
		Asked:   a.asked,
		Workers: a.cfg.InboundWorkers(),
		Again:   a.again,
		Logger:  a.log,
	})
	return err
}

// again has messages tried that a consumer could not be given. The relay is made after
// the edge.
func (a *App) again(n int) {
	if n == 0 {
		a.relay.Nudge()
	} else {
		a.relay.NudgeSome(n)
	}
}

// asked tells whether an installation asks the platform for a topic.
func (a *App) asked(topic string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, i := range a.installed {
		if slices.Contains(i.cfg.Topics, topic) {
			return true
		}
	}
	return false
}

func consumers(list []config.Consumer) []edge.Consumer {
	var out []edge.Consumer
	for _, c := range list {
		out = append(out, edge.Consumer{
			Name: c.Name, ClientID: c.ClientID, ClientSecret: c.ClientSecret.Reveal(),
			MaxConnections: c.MaxConnections, MaxInFlight: c.MaxInFlight,
		})
	}
	return out
}

// serveEdge serves consumers until ctx is done, if there were any at the start.
func (a *App) serveEdge(ctx context.Context) error {
	if !a.listens {
		<-ctx.Done()
		return nil
	}
	return a.edge.Run(ctx)
}

// EdgeURL is where consumers connect, empty while nobody can.
func (a *App) EdgeURL() string { return a.edge.URL() }

// outbox takes the replies of consumers to the lanes of their installations.
type outbox struct{ a *App }

func (o outbox) installation(id message.InstallationID) *installation {
	o.a.mu.Lock()
	defer o.a.mu.Unlock()
	return o.a.installed[id]
}

// Address implements edge.Outbox.
func (o outbox) Address(m *message.Inbound) (message.Target, error) {
	i := o.installation(m.Installation)
	if i == nil {
		return nil, fmt.Errorf("address of %s: %w", m.ID, errNoInstallation)
	}
	return i.lane.Address(m)
}

// Send implements edge.Outbox.
func (o outbox) Send(ctx context.Context, out message.Outbound) error {
	i := o.installation(out.Installation)
	if i == nil {
		return fmt.Errorf("reply to %s: %w", out.InReplyTo, errNoInstallation)
	}
	_, err := i.lane.Send(ctx, out)
	if errors.Is(err, relay.ErrKnown) {
		return nil
	}
	return err
}

// Secret implements edge.Outbox.
func (o outbox) Secret(id message.InstallationID) (string, bool) {
	o.a.mu.Lock()
	defer o.a.mu.Unlock()
	i := o.a.installed[id]
	if i == nil {
		return "", false
	}
	return i.cfg.ClientSecret.Reveal(), true
}
