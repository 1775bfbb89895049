package dingtalktest

import "net/http"

// Reason tells why a request was refused.
type Reason string

// Reasons of refusals.
const (
	RefusedRequest Reason = "request" // of a ticket: no client id, or no subscriptions
	RefusedClient  Reason = "client"  // of a ticket: there is no such client id
	RefusedSecret  Reason = "secret"  // of a ticket: the secret is not that of the client
	RefusedTicket  Reason = "ticket"  // of a socket: the ticket is unknown or used
	RefusedExpired Reason = "expired" // of a socket: the ticket is too old
)

// Refusal is a request for a ticket or a socket that was refused for what it
// presented. An injected fault is none.
type Refusal struct {
	Route  Route // RouteOpen or RouteConnect
	Status int   // of HTTP
	Reason Reason
	Remote string
}

// refuse answers a request with an error of the open API and shows it to the hook.
func (g *Gateway) refuse(w http.ResponseWriter, r *http.Request, why Reason) {
	refusal := Refusal{Route: RouteOpen, Status: http.StatusUnauthorized, Reason: why, Remote: r.RemoteAddr}
	code := "authFailed"
	switch why {
	case RefusedRequest:
		refusal.Status, code = http.StatusBadRequest, "invalidParameter"
	case RefusedTicket, RefusedExpired:
		refusal.Route, code = RouteConnect, "invalidTicket"
	case RefusedClient, RefusedSecret:
	}
	if hook := g.cfg.OnRefusal; hook != nil {
		hook(refusal)
	}
	answer(w, refusal.Status, apiError(code))
}
