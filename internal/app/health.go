package app

import (
	"net/http"

	"github.com/penstock-io/penstock/integrations"
	"github.com/penstock-io/penstock/internal/admin"
)

// Health tells how each installation is, in the order of the configuration.
func (a *App) Health() []admin.Health {
	var all []admin.Health
	for _, i := range a.all() {
		all = append(all, i.health())
	}
	return all
}

// Metrics serves the numbers of the service in the format of Prometheus. It works
// before, during and after Run.
func (a *App) Metrics() http.Handler { return a.metrics.Handler() }

func (i *installation) health() admin.Health {
	s := i.sup.Status()
	q := i.lane.Queue()
	h := admin.Health{
		Installation: string(i.id), Platform: string(s.Platform),
		State: string(s.State), Since: s.Since, Sessions: s.Live,
		Code: s.LastCode, Error: s.LastError, LastMessage: s.LastFrame,
		Queued: q.Queued + q.Running + q.Held + q.Detached, Waiting: i.lane.Waiting(),
	}
	i.app.mu.Lock()
	driver := i.driver
	i.app.mu.Unlock()
	switch s.State {
	case integrations.StateStarting:
		// An error is of credentials that have been replaced.
		h.Code, h.Error = "", ""
		if c, ok := driver.Connector.(counted); ok && c.Stats().Sessions > 0 {
			h.Note = "connected; ready after the gateway's first frame, which may be its ping"
		}
	case integrations.StateReady:
		h.Code, h.Error = "", ""
		if err := i.lane.Trouble(); err != nil {
			h.State, h.Code, h.Error = string(integrations.StateDegraded), "trouble", err.Error()
		}
		for _, p := range integrations.Problems(driver.Sender) {
			h.State, h.Code = string(integrations.StateDegraded), p.Code
			h.Error = "replies by " + p.Route + " are refused: " + p.Detail
		}
	}
	h.Ready = h.State == string(integrations.StateReady)
	return h
}
