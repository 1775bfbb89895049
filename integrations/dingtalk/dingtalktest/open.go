package dingtalktest

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/penstock-io/penstock/message"
)

const bodyLimit = 1 << 20

// openRequest is the body of connections/open.
type openRequest struct {
	ClientID      string         `json:"clientId"`
	ClientSecret  string         `json:"clientSecret"`
	Subscriptions []Subscription `json:"subscriptions"`
	UA            string         `json:"ua"`
	LocalIP       string         `json:"localIp"`
}

// ticket opens one socket.
type ticket struct {
	app     *App
	ask     openRequest
	expires time.Time
}

// routes maps the paths of the gateway, of api.dingtalk.com and of
// oapi.dingtalk.com.
func (g *Gateway) routes() http.Handler {
	mux := http.NewServeMux()
	add := func(r Route, pattern string, serve http.HandlerFunc) {
		mux.Handle(pattern, g.guard(r, serve))
	}
	add(RouteOpen, "POST /v1.0/gateway/connections/open", g.serveOpen)
	add(RouteConnect, "GET /connect", g.serveConnect)
	add(RouteToken, "POST /v1.0/oauth2/accessToken", g.serveToken)
	add(RouteGetToken, "GET /gettoken", g.serveGetToken)
	add(RouteWebhook, "POST /robot/sendBySession", g.serveWebhook)
	add(RouteGroup, "POST /v1.0/robot/groupMessages/send", g.serveGroup)
	add(RouteDirect, "POST /v1.0/robot/oToMessages/batchSend", g.serveDirect)
	add(RouteCard, "PUT /v1.0/card/instances", g.serveCard)
	add(RouteDownload, "POST /v1.0/robot/messageFiles/download", g.serveDownload)
	add(RouteFile, "GET /files/{code}", g.serveFile)
	add(RouteFailed, "GET /call_back/get_call_back_failed_result", g.serveFailed)
	return mux
}

// guard counts a request in, bounds its body, and lets an injected fault have it.
func (g *Gateway) guard(route Route, serve http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !g.enter() {
			panic(http.ErrAbortHandler)
		}
		defer g.handlers.Done()
		r.Body = http.MaxBytesReader(w, r.Body, bodyLimit)
		f, failed := g.fault(route)
		if failed && f.Landed {
			serve(discard{header: http.Header{}}, r)
		}
		if failed && f.apply(g, w, r) {
			g.countFault(route, r)
			return
		}
		serve(w, r)
	})
}

// discard throws an answer away.
type discard struct{ header http.Header }

func (d discard) Header() http.Header         { return d.header }
func (d discard) Write(b []byte) (int, error) { return len(b), nil }
func (d discard) WriteHeader(int)             {}

// countFault counts a refused open for the app that asked, as far as it can be
// told.
func (g *Gateway) countFault(route Route, r *http.Request) {
	if route != RouteOpen {
		return
	}
	var ask openRequest
	_ = readJSON(r, &ask)
	g.failOpen(ask.ClientID)
}

// failOpen counts a refusal, for the first app if the client id is none.
func (g *Gateway) failOpen(clientID string) {
	if a := g.App(clientID); a != nil {
		a.count(func(s *Stats) { s.OpensFailed++ })
	}
}

// count changes the counters.
func (a *App) count(change func(*Stats)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	change(&a.stats)
	a.notifyLocked()
}

// readJSON decodes a body.
func readJSON(r *http.Request, into any) error {
	b, err := io.ReadAll(r.Body)
	if err != nil {
		return fmt.Errorf("read the body: %w", err)
	}
	if err := json.Unmarshal(b, into); err != nil {
		return fmt.Errorf("decode the body: %w", err)
	}
	return nil
}

// serveOpen checks who asks and gives a ticket. A client whose subscriptions do
// not name the SYSTEM topics gets SYSTEM frames all the same.
func (g *Gateway) serveOpen(w http.ResponseWriter, r *http.Request) {
	var ask openRequest
	if err := readJSON(r, &ask); err != nil || ask.ClientID == "" || len(ask.Subscriptions) == 0 {
		g.failOpen(ask.ClientID)
		g.refuse(w, r, RefusedRequest)
		return
	}
	a := g.App(ask.ClientID)
	if a == nil || a.cred.Secret != ask.ClientSecret {
		g.failOpen(ask.ClientID)
		why := RefusedSecret
		if a == nil {
			why = RefusedClient
		}
		g.refuse(w, r, why)
		return
	}
	key := g.newTicket(a, ask)
	a.count(func(s *Stats) { s.Opens++ })
	endpoint := g.base("ws") + "/connect"
	if q := g.cfg.EndpointQuery; q != "" {
		endpoint += "?" + q
	}
	if !strings.Contains(r.Header.Get("Accept"), "json") && r.Header.Get("Accept") != "*/*" {
		// The platform answers in XML to those who do not say what they read.
		w.Header().Set("Content-Type", "application/xml")
		_, _ = fmt.Fprintf(w, "<response><endpoint>%s</endpoint><ticket>%s</ticket></response>",
			endpoint, url.QueryEscape(key))
		return
	}
	answer(w, http.StatusOK, fmt.Sprintf(`{"endpoint":%s,"ticket":%s}`, quote(endpoint), quote(key)))
}

// answer writes a JSON body.
func answer(w http.ResponseWriter, status int, body string) {
	w.Header().Set("Content-Type", "application/json;charset=utf-8")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, body)
}

// newTicket makes a ticket, by default one that does not survive being put into
// a URL unescaped.
func (g *Gateway) newTicket(a *App, ask openRequest) string {
	serial := g.nextSerial()
	key := fmt.Sprintf("5f0e0d0c-3333-11f1-8bbb-%012x", serial)
	if !g.cfg.PlainTickets {
		key = fmt.Sprintf("tk+%d/a%%2B&b=c==%x", serial, serial)
	}
	ask.ClientSecret = ""
	now := time.Now()
	g.mu.Lock()
	defer g.mu.Unlock()
	for k, t := range g.tickets { // few are open at a time
		if now.After(t.expires) {
			delete(g.tickets, k)
		}
	}
	g.tickets[key] = ticket{app: a, ask: ask, expires: now.Add(g.cfg.TicketLife)}
	return key
}

// useTicket takes a ticket; it works once, and not after its life.
func (g *Gateway) useTicket(key string) (ticket, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	t, ok := g.tickets[key]
	delete(g.tickets, key)
	return t, ok && !time.Now().After(t.expires)
}

// serveConnect upgrades the holder of a ticket and serves the socket to its end.
func (g *Gateway) serveConnect(w http.ResponseWriter, r *http.Request) {
	t, ok := g.useTicket(r.URL.Query().Get("ticket"))
	if !ok {
		why := RefusedExpired
		if t.app == nil {
			t.app, why = g.App(""), RefusedTicket
		}
		if t.app != nil {
			t.app.count(func(s *Stats) { s.DialsFailed++ })
		}
		g.refuse(w, r, why)
		return
	}
	ws, err := g.upgrader.Upgrade(w, r, nil)
	if err != nil {
		return // it has answered
	}
	id := int(g.sockets.Add(1))
	s := &Session{
		app: t.app, id: id, opened: time.Now(), remote: r.RemoteAddr, ask: t.ask, ws: ws,
		uuid:    fmt.Sprintf("11111111-2222-11f1-9aaa-%012x", id),
		sock:    newSocket(ws.NetConn()),
		systems: map[message.FrameID]system{},
	}
	if !t.app.admit(s) {
		_ = ws.Close()
		return
	}
	s.serve()
}
