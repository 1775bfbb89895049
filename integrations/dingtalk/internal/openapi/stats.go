package openapi

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/penstock-io/penstock/integrations"
	"github.com/penstock-io/penstock/message"
)

// route is a way to the platform.
type route uint8

const (
	routeWebhook route = iota
	routeGroup
	routeDirect
	routeCard
	routeToken // fetching the access token; no reply takes it
	routes     // how many there are
)

var routeNames = [routes]string{"webhook", "group", "direct", "card", "token"}

func (r route) String() string { return routeNames[r] }

// result is how a request ended.
type result uint8

const (
	resultSent result = iota
	resultWarned
	resultAgain
	resultWait
	resultNever
	resultPark
	resultGone // the webhook's session is gone; the reply went on over the robot API
	resultCancelled
	results // how many there are
)

var resultNames = [results]string{
	"sent", "warned", "again", "wait", "never", "park", "session_gone", "cancelled",
}

// Count is how many requests over a route ended in a result.
type Count struct {
	Route  string
	Result string
	N      uint64
}

// Stats is a snapshot of what a [Sender] has done since it was made. Requests
// holds every pair of route and result, also those never seen; its route "token"
// counts token fetches. Within one snapshot the counts may be some requests
// apart.
type Stats struct {
	Requests []Count
	// Uncertain counts failures after which the reply may have landed.
	Uncertain uint64
	// Renewals counts tokens that the platform refused before their time.
	Renewals uint64
	// HostsRefused counts replies whose webhook named a host that is not listed.
	HostsRefused uint64
}

// counters are the live counts. All fields are atomic.
type counters struct {
	requests     [routes][results]atomic.Uint64
	uncertain    atomic.Uint64
	renewals     atomic.Uint64
	hostsRefused atomic.Uint64
}

// count books how one call ended.
func (c *counters) count(r route, receipt message.Receipt, err error) {
	var se *message.SendError
	res := resultSent
	switch {
	case errors.Is(err, errSessionGone):
		res = resultGone
	case errors.As(err, &se):
		res = resultAgain + result(se.Next)
		if se.Landed == message.LandedMaybe {
			c.uncertain.Add(1)
		}
	case err != nil:
		res = resultCancelled
	case receipt.Warning != "":
		res = resultWarned
	}
	c.requests[r][res].Add(1)
}

// Stats gives the counts so far. It does not block.
func (s *Sender) Stats() Stats {
	st := Stats{
		Uncertain:    s.counters.uncertain.Load(),
		Renewals:     s.counters.renewals.Load(),
		HostsRefused: s.counters.hostsRefused.Load(),
	}
	for r := range routes {
		for res := range results {
			n := s.counters.requests[r][res].Load()
			st.Requests = append(st.Requests, Count{routeNames[r], resultNames[res], n})
		}
	}
	return st
}

// Problem tells by its Route what fails: "webhook", "group", "direct", "card" or
// "token".
type Problem = integrations.Problem

// problems keeps the open problem of each route.
type problems struct {
	mu   sync.Mutex
	open map[route]Problem // guarded by mu; nil before the first
}

// note opens a problem, or counts it again.
func (p *problems) note(r route, code, detail string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	o := p.open[r]
	if o.Seen == 0 || o.Code != code {
		o = Problem{Route: r.String(), Code: code, Since: time.Now()}
	}
	o.Detail = detail
	o.Seen++
	if p.open == nil {
		p.open = make(map[route]Problem)
	}
	p.open[r] = o
}

// clear closes a route's problem: the route works.
func (p *problems) clear(r route) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.open, r)
}

// Problems lists what is wrong now, empty when all is well. A problem closes with
// the next success on its route. It does not block on a send.
func (s *Sender) Problems() []Problem {
	s.problems.mu.Lock()
	defer s.problems.mu.Unlock()
	var list []Problem
	for r := range routes {
		if o, ok := s.problems.open[r]; ok {
			list = append(list, o)
		}
	}
	return list
}
