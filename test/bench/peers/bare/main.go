// Command bare is the least that a client of the gateway can do, as a floor for the
// benchmark: one goroutine for each socket that reads a message, finds its id, and
// writes the acknowledgement. With -decode it also decodes envelope and payload
// with encoding/json, as a plain bot does. With -log it appends each frame to a file
// and acknowledges when that is on the disk, one flush for all that have come.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"runtime"
	"strings"
	"sync/atomic"
	"time"

	"github.com/gorilla/websocket"

	"github.com/penstock-io/penstock/test/bench/internal/line"
)

func main() {
	gateway := flag.String("url", "", "gateway")
	bots := flag.Int("bots", 1, "sockets")
	decode := flag.Bool("decode", false, "decode envelope and payload")
	path := flag.String("log", "", "file to append to, in place of -decode")
	flag.Parse()
	if err := run(*gateway, *bots, *decode, *path); err != nil {
		fmt.Fprintln(os.Stderr, "bare:", err)
		os.Exit(1)
	}
}

func run(gateway string, bots int, decode bool, path string) error {
	var handled atomic.Int64
	failed := make(chan error, bots)
	for i := range bots {
		ws, err := open(gateway, fmt.Sprintf("bench-%d", i))
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

// open gets a ticket and dials.
func open(gateway, id string) (*websocket.Conn, error) {
	body := fmt.Sprintf(`{"clientId":%q,"clientSecret":"bench","subscriptions":`+
		`[{"type":"CALLBACK","topic":"/v1.0/im/bot/messages/get"}]}`, id)
	req, err := http.NewRequest(http.MethodPost, gateway+"/v1.0/gateway/connections/open",
		strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	var grant struct{ Endpoint, Ticket string }
	if err := json.NewDecoder(resp.Body).Decode(&grant); err != nil {
		return nil, fmt.Errorf("open: status %d: %w", resp.StatusCode, err)
	}
	d := websocket.Dialer{HandshakeTimeout: 10 * time.Second}
	ws, upgrade, err := d.Dial(grant.Endpoint+"?ticket="+url.QueryEscape(grant.Ticket), nil)
	if err != nil {
		return nil, err
	}
	_ = upgrade.Body.Close() // it is empty
	return ws, nil
}

var (
	errID    = errors.New("a frame without an id")
	idBefore = []byte(`"messageId":"`)
)

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
		if err := ws.WriteMessage(websocket.TextMessage, ack(id)); err != nil {
			return err
		}
		handled.Add(1)
	}
}

func read(raw []byte, decode bool) (id []byte, err error) {
	if decode {
		return decoded(raw)
	}
	_, id, ok := bytes.Cut(raw, idBefore)
	id, _, _ = bytes.Cut(id, []byte(`"`))
	if !ok {
		return nil, errID
	}
	return id, nil
}

func ack(id []byte) []byte {
	b := make([]byte, 0, 256)
	b = append(b, `{"code":200,"headers":{"messageId":"`...)
	b = append(b, id...)
	return append(b,
		`","contentType":"application/json"},"message":"OK","data":"{\"response\":null}"}`...)
}
