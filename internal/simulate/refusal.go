package simulate

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/penstock-io/penstock/integrations/dingtalk/dingtalktest"
)

// refusedEvery is how long refusals for one reason are only counted after one of them
// has been shown: a bot that is refused may try hundreds of times a second.
const refusedEvery = time.Second

// refusals are those that have been shown or counted, by reason. Their owner guards
// them.
type refusals map[string]*refusal

type refusal struct {
	shown time.Time
	event event // of what came since; its Times are 0 if nothing did
}

// due counts a refusal, and tells whether to show it. It then stands for all since
// the last one.
func (r refusals) due(e *event, now time.Time) bool {
	one := r[e.Reason]
	if one == nil {
		one = &refusal{}
		r[e.Reason] = one
	}
	e.Times = one.event.Times + 1
	one.event = *e
	if !one.shown.IsZero() && now.Sub(one.shown) < refusedEvery {
		return false
	}
	one.shown, one.event.Times = now, 0
	return true
}

// rest gives what has been counted and not shown, and forgets it.
func (r refusals) rest() (events []event) {
	for _, reason := range slices.Sorted(maps.Keys(r)) {
		if r[reason].event.Times > 0 {
			events = append(events, r[reason].event)
		}
		delete(r, reason)
	}
	return events
}

func refusedEvent(r dingtalktest.Refusal, o Options) event {
	e := event{Event: evRefused, Route: r.Route, Code: r.Status, Remote: r.Remote}
	switch r.Reason {
	case dingtalktest.RefusedRequest:
		e.Reason = "it has no clientId, or no subscriptions"
	case dingtalktest.RefusedClient:
		e.Reason = fmt.Sprintf("the client id is not %q", o.ClientID)
	case dingtalktest.RefusedSecret:
		e.Reason = fmt.Sprintf("the client secret is not that of %q", o.ClientID)
	case dingtalktest.RefusedTicket:
		e.Reason = "the ticket is unknown or used"
		if o.AwkwardTickets {
			e.Reason += "; has it been escaped in the URL?"
		}
	case dingtalktest.RefusedExpired:
		e.Reason = "the ticket is too old"
	}
	return e
}

func (e event) refusedLine() string {
	what := "dial"
	if e.Route == dingtalktest.RouteOpen {
		what = "ticket"
	}
	line := what + " refused: " + printable(e.Reason)
	if e.Times > 1 {
		line += fmt.Sprintf(" (%d times)", e.Times)
	}
	return line
}
