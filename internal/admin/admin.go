// Package admin serves health and metrics over HTTP. The server binds where it is
// told; away from loopback every request needs the token.
package admin

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"
)

// Health is the state of one installation.
type Health struct {
	Installation string    `json:"installation"`
	Platform     string    `json:"platform"`
	State        string    `json:"state"`
	Since        time.Time `json:"since"`
	Ready        bool      `json:"ready"`
	Sessions     int       `json:"sessions"`
	Code         string    `json:"code,omitempty"`
	Error        string    `json:"error,omitempty"`
	Note         string    `json:"note,omitempty"` // what a healthy bot waits for
	// LastMessage is when the last delivery came, zero before the first.
	LastMessage time.Time `json:"last_message,omitzero"`
	Queued      int       `json:"queued"`
	Waiting     int64     `json:"waiting_in_store"`
}

// Source is what the pages tell of. Its functions may be called at any time from
// any number of goroutines.
type Source struct {
	// Health lists the installations.
	Health func() []Health
	// Stopping tells that the service is about to end.
	Stopping func() bool
	// Metrics serves /metrics.
	Metrics http.Handler
}

// Server serves a Source.
type Server struct {
	listen string
	token  string
	src    Source
}

// New makes a server for listen (host:port). token may be empty on loopback.
func New(listen, token string, src Source) *Server {
	return &Server{listen: listen, token: token, src: src}
}

// shutdownGrace bounds how long Run waits for requests that are being answered.
const shutdownGrace = time.Second

// Run serves until ctx is done. bound is told the address once it is listened on.
func (s *Server) Run(ctx context.Context, bound func(net.Addr)) error {
	var lc net.ListenConfig
	ln, err := lc.Listen(ctx, "tcp", s.listen)
	if err != nil {
		return fmt.Errorf("admin listener: %w", err)
	}
	bound(ln.Addr())
	srv := &http.Server{
		Handler:           s.Handler(),
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       10 * time.Second,
		WriteTimeout:      30 * time.Second,
		MaxHeaderBytes:    16 << 10,
	}
	failed := make(chan error, 1)
	go func() { failed <- srv.Serve(ln) }()
	select {
	case err = <-failed:
		return fmt.Errorf("admin listener: %w", err)
	case <-ctx.Done():
	}
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownGrace)
	defer cancel()
	if err := srv.Shutdown(grace); err != nil {
		_ = srv.Close() // requests that outlast the grace are cut
	}
	if err := <-failed; !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("admin listener: %w", err)
	}
	return nil
}

// Handler gives the pages.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", s.healthz)
	mux.HandleFunc("GET /readyz", s.readyz)
	mux.HandleFunc("GET /readyz/{installation}", s.readyOne)
	mux.Handle("GET /metrics", s.src.Metrics)
	return s.guard(mux)
}

// guard asks for the token, if there is one.
func (s *Server) guard(next http.Handler) http.Handler {
	if s.token == "" {
		return next
	}
	want := sha256.Sum256([]byte(s.token))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		given, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		got := sha256.Sum256([]byte(given))
		if subtle.ConstantTimeCompare(got[:], want[:]) != 1 {
			w.Header().Set("WWW-Authenticate", `Bearer realm="penstock"`)
			http.Error(w, "the admin token is missing or wrong", http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// healthz tells that the process lives.
func (s *Server) healthz(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, http.StatusOK, map[string]string{"status": "ok"})
}

type readiness struct {
	Ready         bool     `json:"ready"`
	Stopping      bool     `json:"stopping"`
	Installations []Health `json:"installations"`
}

// readyz is 200 when the service is not stopping and no installation is still
// starting; one that is parked or displaced says so and holds up nobody else.
func (s *Server) readyz(w http.ResponseWriter, _ *http.Request) {
	r := readiness{Stopping: s.src.Stopping(), Installations: s.src.Health()}
	r.Ready = !r.Stopping
	for _, h := range r.Installations {
		if h.State == "starting" {
			r.Ready = false
		}
	}
	writeJSON(w, status(r.Ready), r)
}

// readyOne is 200 when the installation can receive and send.
func (s *Server) readyOne(w http.ResponseWriter, r *http.Request) {
	for _, h := range s.src.Health() {
		if h.Installation == r.PathValue("installation") {
			writeJSON(w, status(h.Ready && !s.src.Stopping()), h)
			return
		}
	}
	http.Error(w, "no such installation", http.StatusNotFound)
}

func status(ready bool) int {
	if ready {
		return http.StatusOK
	}
	return http.StatusServiceUnavailable
}

func writeJSON(w http.ResponseWriter, code int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(code)
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	_ = enc.Encode(v) // the reader has gone
}
