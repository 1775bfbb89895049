package app

import (
	"context"
	"fmt"
	"io"
	"sync/atomic"

	"github.com/penstock-io/penstock/edge"
	"github.com/penstock-io/penstock/internal/config"
	"github.com/penstock-io/penstock/message"
	"github.com/penstock-io/penstock/router"
)

// handlers is the handler of the relay: the routes in force, which a reload
// exchanges between two messages.
type handlers struct {
	fixed  router.Handler // used in place of the routes, nil if there is none
	edge   *edge.Server
	routes atomic.Pointer[routes]
}

type routes struct {
	edge    *edge.Server
	router  *router.Router
	closers []io.Closer
}

func newHandlers(
	cfg *config.Config, fixed router.Handler, e *edge.Server,
) (*handlers, error) {
	h := &handlers{fixed: fixed, edge: e}
	if fixed != nil {
		h.fixed = router.Recover(fixed)
	}
	return h, h.replace(cfg)
}

// Handle implements router.Handler.
func (h *handlers) Handle(ctx context.Context, m *message.Inbound) (router.Result, error) {
	if h.fixed != nil {
		return h.fixed.Handle(ctx, m)
	}
	return h.routes.Load().router.Handle(ctx, m)
}

// route gives the handler of a route in force, nil if none has that name.
func (h *handlers) route(name string) router.Handler { return h.routes.Load().router.Route(name) }

// replace puts the routes of cfg in force. Requests of the old ones that are
// under way end as they would have.
func (h *handlers) replace(cfg *config.Config) error {
	next := &routes{edge: h.edge}
	list := make([]router.Route, 0, len(cfg.Routes))
	for _, rc := range cfg.Routes {
		handler, err := next.open(rc)
		if err != nil {
			return fmt.Errorf("route %q: %w", rc.Name, err)
		}
		list = append(list, router.Route{
			Name: rc.Name, Match: match(rc.Match), Handler: handler, Timeout: rc.Timeout,
		})
	}
	r, err := router.New(list)
	if err != nil {
		return err
	}
	next.router = r
	if old := h.routes.Swap(next); old != nil {
		old.close()
	}
	return nil
}

func (h *handlers) close() { h.routes.Load().close() }

// close lets go of idle connections.
func (r *routes) close() {
	for _, c := range r.closers {
		_ = c.Close() // it only closes idle connections
	}
}

// open makes the handler of a route.
func (r *routes) open(rc config.Route) (router.Handler, error) {
	switch hc := rc.Handler; {
	case hc.HTTP != nil:
		h, err := router.NewHTTP(httpConfig(hc.HTTP))
		if err != nil {
			return nil, err
		}
		r.closers = append(r.closers, h)
		return h, nil
	case hc.Exec != nil:
		return router.NewExec(router.ExecConfig{
			Command: hc.Exec.Command, Dir: hc.Exec.Dir, Env: reveal(hc.Exec.Env),
			Timeout: hc.Exec.Timeout, MaxOutput: int64(hc.Exec.MaxOutput),
			Output: router.Output(hc.Exec.Output),
		})
	case hc.Edge != nil:
		return r.edge.Handler(hc.Edge.Consumer), nil
	default:
		return router.Echo{}, nil
	}
}

func httpConfig(c *config.HTTP) router.HTTPConfig {
	hc := router.HTTPConfig{
		URL: c.URL.Reveal(), Headers: reveal(c.Headers), Timeout: c.Timeout,
		MaxResponse: int64(c.MaxResponse), Secret: c.Secret.Reveal(),
	}
	for _, s := range c.OldSecrets {
		hc.OldSecrets = append(hc.OldSecrets, s.Reveal())
	}
	return hc
}

func reveal(m map[string]config.Secret) map[string]string {
	out := make(map[string]string, len(m))
	for k, v := range m {
		out[k] = v.Reveal()
	}
	return out
}

func match(c config.Match) router.Match {
	return router.Match{
		Installations: typed[message.InstallationID](c.Installations),
		Platforms:     typed[message.Platform](c.Platforms),
		Kinds:         typed[message.Kind](c.Kinds),
		Chats:         typed[message.ChatType](c.Chats),
		Mention:       c.Mention, Prefix: c.Prefix, Pattern: c.Pattern.Regexp,
	}
}

func typed[T ~string](in []string) []T {
	var out []T
	for _, s := range in {
		out = append(out, T(s))
	}
	return out
}
