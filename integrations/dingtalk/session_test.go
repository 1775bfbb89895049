package dingtalk_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/gorilla/websocket"
	"github.com/stretchr/testify/require"

	"github.com/penstock-io/penstock/integrations"
	"github.com/penstock-io/penstock/integrations/dingtalk"
	"github.com/penstock-io/penstock/message"
)

// ackText is an acknowledgement byte for byte.
func ackText(code int, id, text, data string) string {
	return fmt.Sprintf(`{"code":%d,"headers":{"messageId":"%s","contentType":"application/json"},`+
		`"message":"%s","data":"%s"}`, code, id, text, strings.ReplaceAll(data, `"`, `\"`))
}

func TestAcks(t *testing.T) {
	robot := robotFrame("f1")
	event := frame("EVENT", "dingTalk", "f1", `{"x":1}`)
	card := frame("CALLBACK", topicCard, "f1", cardData)
	const success = `{"status":"SUCCESS","message":"success"}`
	const later = `{"status":"LATER","message":"not stored, push again later"}`
	for _, c := range []struct {
		name, frame string
		verdict     message.Verdict
		body, want  string // want is empty if nothing is to be written
	}{
		{"robot accepted", robot, message.Accept, "", ackText(200, "f1", "OK", `{"response":null}`)},
		{"robot dropped", robot, message.Drop, "", ackText(200, "f1", "OK", `{"response":null}`)},
		{"robot not stored", robot, message.Retry, "", ""},
		{"event accepted", event, message.Accept, "", ackText(200, "f1", "OK", success)},
		{"event dropped", event, message.Drop, "", ackText(200, "f1", "OK", success)},
		{"event not stored", event, message.Retry, "", ackText(200, "f1", "OK", later)},
		{"card without answer", card, message.Accept, "", ackText(200, "f1", "OK", `{"response":{}}`)},
		{"card answered", card, message.Accept, `{"a":"b"}`, ackText(200, "f1", "OK", `{"response":{"a":"b"}}`)},
		{"card answered whole", card, message.Accept, ` {"response":{}} `, ackText(200, "f1", "OK", `{"response":{}}`)},
		{"card answered badly", card, message.Accept, `{oops`, ackText(200, "f1", "OK", `{"response":{}}`)},
		{"card failed", card, message.Retry, "", ackText(500, "f1", "internal error", "")},
		{"no id", robotFrame(""), message.Accept, "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := serve(t, tcpGateway(t), nil)
			r.say(t, c.frame)
			d := <-r.core.offers
			require.Empty(t, d.Defect)
			require.False(t, d.AckBy.IsZero())
			require.NoError(t, d.Ack.Settle(c.verdict, []byte(c.body)))
			require.NoError(t, d.Ack.Settle(message.Accept, nil), "only the first counts")
			r.say(t, robotFrame("next"))
			require.NoError(t, (<-r.core.offers).Ack.Settle(message.Accept, nil))
			if c.want != "" {
				require.Equal(t, c.want, r.hear(t))
			}
			require.Equal(t, ackText(200, "next", "OK", `{"response":null}`), r.hear(t))
		})
	}
}

