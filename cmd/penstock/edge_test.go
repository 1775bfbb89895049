package main

import (
	"bytes"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"github.com/stretchr/testify/require"

	"github.com/penstock-io/penstock/internal/ops"
)

// agent is what the tests' bot calls itself: it does not spare the terminal.
const agent = "evil\x1b[2J\u202ebot/1"

// newEdged is a service that gives every message to the bot of the first of two
// consumers, and tries it again when the test is over.
func newEdged(t *testing.T) *operated {
	t.Helper()
	o := newOperated(t)
	o.config = write(t, botFor(o.gw.URL())+`
store: {path: `+filepath.Join(o.dir, "p.db")+`}
inbound: {retry_base: 30s, retry_max: 1h}
edge:
  listen: 127.0.0.1:0
  consumers:
  - {name: one, client_id: one, client_secret: s1}
  - {name: two, client_id: two, client_secret: s2, max_connections: 3}
routes:
- {handler: {edge: {consumer: one}}}
`)
	return o
}

// bot is a connection to the edge.
type bot struct {
	t  *testing.T
	ws *websocket.Conn
}

// connectBot connects consumer "one" to the edge that p's log names.
func connectBot(t *testing.T, p *process) *bot {
	t.Helper()
	url := p.await(`"edge is up" .*url=(\S+)`)
	body, err := json.Marshal(map[string]any{
		"clientId": "one", "clientSecret": "s1", "ua": agent,
		"subscriptions": []map[string]string{{"type": "CALLBACK", "topic": "/v1.0/im/bot/messages/get"}},
	})
	require.NoError(t, err)
	res, err := http.Post(url+"/v1.0/gateway/connections/open", "application/json", bytes.NewReader(body))
	require.NoError(t, err)
	defer http.DefaultClient.CloseIdleConnections()
	defer func() { require.NoError(t, res.Body.Close()) }()
	var open struct{ Endpoint, Ticket string }
	require.NoError(t, json.NewDecoder(res.Body).Decode(&open))
	ws, upgrade, err := websocket.DefaultDialer.Dial(open.Endpoint+"?ticket="+open.Ticket, nil)
	require.NoError(t, err)
	require.NoError(t, upgrade.Body.Close())
	t.Cleanup(func() { _ = ws.Close() }) // the service may have closed it
	p.await("consumer connected")
	return &bot{t, ws}
}

// read gives the next frame and its id.
func (b *bot) read() (text, id string) {
	b.t.Helper()
	require.NoError(b.t, b.ws.SetReadDeadline(time.Now().Add(patience)))
	_, b1, err := b.ws.ReadMessage()
	require.NoError(b.t, err)
	var f struct{ Headers struct{ MessageID string } }
	require.NoError(b.t, json.Unmarshal(b1, &f))
	return string(b1), f.Headers.MessageID
}

func (b *bot) answer(id string, code int) {
	b.t.Helper()
	require.NoError(b.t, b.ws.WriteMessage(websocket.TextMessage,
		[]byte(`{"code":`+strconv.Itoa(code)+`,"headers":{"messageId":"`+id+`"},"data":"{}"}`)))
}

// consumer gives consumer "one" as the edge has it.
func (o *operated) consumer(args ...string) ops.Consumer {
	o.t.Helper()
	out, _ := o.call(exitOK, append([]string{"edge", "list", "--consumer", "one", "--json"}, args...)...)
	return lines[ops.Consumer](o.t, out)[0]
}

func (o *operated) frames() []ops.Frame {
	o.t.Helper()
	out, _ := o.call(exitOK, "edge", "frames", "--consumer", "one", "--json")
	return lines[ops.Frame](o.t, out)
}

