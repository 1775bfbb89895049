package dingtalktest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"
)

// Route names an HTTP endpoint of the gateway or of the open API.
type Route string

// Routes.
const (
	RouteOpen     Route = "open"     // POST /v1.0/gateway/connections/open
	RouteConnect  Route = "connect"  // the WebSocket upgrade
	RouteToken    Route = "token"    // POST /v1.0/oauth2/accessToken
	RouteGetToken Route = "gettoken" // GET /gettoken
	RouteWebhook  Route = "webhook"  // POST /robot/sendBySession
	RouteGroup    Route = "group"    // POST /v1.0/robot/groupMessages/send
	RouteDirect   Route = "direct"   // POST /v1.0/robot/oToMessages/batchSend
	RouteCard     Route = "card"     // PUT /v1.0/card/instances
	RouteDownload Route = "download" // POST /v1.0/robot/messageFiles/download
	RouteFile     Route = "file"     // GET of a file that download pointed to
	RouteFailed   Route = "failed"   // GET /call_back/get_call_back_failed_result
)

// Fault is an answer given in place of the right one. The zero Fault answers 200
// with an empty body.
type Fault struct {
	Status int // default: 200
	Header http.Header
	Body   string
	// Delay comes before everything else. With a Status of 0 and no Body it is all
	// there is: the request is then served as usual.
	Delay time.Duration
	// Hang gives no answer until the client leaves or the gateway stops.
	Hang bool
	// Cut closes the connection without an answer.
	Cut bool
	// Landed does what the request asks before it fails, so that only the answer
	// is wrong or missing.
	Landed bool
}

// armed is a fault with the requests it is still good for.
type armed struct {
	fault Fault
	left  int // negative: all
}

// Inject makes the next n requests to a route fail with f, or all of them until
// Clear if n is negative. Faults of one route are used up in the order in which
// they were injected.
func (g *Gateway) Inject(r Route, n int, f Fault) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if n != 0 {
		g.faults[r] = append(g.faults[r], &armed{fault: f, left: n})
	}
}

// Clear takes back the faults of a route.
func (g *Gateway) Clear(r Route) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.faults, r)
}

// fault takes the next fault of a route.
func (g *Gateway) fault(r Route) (Fault, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	queue := g.faults[r]
	if len(queue) == 0 {
		return Fault{}, false
	}
	next := queue[0]
	if next.left > 0 {
		next.left--
	}
	if next.left == 0 {
		g.faults[r] = queue[1:]
	}
	return next.fault, true
}

// apply answers with the fault. It is false when the request is to be served.
func (f Fault) apply(g *Gateway, w http.ResponseWriter, r *http.Request) bool {
	if !g.pause(r, f.Delay) {
		panic(http.ErrAbortHandler)
	}
	if f.Hang {
		select {
		case <-g.done:
		case <-r.Context().Done():
		}
	}
	if f.Hang || f.Cut {
		panic(http.ErrAbortHandler) // the server's word for "no answer at all"
	}
	if f.Delay > 0 && f.Status == 0 && f.Body == "" {
		return false
	}
	set(&f.Status, http.StatusOK)
	w.Header().Set("Content-Type", "application/json;charset=utf-8")
	for k, v := range f.Header {
		w.Header()[k] = v
	}
	w.WriteHeader(f.Status)
	_, _ = w.Write([]byte(f.Body))
	return true
}

// pause waits; it is false when the client or the gateway went away.
func (g *Gateway) pause(r *http.Request, d time.Duration) bool {
	if d <= 0 {
		return true
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-g.done:
	case <-r.Context().Done():
	}
	return false
}

// APIError is an error of api.dingtalk.com.
func APIError(status int, code string) Fault {
	return Fault{Status: status, Body: apiError(code)}
}

func apiError(code string) string {
	return fmt.Sprintf(`{"code":%s,"requestid":"00000000-0000-0000-0000-TEST00000000",`+
		`"message":"test: request refused"}`, quote(code))
}

// Errcode is an error of oapi.dingtalk.com and of session webhooks: HTTP 200
// with an errcode.
func Errcode(code int, text string) Fault {
	return Fault{Body: errcode(code, text)}
}

func errcode(code int, text string) string {
	return fmt.Sprintf(`{"errcode":%d,"errmsg":%s}`, code, quote(text))
}

// AuthFailed is the answer of the open request to a wrong client id or secret.
func AuthFailed() Fault { return APIError(http.StatusUnauthorized, "authFailed") }

// TokenInvalid is the answer to an access token that has expired: 400, not 401.
func TokenInvalid() Fault { return APIError(http.StatusBadRequest, "InvalidAuthentication") }

// QPS is the refusal of too many calls in a second.
func QPS() Fault {
	return APIError(http.StatusForbidden, "Forbidden.AccessDenied.QpsLimitForAppkeyAndApi")
}

// QPM is the refusal of too many calls in a minute.
func QPM() Fault {
	return APIError(http.StatusForbidden, "Forbidden.AccessDenied.QpmLimitForAppkeyAndApi")
}

// TooMany is a 429 that tells when to come back, in whole seconds.
func TooMany(after time.Duration) Fault {
	f := APIError(http.StatusTooManyRequests, "TooManyRequests")
	seconds := (after + time.Second - 1) / time.Second
	f.Header = http.Header{"Retry-After": {strconv.Itoa(int(seconds))}}
	return f
}

// Unavailable is a 503 with a page of a proxy.
func Unavailable() Fault {
	return HTML(http.StatusServiceUnavailable,
		"<html><body><h1>503 Service Unavailable</h1></body></html>")
}

// HTML is an answer in HTML.
func HTML(status int, page string) Fault {
	return Fault{Status: status, Header: http.Header{"Content-Type": {"text/html"}}, Body: page}
}

// Banned is what an IP address gets that has called too often: 200, said to be
// HTML, with a small JSON document.
func Banned() Fault {
	return HTML(http.StatusOK, `{"status":1111,"wait":5,"source":"x5","punish":"deny"}`)
}

// EmptyEndpoint is an answer of the open request that lacks what it is for.
func EmptyEndpoint() Fault { return Fault{Body: `{"endpoint":"","ticket":"ticket-test"}`} }

// Slow serves the request as usual, later.
func Slow(d time.Duration) Fault { return Fault{Delay: d} }

// Unanswered does what is asked and never says so.
func Unanswered() Fault { return Fault{Hang: true, Landed: true} }

// Partial is a direct message that not everybody got.
func Partial(invalid, throttled []string) Fault {
	body, err := json.Marshal(map[string]any{
		"processQueryKey":           "testPQK",
		"invalidStaffIdList":        append([]string{}, invalid...),
		"flowControlledStaffIdList": append([]string{}, throttled...),
	})
	if err != nil {
		return APIError(http.StatusInternalServerError, "system.error") // strings can be encoded
	}
	return Fault{Body: string(body), Landed: true}
}