// TestOddFrames sends each odd frame between good ones.
func TestOddFrames(t *testing.T) {
	for _, c := range []struct {
		name, frame, want string
		check             func(dingtalk.Stats) uint64
	}{
		{"no JSON", "<<<", "", func(s dingtalk.Stats) uint64 { return s.BadFrames }},
		{"empty", "", "", func(s dingtalk.Stats) uint64 { return s.BadFrames }},
		{
			"topic that nobody asked for", frame("CALLBACK", "/v1.0/graph/api/invoke", "f1", "{}"),
			ackText(404, "f1", "no handler for this topic", ""),
			func(s dingtalk.Stats) uint64 { return s.Unhandled },
		},
		{
			"unknown type", frame("NOTICE", "x", "f1", "{}"),
			ackText(404, "f1", "no handler for this topic", ""),
			func(s dingtalk.Stats) uint64 { return s.Unknown },
		},
		{
			"unknown type without id", frame("NOTICE", "x", "", "{}"), "",
			func(s dingtalk.Stats) uint64 { return s.NoMessageID },
		},
		{
			"unknown system topic", frame("SYSTEM", "SOMETHING_NEW", "f1", `{"x":1}`),
			ackText(200, "f1", "OK", `{"x":1}`),
			func(s dingtalk.Stats) uint64 { return s.Systems },
		},
		{
			"bare keepalive", `{"specVersion":"1.0","type":"SYSTEM","headers":{"topic":"KEEPALIVE"}}`, "",
			func(s dingtalk.Stats) uint64 { return s.Systems },
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := serve(t, tcpGateway(t), nil)
			r.say(t, c.frame)
			if c.want != "" {
				require.Equal(t, c.want, r.hear(t))
			}
			r.say(t, robotFrame("f2"))
			d := <-r.core.offers
			require.NoError(t, d.Ack.Settle(message.Accept, nil))
			require.Equal(t, ackText(200, "f2", "OK", `{"response":null}`), r.hear(t))
			require.EqualValues(t, 1, c.check(r.conn.Stats()))
			require.EqualValues(t, 1, len(r.core.live), "told once that the session lives")
		})
	}
}

func TestBinaryFrameIsServed(t *testing.T) {
	r := serve(t, tcpGateway(t), nil)
	require.NoError(t, r.sock.WriteMessage(websocket.BinaryMessage, []byte(robotFrame("f1"))))
	require.Equal(t, "hello", (<-r.core.offers).Message.Text)
}

func TestDefectIsOffered(t *testing.T) {
	r := serve(t, tcpGateway(t), nil)
	r.say(t, frame("CALLBACK", topicRobot, "f1", "not JSON"))
	d := <-r.core.offers
	require.NotEmpty(t, d.Defect)
	require.NoError(t, d.Ack.Settle(message.Accept, nil))
	require.Equal(t, ackText(200, "f1", "OK", `{"response":null}`), r.hear(t))
	require.EqualValues(t, 1, r.conn.Stats().Defects)
}

func TestSynchronousMessageSaysUntilWhen(t *testing.T) {
	r := serve(t, tcpGateway(t), nil)
	r.say(t, frame("CALLBACK", topicCard, "f1", cardData))
	d := <-r.core.offers
	require.True(t, d.Message.Synchronous())
	require.True(t, d.Message.AnswerBy.Before(d.AckBy))
	require.True(t, d.Message.AnswerBy.After(d.Message.ReceivedAt))
}

func TestPingIsEchoedWhileEverythingWaits(t *testing.T) {
	r := serve(t, tcpGateway(t), nil)
	for i := range 500 {
		r.say(t, robotFrame(fmt.Sprint("f", i))) // offered and never settled
	}
	opaque := "{\"opaque\":\"op/aque+0056==\\u00e9\",\"n\":\n1}\t\x01é"
	r.say(t, frame("SYSTEM", "ping", "p1", opaque))
	require.Equal(t, opaque, dataOf(t, r.hear(t)))
	require.NoError(t, r.sock.WriteMessage(websocket.PingMessage, []byte("ws")))
	pong := make(chan string, 1)
	r.sock.SetPongHandler(func(s string) error { pong <- s; return nil })
	r.say(t, frame("SYSTEM", "ping", "p2", opaque))
	require.Equal(t, opaque, dataOf(t, r.hear(t)))
	require.Equal(t, "ws", <-pong)
}

func TestCoreThatIsClosed(t *testing.T) {
	g := tcpGateway(t)
	cfg := g.config()
	c, err := dingtalk.New(cfg)
	require.NoError(t, err)
	in := newCore()
	in.offer = func(message.Delivery) error { return errors.New("closed") }
	ctx, cancel := context.WithCancel(t.Context())
	end := make(chan integrations.End, 1)
	go func() { end <- c.Run(ctx, nil, in) }()
	r := &running{sock: <-g.socks}
	r.say(t, robotFrame("f1"))
	r.say(t, frame("SYSTEM", "ping", "p", "x"))
	require.Equal(t, ackText(200, "p", "OK", "x"), r.hear(t), "no ack for what was refused")
	require.EqualValues(t, 1, c.Stats().DroppedClosed)
	r.listen()
	cancel()
	require.Equal(t, integrations.Stopped, (<-end).Why, "nothing is owed for it")
}

