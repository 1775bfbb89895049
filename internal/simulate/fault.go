package simulate

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/penstock-io/penstock/integrations/dingtalk/dingtalktest"
)

// Fault is what /fault asks for, checked: a route, and a kind that it can have.
type Fault struct {
	Route dingtalktest.Route
	Kind  string
}

// off is the kind that takes the faults of a route back.
const off = "off"

// kinds are faults by name.
type kinds map[string]dingtalktest.Fault

// anywhere are the faults that every route of HTTP can have.
func anywhere() kinds {
	return kinds{
		"500":   dingtalktest.APIError(http.StatusInternalServerError, "system.error"),
		"503":   dingtalktest.Unavailable(),
		"html":  dingtalktest.Banned(),
		"empty": {},
		"hang":  {Hang: true},
		"cut":   {Cut: true},
	}
}

// calls are the faults of calls of the open API.
func calls() kinds {
	return anywhere().and(kinds{
		"400": dingtalktest.TokenInvalid(),
		"401": dingtalktest.AuthFailed(),
		"403": dingtalktest.QPS(),
		"429": dingtalktest.TooMany(time.Second),
	})
}

// sends are the faults of calls that send something: it may have arrived.
func sends() kinds { return calls().and(kinds{"unanswered": dingtalktest.Unanswered()}) }

func (k kinds) and(more kinds) kinds {
	maps.Copy(k, more)
	return k
}

// faults are what can go wrong, by route.
var faults = map[dingtalktest.Route]kinds{
	dingtalktest.RouteOpen: calls().and(kinds{
		"400":   dingtalktest.APIError(http.StatusBadRequest, "invalidParameter"),
		"empty": dingtalktest.EmptyEndpoint(),
	}),
	dingtalktest.RouteConnect: anywhere().and(kinds{
		"401": dingtalktest.APIError(http.StatusUnauthorized, "invalidTicket"),
	}),
	dingtalktest.RouteToken: calls(),
	dingtalktest.RouteGetToken: anywhere().and(kinds{
		"40089": dingtalktest.Errcode(40089, "test: wrong key or secret"),
	}),
	dingtalktest.RouteWebhook: anywhere().and(kinds{
		"130101":     dingtalktest.Errcode(130101, "send too fast"),
		"300001":     dingtalktest.Errcode(300001, "test: no such session"),
		"310000":     dingtalktest.Errcode(310000, "test: refused by the security settings"),
		"unanswered": dingtalktest.Unanswered(),
	}),
	dingtalktest.RouteGroup:    sends(),
	dingtalktest.RouteDirect:   sends(),
	dingtalktest.RouteCard:     sends(),
	dingtalktest.RouteDownload: calls(),
	dingtalktest.RouteFile: anywhere().and(kinds{
		"403": {Status: http.StatusForbidden}, "404": {Status: http.StatusNotFound},
	}),
	dingtalktest.RouteFailed: anywhere(),
}

// list joins the sorted keys of a table.
func list[K ~string, V any](table map[K]V) string {
	var names []string
	for _, k := range slices.Sorted(maps.Keys(table)) {
		names = append(names, string(k))
	}
	return strings.Join(names, ", ")
}

func parseFault(rest string, c *Command) error {
	words := strings.Fields(rest)
	if len(words) < 2 || len(words) > 3 {
		return errors.New("a route and a kind are needed, and a number may follow")
	}
	c.Fault = Fault{Route: dingtalktest.Route(words[0]), Kind: words[1]}
	known, ok := faults[c.Fault.Route]
	if !ok {
		return fmt.Errorf("there is no route %q, only %s", clip(words[0], maxName), list(faults))
	}
	if _, ok := known[words[1]]; !ok && words[1] != off {
		return fmt.Errorf("%s cannot fail with %q, only with %s",
			words[0], clip(words[1], maxName), list(known))
	}
	return parseTimes(words[2:], c)
}

// parseTimes reads how often a fault happens, if that is told.
func parseTimes(words []string, c *Command) (err error) {
	switch {
	case len(words) == 0:
		c.N = 1
	case c.Fault.Kind == off:
		return errors.New("no number follows off")
	case words[0] == "all":
		c.N = -1
	default:
		c.N, err = parseCount(words[0])
	}
	return err
}

// apply injects the fault n times, or takes the route's faults back.
func (f Fault) apply(gw *dingtalktest.Gateway, n int) {
	if f.Kind == off {
		gw.Clear(f.Route)
		return
	}
	gw.Inject(f.Route, n, faults[f.Route][f.Kind])
}
