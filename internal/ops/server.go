package ops

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/penstock-io/penstock/message"
)

// Limits of the socket's two sides.
const (
	maxRequest  = 1 << 20
	maxResponse = 64 << 20
	// grace bounds how long Run waits for requests that are being answered.
	grace = time.Second
)

// Server gives an API over a unix socket.
type Server struct {
	// immutable
	path string
	api  API
}

// NewServer makes a server for the socket at path. It starts nothing.
func NewServer(path string, api API) *Server { return &Server{path: path, api: api} }

// Run serves until ctx is done. listening is called once the socket takes
// connections. ErrSocketInUse means that somebody else serves it already. When Run
// returns the socket is gone.
func (s *Server) Run(ctx context.Context, listening func()) error {
	ln, err := listen(ctx, s.path)
	if err != nil {
		return fmt.Errorf("admin socket: %w", err)
	}
	defer ln.remove()
	listening()
	// There is no time limit on a response: a send may be followed for MaxWait.
	// Whoever connects may read the store anyway.
	srv := &http.Server{
		Handler:           Handler(s.api),
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       10 * time.Second,
		MaxHeaderBytes:    16 << 10,
		// What is being answered is told of the end, so that no wait outlasts it.
		BaseContext: func(net.Listener) context.Context { return ctx },
	}
	failed := make(chan error, 1)
	go func() { failed <- srv.Serve(ln) }()
	select {
	case err = <-failed:
		return fmt.Errorf("admin socket: %w", err)
	case <-ctx.Done():
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
	defer cancel()
	if err := srv.Shutdown(last); err != nil {
		_ = srv.Close() // requests that outlast the grace are cut
	}
	if err := <-failed; !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("admin socket: %w", err)
	}
	return nil
}

// The requests that are more than a Ref or a Query.
type (
	replayRequest struct {
		Ref
		Route string `json:"route"`
	}
	traceRequest struct {
		Installation message.InstallationID `json:"installation,omitempty"`
		ID           message.ID             `json:"id"`
	}
	edgeRequest struct {
		Consumer string `json:"consumer,omitempty"`
	}
	resendRequest struct {
		Frame string `json:"frame"`
	}
	nothing struct{}
)

// Handler gives the verbs over HTTP: POST /v1/VERB with a JSON object, answered by
// JSON, or by {"error":{"kind","text"}} and a status that is not 200.
func Handler(api API) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("POST /v1/list", verb(api.List))
	mux.Handle("POST /v1/show", verb(api.Show))
	mux.Handle("POST /v1/requeue", verb(api.Requeue))
	mux.Handle("POST /v1/purge", verb(func(ctx context.Context, ref Ref) (nothing, error) {
		return nothing{}, api.Purge(ctx, ref)
	}))
	mux.Handle("POST /v1/replay", verb(func(ctx context.Context, r replayRequest) (Moved, error) {
		return api.Replay(ctx, r.Ref, r.Route)
	}))
	mux.Handle("POST /v1/send", verb(api.Send))
	mux.Handle("POST /v1/trace", verb(func(ctx context.Context, r traceRequest) ([]Trace, error) {
		return api.Trace(ctx, r.Installation, r.ID)
	}))
	handleEdge(mux, api)
	return mux
}

func handleEdge(mux *http.ServeMux, api EdgeAPI) {
	mux.Handle("POST /v1/consumers",
		verb(func(ctx context.Context, r edgeRequest) ([]Consumer, error) {
			return api.Consumers(ctx, r.Consumer)
		}))
	mux.Handle("POST /v1/frames", verb(func(ctx context.Context, r edgeRequest) ([]Frame, error) {
		return api.Frames(ctx, r.Consumer)
	}))
	mux.Handle("POST /v1/resend", verb(func(ctx context.Context, r resendRequest) (Frame, error) {
		return api.Resend(ctx, r.Frame)
	}))
}

// verb makes an HTTP handler of a method.
func verb[Req, Res any](do func(context.Context, Req) (Res, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var req Req
		dec := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxRequest))
		dec.DisallowUnknownFields() // an option that is not understood is not skipped
		if err := dec.Decode(&req); err != nil {
			refuse(w, badRequest("the request cannot be read: %v", err))
			return
		}
		res, err := do(r.Context(), req)
		if err != nil {
			refuse(w, err)
			return
		}
		write(w, http.StatusOK, res)
	})
}

// failure is the body of a response that is not 200.
type failure struct {
	Error Error `json:"error"`
}

func refuse(w http.ResponseWriter, err error) {
	kind, status := classify(err)
	write(w, status, failure{Error{Kind: kind, Text: err.Error()}})
}

func write(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // the reader has gone
}
