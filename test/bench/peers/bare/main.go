// Command bare is the least that a client of the gateway can do, as a floor for the
// benchmark: one goroutine for each socket that reads a message, finds its id, and
// writes the acknowledgement. With -decode it also decodes envelope and payload
// with encoding/json, as a plain bot does. With -log it appends each frame to a file
// and acknowledges when that is on the disk, one flush for all that have come.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"runtime"
	"sync/atomic"

	"github.com/gorilla/websocket"

	"github.com/penstock-io/penstock/test/bench/internal/line"
	"github.com/penstock-io/penstock/test/bench/internal/socket"
)

func main() {
	gateway := flag.String("url", "", "gateway")
	bots := flag.Int("bots", 1, "bots with a socket each")
	more := flag.Int("sockets", 1, "sockets of the first bot")
	decode := flag.Bool("decode", false, "decode envelope and payload")
	path := flag.String("log", "", "file to append to, in place of -decode")
	flag.Parse()
	ids := make([]string, 0, *bots+*more)
	for i := range *bots {
		ids = append(ids, fmt.Sprintf("bench-%d", i))
	}
	for range *more - 1 {
		ids = append(ids, ids[0])
	}
	if err := run(*gateway, ids, *decode, *path); err != nil {
		fmt.Fprintln(os.Stderr, "bare:", err)
		os.Exit(1)
	}
}

// run opens a socket for each of the bots' ids.
func run(gateway string, ids []string, decode bool, path string) error {
	var handled atomic.Int64
	failed := make(chan error, len(ids))
	for _, id := range ids {
		ws, err := socket.Open(gateway, id)
		if err != nil {
			return err
		}
		go func() {
			if path != "" {
				failed <- serveLog(ws, path, &handled)
				return
			}
			failed <- serve(ws, decode, &handled)
		}()
	}
	go func() { fmt.Fprintln(os.Stderr, "bare:", <-failed) }() // both end with the process
	return line.Serve(map[string]line.Word{
		"stats": func(json.RawMessage) (any, error) {
			return line.Figures{Handled: handled.Load(), Goroutines: runtime.NumGoroutine()}, nil
		},
	})
}

func serve(ws *websocket.Conn, decode bool, handled *atomic.Int64) error {
	for {
		_, raw, err := ws.ReadMessage()
		if err != nil {
			return err
		}
		id, err := read(raw, decode)
		if err != nil {
			return err
		}
		if err := ws.WriteMessage(websocket.TextMessage, socket.Ack(id)); err != nil {
			return err
		}
		handled.Add(1)
	}
}

func read(raw []byte, decode bool) (id []byte, err error) {
	if decode {
		return decoded(raw)
	}
	return socket.ID(raw)
}
