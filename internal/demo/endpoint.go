package demo

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"time"

	"github.com/penstock-io/penstock/message"
)

// maxBody bounds what the endpoint reads of a request.
const maxBody = 1 << 20

// serveEndpoint serves the handler's endpoint on a free port until stop is called.
func serveEndpoint(book *ledger) (url string, stop func() error, err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	srv := &http.Server{
		Handler: endpoint{book}, ReadHeaderTimeout: time.Minute,
		ErrorLog: log.New(io.Discard, "", 0), // a killed client is part of the play
	}
	served := make(chan error, 1)
	go func() { served <- srv.Serve(l) }()
	return "http://" + l.Addr().String(), func() error {
		err := srv.Close()
		if serr := <-served; !errors.Is(serr, http.ErrServerClosed) {
			err = errors.Join(err, serr)
		}
		return err
	}, nil
}

// endpoint is the handler of the demo: it notes what it is given, works a little,
// and answers.
type endpoint struct{ book *ledger }

// ServeHTTP takes one message, under a path that tells the service's life.
func (e endpoint) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var m message.Inbound
	var life int
	_, err := fmt.Sscanf(r.URL.Path, "/%d", &life)
	if err != nil || json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody)).Decode(&m) != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	k := chat{life, m.Installation, m.Conversation.ID}
	reply := e.book.begin(k, m.ID, m.Attempt)
	<-time.After(work(m.ID))
	e.book.end(k)
	w.Header().Set("Content-Type", "application/json")
	// A service that was killed does not read it.
	_ = json.NewEncoder(w).Encode(message.Reply{Text: reply})
}
