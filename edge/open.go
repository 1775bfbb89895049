package edge

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/gorilla/websocket"
)

// readBuffer is the WebSocket's, for headers and small frames: every idle connection
// holds one. The rest of a large frame goes past it, and a burst is read in larger
// pieces by the connection beneath.
const readBuffer = 512

// noBuffers keeps a connection from having a write buffer: frames are written by
// package wire.
type noBuffers struct{}

func (noBuffers) Get() any { return nil }
func (noBuffers) Put(any)  {}

// Bounds of a request for a ticket.
const (
	maxOpen          = 64 << 10
	maxSubscriptions = 256
	maxAgent         = 128
)

// openRequest is what a client presents.
type openRequest struct {
	ClientID      string         `json:"clientId"`
	ClientSecret  string         `json:"clientSecret"`
	Subscriptions []subscription `json:"subscriptions"`
	Agent         string         `json:"ua"`
}

// open gives a ticket for right credentials.
func (s *Server) open(w http.ResponseWriter, r *http.Request) {
	// The body first: who sends it slowly takes nobody's place.
	body, err := readBody(w, r, maxOpen)
	free, ok := hold(s.handshakes)
	if !ok {
		s.count.opens.add(resultBusy)
		busy(w)
		return
	}
	defer free()
	var req openRequest
	if err != nil || json.Unmarshal(body, &req) != nil || len(req.Subscriptions) > maxSubscriptions {
		s.count.opens.add(resultMalformed)
		refuse(w, http.StatusBadRequest, "invalidParameter", "the body is no request for a connection")
		return
	}
	c, result := s.authorise(r, &req)
	s.count.opens.add(result)
	switch result {
	case resultLimit:
		refuse(w, http.StatusForbidden, codeQPS, errConnections.Error())
	case resultSlowed:
		refuse(w, http.StatusForbidden, codeQPS, "too many wrong credentials, try again later")
	case resultRefused:
		refuse(w, http.StatusUnauthorized, "authFailed", "clientId or clientSecret is wrong")
	default:
		s.give(w, c, &req)
	}
}

// authorise finds the consumer whose credentials these are.
func (s *Server) authorise(r *http.Request, req *openRequest) (*consumer, string) {
	var found *consumer
	for _, c := range s.all() {
		if c.clientID() == req.ClientID {
			found = c
		}
	}
	name, what := "", "client_id"
	if found != nil && !found.isGone() {
		name, what = found.name, "client_secret"
	}
	who := guesser(r.RemoteAddr, name)
	switch {
	case s.guesses.blocked(who):
		s.slowed.Do(func() {
			s.log.Warn("too many wrong credentials at the edge; right ones are refused too for a while",
				"remote", r.RemoteAddr, "consumer", name)
		})
		return nil, resultSlowed
	case found == nil || !found.admits(req.ClientSecret):
		if s.guesses.wrong(who) {
			// Not what was presented as the id: it may be the secret, by mistake.
			s.log.Warn("wrong credentials at the edge",
				"remote", r.RemoteAddr, "consumer", name, "wrong", what)
		}
		return nil, resultRefused
	case !found.hasRoom():
		found.complainFull(r.RemoteAddr)
		return nil, resultLimit
	}
	return found, resultOK
}

var errConnections = errors.New("the client has all the connections it may have")

func (s *Server) give(w http.ResponseWriter, c *consumer, req *openRequest) {
	now := time.Now()
	tk := &ticket{
		id: newID(), consumer: c, secret: req.ClientSecret, subs: map[subscription]bool{},
		agent: req.Agent, expires: now.Add(s.cfg.TicketLife),
	}
	for _, sub := range req.Subscriptions {
		if sub.Type == typeEvent {
			sub.Topic = topicAll // only all events together can be subscribed to
		}
		tk.subs[sub] = true
	}
	if len(tk.agent) > maxAgent {
		tk.agent = tk.agent[:maxAgent]
	}
	s.tickets.add(tk, now)
	writeJSON(w, http.StatusOK, map[string]string{"endpoint": s.endpoint(), "ticket": tk.id})
}

// connect turns a request with a ticket into a connection and serves it.
func (s *Server) connect(w http.ResponseWriter, r *http.Request) {
	free, ok := hold(s.handshakes)
	if !ok {
		s.count.dials.add(resultBusy)
		busy(w)
		return
	}
	defer free()
	p, result := s.shake(w, r)
	s.count.dials.add(result)
	if p == nil {
		return
	}
	// A goroutine of its own, since that of the request holds the buffers of a web
	// server's connection. Run waits for it as for the request, which is not over yet.
	s.requests.Add(1)
	go func() {
		defer s.requests.Done()
		defer s.sockets.Add(-1)
		p.serve()
	}()
}

// shake makes the connection. If p is nil the request has been answered.
func (s *Server) shake(w http.ResponseWriter, r *http.Request) (p *peer, result string) {
	if !websocket.IsWebSocketUpgrade(r) {
		refuse(w, http.StatusUpgradeRequired, "invalidParameter", "this is a WebSocket endpoint")
		return nil, resultMalformed
	}
	if s.sockets.Add(1) > int64(s.cfg.MaxConnections) {
		s.sockets.Add(-1)
		busy(w)
		return nil, resultLimit
	}
	defer func() {
		if p == nil {
			s.sockets.Add(-1)
		}
	}()
	tk := s.tickets.take(r.URL.Query().Get("ticket"), time.Now())
	if tk == nil || !tk.consumer.admits(tk.secret) {
		refuse(w, http.StatusUnauthorized, "ticketInvalid", "the ticket is unknown, used or expired")
		return nil, resultRefused
	}
	if !tk.consumer.hasRoom() {
		tk.consumer.complainFull(r.RemoteAddr)
		refuse(w, http.StatusForbidden, codeQPS, errConnections.Error())
		return nil, resultLimit
	}
	ws, err := s.upgrader.Upgrade(w, r, nil)
	if err != nil { // the upgrader has answered
		return nil, resultMalformed
	}
	p = newPeer(tk, ws)
	if result = tk.consumer.admit(p, tk.secret); result != resultOK {
		p.sock.Close()
		return nil, result
	}
	return p, resultOK
}

// codeQPS is the vendor's word for "not now, but later".
const codeQPS = "Forbidden.AccessDenied.QpsLimitForAppkeyAndApi"

// readBody reads a request's body up to a limit.
func readBody(w http.ResponseWriter, r *http.Request, limit int64) ([]byte, error) {
	return io.ReadAll(http.MaxBytesReader(w, r.Body, limit))
}

// refuse answers in the form of the vendor's errors.
func refuse(w http.ResponseWriter, status int, code, text string) {
	writeJSON(w, status, map[string]string{"requestid": newID(), "code": code, "message": text})
}

func busy(w http.ResponseWriter) {
	w.Header().Set("Retry-After", strconv.Itoa(1))
	refuse(w, http.StatusServiceUnavailable, "ServiceUnavailable", "the gateway is busy")
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(v) // the reader has gone
}
