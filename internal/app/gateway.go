package app

import (
	"errors"

	"github.com/penstock-io/penstock/edge"
	"github.com/penstock-io/penstock/internal/ops"
)

// gateway is the edge as operators see it.
type gateway struct{ a *App }

// Consumers implements ops.Edge.
func (g gateway) Consumers() []ops.Consumer {
	g.a.mu.Lock()
	configured := g.a.cfg.Edge.Consumers
	g.a.mu.Unlock()
	var list []ops.Consumer
	at := map[string]int{}
	for _, c := range configured {
		at[c.Name] = len(list)
		list = append(list, ops.Consumer{
			Name: c.Name, MaxConnections: c.MaxConnections, Connections: []ops.Connection{},
		})
	}
	for _, c := range g.a.edge.Connections() {
		i, ok := at[c.Consumer]
		if !ok { // a reload has taken it out, and it has still to leave
			i = len(list)
			at[c.Consumer] = i
			list = append(list, ops.Consumer{Name: c.Consumer, Removed: true})
		}
		list[i].Connections = append(list[i].Connections, ops.Connection{
			ID: c.ID, State: c.State, Agent: c.Agent, Topics: c.Topics, Remote: c.Remote, Since: c.Since,
			SilentMS: c.Silent.Milliseconds(), Unanswered: c.Owed, Frames: c.Kept, Bytes: c.Bytes,
		})
	}
	return list
}

// Frames implements ops.Edge.
func (g gateway) Frames() []ops.Frame {
	all := g.a.edge.Frames()
	list := make([]ops.Frame, len(all))
	for i := range all {
		f := &all[i]
		list[i] = ops.Frame{
			ID: f.ID, Consumer: f.Consumer, Connection: f.Connection,
			Installation: f.Installation, Message: f.Message, State: f.State, Waiting: f.Waiting,
			Sent: f.Sent,
		}
	}
	return list
}

// Resend implements ops.Edge.
func (g gateway) Resend(frame string) error {
	err := g.a.edge.Resend(frame)
	if errors.Is(err, edge.ErrNoFrame) {
		return ops.ErrNoFrame
	}
	return err
}
