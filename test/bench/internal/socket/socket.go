// Package socket is the least that a client of a gateway needs: it opens a WebSocket
// and makes acknowledgements. It promises to decode nothing.
package socket

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/gorilla/websocket"
)

// ErrNoID means that a frame has no id.
var ErrNoID = errors.New("a frame without an id")

// Open gets a ticket for the bot of that id and dials. The caller closes what it
// gives.
func Open(gateway, id string) (*websocket.Conn, error) {
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

var idBefore = []byte(`"messageId":"`)

// ID finds the id of a frame. It fails with ErrNoID.
func ID(raw []byte) ([]byte, error) {
	_, id, ok := bytes.Cut(raw, idBefore)
	id, _, _ = bytes.Cut(id, []byte(`"`))
	if !ok {
		return nil, ErrNoID
	}
	return id, nil
}

// Ack makes the acknowledgement of the frame of that id.
func Ack(id []byte) []byte {
	b := make([]byte, 0, 256)
	b = append(b, `{"code":200,"headers":{"messageId":"`...)
	b = append(b, id...)
	return append(b,
		`","contentType":"application/json"},"message":"OK","data":"{\"response\":null}"}`...)
}
