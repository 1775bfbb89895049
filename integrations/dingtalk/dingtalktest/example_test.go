package dingtalktest_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/gorilla/websocket"

	"github.com/penstock-io/penstock/integrations/dingtalk/dingtalktest"
)

// A gateway, a bot of a few lines, and one message.
func Example() {
	gw, err := dingtalktest.New(dingtalktest.Config{})
	if err != nil {
		panic(err)
	}
	if err := gw.Listen(); err != nil {
		panic(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	stopped := make(chan error)
	go func() { stopped <- gw.Run(ctx) }()

	app := gw.App("")
	ws := dial(ctx, gw.URL(), app.Credentials())
	_ = app.AwaitSessions(ctx, 1)

	pushed, err := app.Push(dingtalktest.Text("cid1", "hello"))
	if err != nil {
		panic(err)
	}
	var frame struct{ Headers map[string]string }
	_ = ws.ReadJSON(&frame)
	_ = ws.WriteJSON(map[string]any{"code": 200, "headers": frame.Headers, "data": "{}"})
	ack, err := pushed.Wait(ctx)
	fmt.Println(frame.Headers["topic"], ack.Code, err)

	cancel()
	fmt.Println(<-stopped)
	// Output:
	// /v1.0/im/bot/messages/get 200 <nil>
	// <nil>
}

// dial opens a connection as every client does: a ticket, then a WebSocket.
func dial(ctx context.Context, base string, c dingtalktest.Credentials) *websocket.Conn {
	body := `{"clientId":"` + c.ClientID + `","clientSecret":"` + c.Secret + `",` +
		`"subscriptions":[{"type":"CALLBACK","topic":"/v1.0/im/bot/messages/get"}]}`
	req, err := http.NewRequestWithContext(ctx, http.MethodPost,
		base+"/v1.0/gateway/connections/open", strings.NewReader(body))
	if err != nil {
		panic(err)
	}
	req.Header.Set("Accept", "application/json")
	tr := &http.Transport{DisableKeepAlives: true}
	resp, err := tr.RoundTrip(req)
	if err != nil {
		panic(err)
	}
	defer func() { _ = resp.Body.Close() }()
	var open struct{ Endpoint, Ticket string }
	if err := json.NewDecoder(resp.Body).Decode(&open); err != nil {
		panic(err)
	}
	target := open.Endpoint + "?ticket=" + url.QueryEscape(open.Ticket)
	ws, _, err := websocket.DefaultDialer.DialContext(ctx, target, nil)
	if err != nil {
		panic(err)
	}
	return ws
}
