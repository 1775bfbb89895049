package router

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/penstock-io/penstock/message"
)

// Result is what a handler made of a message. The zero Result is a message
// that is done and has no reply.
type Result struct {
	// Replies are sent to the message's conversation, in this order.
	Replies []message.Reply
	// Answer goes back in the acknowledgement of a synchronous message and is
	// ignored for any other. It is JSON or nil.
	Answer json.RawMessage
	// Route is the name of the route that took the message. The router sets it,
	// also beside an error; what a handler writes there is lost.
	Route string
}

// Handler does the work for one message.
type Handler interface {
	// Handle blocks until the work is done or ctx ends, and is called from many
	// goroutines at once, though never for two messages of one conversation. It
	// must not change m nor keep it. Beside an error the result does not count.
	// The error says what happens next, see [Error]. When ctx ends Handle returns
	// soon, with an error that wraps the context's; nobody takes the conversation
	// further before it has returned.
	Handle(ctx context.Context, m *message.Inbound) (Result, error)
}

// HandlerFunc is a function that is a [Handler].
type HandlerFunc func(ctx context.Context, m *message.Inbound) (Result, error)

// Handle calls f.
func (f HandlerFunc) Handle(ctx context.Context, m *message.Inbound) (Result, error) {
	return f(ctx, m)
}

// Route sends the messages that match to a handler.
type Route struct {
	// Name is shown in logs and metrics and must be unique. Empty means
	// "route-N", counted from 1.
	Name string
	// Match selects messages. The zero Match takes everything.
	Match Match
	// Handler must be set.
	Handler Handler
	// Timeout bounds one try. 0 means that only the caller's context does.
	Timeout time.Duration
}

// Router is a [Handler] that passes each message to the first of its routes
// that matches.
type Router struct {
	// immutable
	routes []compiled
}

type compiled struct {
	match   matcher
	name    string
	handler Handler
}

// New makes a router. Each route's handler is wrapped in mw, the first one
// outermost, so a middleware sees the messages that have a route, with
// Result.Route set, and never a panic. It returns every defect it finds, joined,
// each naming its route and field; one is a route that a catch-all before it
// makes unreachable. The caller may change routes afterwards.
func New(routes []Route, mw ...Middleware) (*Router, error) {
	r := &Router{routes: make([]compiled, 0, len(routes))}
	var defects []error
	for i, mw := range mw {
		if mw == nil {
			return nil, fmt.Errorf("middleware %d is nil", i+1)
		}
	}
	for i := range routes {
		route := routes[i]
		if route.Name == "" {
			route.Name = fmt.Sprintf("route-%d", i+1)
		}
		err := errors.Join(route.validate(), r.reachable(route.Name))
		if err != nil {
			defects = append(defects, fmt.Errorf("route %q: %w", route.Name, err))
			continue
		}
		c, err := route.compile(mw)
		if err != nil {
			defects = append(defects, fmt.Errorf("route %q: %w", route.Name, err))
			continue
		}
		r.routes = append(r.routes, c)
	}
	if err := errors.Join(defects...); err != nil {
		return nil, err
	}
	return r, nil
}

// Handle passes m to the first route that matches and returns what its handler
// returned, with the name of the route. Without one it returns [ErrNoRoute]. It
// may be called from any number of goroutines.
func (r *Router) Handle(ctx context.Context, m *message.Inbound) (Result, error) {
	for i := range r.routes {
		if c := &r.routes[i]; c.match.matches(m) {
			res, err := c.handler.Handle(ctx, m)
			res.Route = c.name
			return res, err
		}
	}
	return Result{}, ErrNoRoute
}

// Route gives the handler of the route with that name, with its middleware and
// timeout and without its Match, or nil if there is none. It may be called from
// any number of goroutines.
func (r *Router) Route(name string) Handler {
	for i := range r.routes {
		if c := &r.routes[i]; c.name == name {
			return c.handler
		}
	}
	return nil
}

// reachable refuses a name that is taken and a route behind a catch-all.
func (r *Router) reachable(name string) error {
	for i := range r.routes {
		switch c := &r.routes[i]; {
		case c.name == name:
			return errors.New("name: an earlier route has the same")
		case c.match.all:
			return fmt.Errorf("match: never reached, route %q before it takes everything", c.name)
		}
	}
	return nil
}

func (rt *Route) validate() error {
	var defects []error
	if f, ok := rt.Handler.(HandlerFunc); rt.Handler == nil || ok && f == nil {
		defects = append(defects, errors.New("handler: not set"))
	}
	if rt.Timeout < 0 {
		defects = append(defects, fmt.Errorf("timeout: %v is negative", rt.Timeout))
	}
	return errors.Join(append(defects, rt.Match.validate())...)
}

// compile puts the route's own parts innermost, so that middleware sees the
// name, the timeout and a panic as an ordinary result.
func (rt *Route) compile(mw []Middleware) (compiled, error) {
	var h Handler = named{name: rt.Name, next: Timeout(rt.Timeout)(rt.Handler)}
	for i := len(mw) - 1; i >= 0; i-- {
		if h = mw[i](h); h == nil {
			return compiled{}, fmt.Errorf("middleware %d returned nil", i+1)
		}
	}
	if len(mw) > 0 {
		h = Recover(h)
	}
	return compiled{match: newMatcher(rt.Match), name: rt.Name, handler: h}, nil
}

// named writes the route's name into each result and contains panics.
type named struct {
	name string
	next Handler
}

func (h named) Handle(ctx context.Context, m *message.Inbound) (res Result, err error) {
	defer func() {
		if v := recover(); v != nil {
			res, err = Result{}, panicked(v)
		}
		res.Route = h.name
	}()
	return h.next.Handle(ctx, m)
}