func TestEdgeOfARunningService(t *testing.T) {
	o := newEdged(t)
	p := o.run()
	out, notes := o.call(exitOK, "edge")
	require.Equal(t, "CONSUMER  CONNECTIONS\none       0 of 16\ntwo       0 of 3\n", out)
	require.Empty(t, notes)
	out, notes = o.call(exitOK, "edge", "frames")
	require.Empty(t, out+notes)

	b := connectBot(t, p)
	o.push("hello bot")
	text, id := b.read()
	require.Eventually(t, func() bool {
		all := o.frames()
		return len(all) == 1 && all[0].State == "written"
	}, patience, 10*time.Millisecond)
	f := o.frames()[0]
	require.Equal(t, id, f.ID)
	require.Equal(t, "one", f.Consumer)
	require.EqualValues(t, "bot", f.Installation)
	require.True(t, f.Waiting)
	require.Contains(t, text, f.Connection)
	require.Contains(t, text, string(f.Message))
	out, _ = o.call(exitOK, "edge", "frames")
	require.Regexp(t, `^FRAME +CONSUMER +CONNECTION +INSTALLATION +MESSAGE +SENT +STATE +WAITING\n`+
		id+` +one +`+f.Connection+` +bot +\S+ +\S+ \S+ +written +yes\n$`, out)
	out, _ = o.call(exitOK, "trace", string(f.Message))
	require.Contains(t, out, "it is out to consumer one: frame "+id+" on connection "+f.Connection+", written")
	out, _ = o.call(exitOK, "trace", string(f.Message), "--json")
	require.Equal(t, id, lines[ops.Trace](t, out)[0].Out.ID)
	out, _ = o.call(exitOK, "inbox", "list")
	require.Regexp(t, `inbox +\d+ +running +0 `, out)
	out, notes = o.call(exitOK, "edge", "frames", "--consumer", "two")
	require.Empty(t, out+notes)

	c := o.consumer()
	require.Equal(t, 16, c.MaxConnections)
	require.Len(t, c.Connections, 1)
	conn := c.Connections[0]
	require.Equal(t, f.Connection, conn.ID)
	require.Equal(t, "open", conn.State)
	require.Equal(t, agent, conn.Agent)
	require.WithinDuration(t, time.Now(), conn.Since, time.Minute)
	require.Equal(t, [2]int{1, 1}, [2]int{conn.Unanswered, conn.Frames})
	require.Greater(t, conn.Bytes, len("hello bot"))
	out, _ = o.call(exitOK, "edge")
	require.Regexp(t, `one +1 of 16\n`+`two +0 of 3\n\n`+`CONSUMER .*\n`+
		`one +`+conn.ID+" +open +evil\uFFFD\\[2J\uFFFDbot/1 +127.0.0.1:"+`\d+ +\d{4}\S+ \S+ +\d+s +1 +1 +\d+ +\S+.*\n$`, out)

	out, _ = o.call(exitOK, "edge", "resend", id)
	require.Equal(t, "frame "+id+": resent to one on connection "+conn.ID+
		", with message "+string(f.Message)+"\n", out)
	again, _ := b.read()
	require.Equal(t, text, again, "byte for byte")
	p.await(`"a frame was resent" frame_id=` + id + ` consumer=one connection=` + conn.ID +
		` installation=bot message_id=\S+`)
	out, _ = o.call(exitOK, "edge", "resend", id, "--json")
	require.Equal(t, id, lines[ops.Frame](t, out)[0].ID)
	b.answer(id, 500)
	require.Eventually(t, func() bool { return o.frames()[0].State == "acked" }, patience, 10*time.Millisecond)
	require.False(t, o.frames()[0].Waiting)
	_, notes = o.call(exitFailed, "edge", "resend", id)
	require.Contains(t, notes, "penstock: frame "+id+" has been answered, though not well;")

	o.pushTo("cid2", "hello again")
	for again = text; again == text; { // the other copy of the first one
		again, id = b.read()
	}
	b.answer(id, 200)
	require.Eventually(t, func() bool { return o.consumer().Connections[0].Unanswered == 0 },
		patience, 10*time.Millisecond)
	_, notes = o.call(exitNone, "edge", "resend", id)
	require.Contains(t, notes, "frame "+id+" is not known: it never was, has been answered")
	_, notes = o.call(exitUsage, "edge", "--consumer", "eno")
	require.Contains(t, notes, `there is no consumer "eno"; there are: one, two`)
	o.call(exitUsage, "edge", "frames", "--consumer", "eno")
	o.stop(p)
	require.NotContains(t, p.log(), "hello")
}

// A consumer that a reload takes out is shown until its connections have left.
func TestEdgeAfterAReload(t *testing.T) {
	o := newEdged(t)
	p := o.run()
	b := connectBot(t, p)
	o.push("hello")
	_, id := b.read()
	text, err := os.ReadFile(o.config)
	require.NoError(t, err)
	without := strings.Replace(string(text), "  - {name: one, client_id: one, client_secret: s1}\n", "", 1)
	without = strings.Replace(without, "consumer: one", "consumer: two", 1)
	require.NoError(t, os.WriteFile(o.config, []byte(without), 0o600))
	p.signal(syscall.SIGHUP)
	p.await("configuration reloaded")
	c := o.consumer()
	require.True(t, c.Removed)
	require.Equal(t, "leaving", c.Connections[0].State)
	out, _ := o.call(exitOK, "edge")
	require.Regexp(t, `two +0 of 3\none +1, not configured any more\n`, out)
	b.answer(id, 200)
	farewell, _ := b.read()
	require.Contains(t, farewell, "disconnect")
	require.NoError(t, b.ws.Close())
	require.Eventually(t, func() bool {
		code, _, _ := call("edge", "--consumer", "one", "-c", o.config)
		return code == exitUsage
	}, patience, 10*time.Millisecond)
	o.stop(p)
}

func TestEdgeWhenThereIsNone(t *testing.T) {
	o := newOperated(t)
	for _, args := range [][]string{{"edge"}, {"edge", "list"}, {"edge", "frames"}, {"edge", "resend", "x"}} {
		_, notes := o.call(exitFailed, args...)
		require.Contains(t, notes, "penstock: there is no edge without a running service: ")
		require.Contains(t, notes, "nobody serves "+filepath.Join(o.dir, "p.db.sock"))
	}
	require.NoFileExists(t, filepath.Join(o.dir, "p.db"), "it is not looked for in the file")

	p := o.run()
	for _, args := range [][]string{{"edge"}, {"edge", "--json"}, {"edge", "frames"}} {
		out, notes := o.call(exitOK, args...)
		require.Empty(t, out)
		require.Contains(t, notes, "the service has no consumers")
	}
	_, notes := o.call(exitUsage, "edge", "--consumer", "one")
	require.Contains(t, notes, `there is no consumer "one": the service has none`)
	o.call(exitNone, "edge", "resend", "x")
	o.stop(p)
}

func TestEdgeCompletesConsumers(t *testing.T) {
	o := newEdged(t)
	_, out, _ := call("__complete", "edge", "frames", "-c", o.config, "--consumer", "")
	require.Equal(t, "one\ntwo\n:4\n", out)
	_, out, _ = call("__complete", "edge", "")
	require.Contains(t, out, "frames\tList what may still be answered")
}

// Texts of errors come from bots and chats too.
func TestErrorsSpareTheTerminal(t *testing.T) {
	require.Equal(t, "penstock: a\uFFFDb", render(&ops.Error{Kind: ops.KindOther, Text: "a\x1bb"}))
}