func TestPanicOfTheCoreEndsTheSession(t *testing.T) {
	g := tcpGateway(t)
	c, err := dingtalk.New(g.config())
	require.NoError(t, err)
	in := newCore()
	in.offer = func(message.Delivery) error { panic("boom") }
	end := make(chan integrations.End, 1)
	go func() { end <- c.Run(t.Context(), nil, in) }()
	r := &running{sock: <-g.socks}
	r.say(t, robotFrame("f1"))
	require.Equal(t, "panic", (<-end).Code)
	require.Zero(t, c.Stats().Sessions)
}

func TestAckNeverGoesToAnotherSocket(t *testing.T) {
	g := tcpGateway(t)
	r := serve(t, g, nil)
	r.say(t, robotFrame("f1"))
	old := <-r.core.offers
	_ = r.sock.NetConn().Close()
	require.Equal(t, integrations.Lost, (<-r.end).Why)

	go func() { r.end <- r.conn.Run(t.Context(), nil, r.core) }()
	r.sock = <-g.socks
	require.ErrorIs(t, old.Ack.Settle(message.Accept, nil), dingtalk.ErrSessionOver)
	r.say(t, robotFrame("f2"))
	require.NoError(t, (<-r.core.offers).Ack.Settle(message.Accept, nil))
	require.Equal(t, ackText(200, "f2", "OK", `{"response":null}`), r.hear(t))
	st := r.conn.Stats()
	require.EqualValues(t, 1, st.AcksLate)
	require.EqualValues(t, 1, st.Acks)
	require.EqualValues(t, 2, st.Callbacks)
	require.False(t, st.LastCallback.IsZero())
	_ = r.sock.Close()
	<-r.end
}

func TestTooLargeMessage(t *testing.T) {
	r := serve(t, tcpGateway(t), func(c *dingtalk.Config) { c.ReadLimit = 8 << 10 })
	r.say(t, strings.Repeat("x", 8<<10)) // at the limit: a bad frame, no more
	r.say(t, strings.Repeat("x", 8<<10+1))
	_, _, err := r.sock.ReadMessage()
	var closed *websocket.CloseError
	require.ErrorAs(t, err, &closed)
	require.Equal(t, websocket.CloseMessageTooBig, closed.Code)
	end := <-r.end
	require.Equal(t, integrations.Lost, end.Why)
	require.Equal(t, "frame_too_large", end.Code)
	require.ErrorContains(t, end.Err, "8192")
}

func TestLargeMessageArrives(t *testing.T) {
	r := serve(t, tcpGateway(t), nil)
	text := strings.Repeat("long ", 200_000)
	r.say(t, strings.Replace(robotFrame("f1"), "hello", text, 1))
	require.Equal(t, strings.TrimSpace(text), strings.TrimSpace((<-r.core.offers).Message.Text))
}

func TestHowTheGatewayLeaves(t *testing.T) {
	for _, c := range []struct {
		name  string
		leave func(*websocket.Conn)
		code  string
	}{
		{"drop", func(ws *websocket.Conn) { _ = ws.NetConn().Close() }, "broken"},
		{"close", func(ws *websocket.Conn) {
			_ = ws.WriteMessage(websocket.CloseMessage, websocket.FormatCloseMessage(1001, "bye"))
			_, _, _ = ws.ReadMessage()
		}, "closed_1001"},
		{"close without code", func(ws *websocket.Conn) {
			_ = ws.WriteMessage(websocket.CloseMessage, nil)
			_, _, _ = ws.ReadMessage()
		}, "closed_1005"},
		{"nonsense", func(ws *websocket.Conn) { _, _ = ws.NetConn().Write([]byte{0xff, 0xff}) }, "protocol"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := serve(t, tcpGateway(t), nil)
			c.leave(r.sock)
			end := <-r.end
			require.Equal(t, integrations.Lost, end.Why)
			require.Equal(t, c.code, end.Code)
			require.Error(t, end.Err)
		})
	}
}
