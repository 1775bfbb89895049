package edge_test

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"github.com/stretchr/testify/require"

	"github.com/penstock-io/penstock/edge"
	"github.com/penstock-io/penstock/message"
)

// dialWith tries a ticket and gives the status of the refusal, 101 for none.
func (b *bench) dialWith(ticket string) int {
	b.t.Helper()
	endpoint := strings.Replace(b.srv.URL(), "http", "ws", 1) + "/connect"
	ws, res, err := websocket.DefaultDialer.Dial(endpoint+"?ticket="+url.QueryEscape(ticket), nil)
	if err == nil {
		b.t.Cleanup(func() { _ = ws.Close() })
	}
	require.NotNil(b.t, res, err)
	_ = res.Body.Close()
	return res.StatusCode
}

func TestRequestsForATicketThatAreRefused(t *testing.T) {
	t.Parallel()
	b := serve(t, edge.Config{})
	for body, want := range map[string]int{
		``: 400, `[]`: 400, `not json`: 400, `{"clientId":7}`: 400,
		`{"clientId":"` + strings.Repeat("x", 70<<10) + `"}`: 400,
		`{}`: 401,
		`{"subscriptions":[` + strings.Repeat(`{},`, 300) + `{}]}`: 400,
		credentials("client-one", "SENTINEL-wrong"):                401,
		credentials("client-one", secretOfTwo):                     401,
		credentials("nobody", secretOfOne):                         401,
	} {
		status, m := b.post(b.openURL(), body)
		require.Equal(t, want, status, body)
		require.NotEmpty(t, m["code"])
		require.NotEmpty(t, m["requestid"])
		require.NotEmpty(t, m["message"])
		if want == 401 {
			require.Equal(t, "authFailed", m["code"])
		}
	}
	res, err := http.Get(b.openURL())
	require.NoError(t, err)
	_ = res.Body.Close()
	require.Equal(t, http.StatusMethodNotAllowed, res.StatusCode)
	require.EqualValues(t, 4, b.srv.Stats().Opens["refused"])
	require.EqualValues(t, 6, b.srv.Stats().Opens["malformed"])
}

// Whoever mixes id and secret up does not find the secret in the log.
func TestWhatIsPresentedAsAnIDIsNotLogged(t *testing.T) {
	t.Parallel()
	b := serve(t, edge.Config{})
	status, _ := b.post(b.openURL(), credentials(secretOfOne, "client-one"))
	require.Equal(t, 401, status)
	require.Contains(t, b.log.String(), "wrong=client_id") // the log is looked at in the end
}

func TestWhoTriesSecretsIsSlowedDown(t *testing.T) {
	t.Parallel()
	b := serve(t, edge.Config{})
	for range 10 {
		status, _ := b.post(b.openURL(), credentials("client-one", "SENTINEL-guess"))
		require.Equal(t, 401, status)
	}
	status, m := b.post(b.openURL(), credentials("client-one", secretOfOne))
	require.Equal(t, 403, status, "also the right one, or guessing would go on")
	require.Contains(t, m["code"], "QpsLimit")
	require.EqualValues(t, 1, b.srv.Stats().Opens["slowed"])
	b.ticket("client-two", secretOfTwo)
	b.eventually(func() bool {
		status, _ := b.post(b.openURL(), credentials("client-one", secretOfOne))
		return status == 200
	})
}

func TestATicketIsGoodOnceAndNotForLong(t *testing.T) {
	t.Parallel()
	b := serve(t, edge.Config{})
	require.Equal(t, 401, b.dialWith(""))
	require.Equal(t, 401, b.dialWith("made up+%"))
	_, ticket := b.ticket("client-one", secretOfOne)
	require.Equal(t, 101, b.dialWith(ticket))
	require.Equal(t, 401, b.dialWith(ticket))
	short := serve(t, edge.Config{TicketLife: time.Millisecond})
	_, ticket = short.ticket("client-one", secretOfOne)
	<-time.After(10 * time.Millisecond)
	require.Equal(t, 401, short.dialWith(ticket))

	_, old := b.ticket("client-one", secretOfOne)
	for range 300 {
		b.ticket("client-one", secretOfOne)
	}
	require.Equal(t, 401, b.dialWith(old), "the oldest of very many is void")
}

func TestATicketDiesWithItsCredentials(t *testing.T) {
	t.Parallel()
	b := serve(t, edge.Config{})
	_, changed := b.ticket("client-one", secretOfOne)
	_, removed := b.ticket("client-two", secretOfTwo)
	list := consumers()[:1]
	list[0].ClientSecret = "SENTINEL-new"
	require.NoError(t, b.srv.Reload(list))
	require.Equal(t, 401, b.dialWith(changed))
	require.Equal(t, 401, b.dialWith(removed))
}

func TestTheUpgradeIsAskedFor(t *testing.T) {
	t.Parallel()
	b := serve(t, edge.Config{})
	_, ticket := b.ticket("client-one", secretOfOne)
	res, err := http.Get(b.srv.URL() + "/connect?ticket=" + ticket)
	require.NoError(t, err)
	_ = res.Body.Close()
	require.Equal(t, http.StatusUpgradeRequired, res.StatusCode)
	require.Equal(t, 101, b.dialWith(ticket), "and the ticket is still good")
	http.DefaultClient.CloseIdleConnections()
}

func TestTheEndpointNamesItsPort(t *testing.T) {
	t.Parallel()
	for public, want := range map[string]string{
		"https://bots.example":           "wss://bots.example:443/connect",
		"http://bots.example/":           "ws://bots.example:80/connect",
		"https://[2001:db8::1]/base/":    "wss://[2001:db8::1]:443/base/connect",
		"https://bots.example:8443/base": "wss://bots.example:8443/base/connect",
	} {
		srv, err := edge.New(edge.Config{Outbox: &outbox{}, PublicURL: public})
		require.NoError(t, err)
		require.Equal(t, want, edge.Endpoint(srv))
	}
}

func TestConnectionsHaveALimit(t *testing.T) {
	t.Parallel()
	list := consumers()
	list[0].MaxConnections = 2
	b := serve(t, edge.Config{Consumers: list, MaxConnections: 3})
	_, early := b.ticket("client-one", secretOfOne)
	b.dial()
	b.dial()
	status, m := b.post(b.openURL(), credentials("client-one", secretOfOne))
	require.Equal(t, 403, status, "its own limit, where clients read why")
	require.Contains(t, m["message"], "all the connections")
	require.Equal(t, 403, b.dialWith(early))
	require.EqualValues(t, 1, b.srv.Stats().Opens["limit"])
	require.Equal(t, 1, strings.Count(b.log.String(), "max_connections=2"), "logged now and then")
	other := b.dialAs("client-two", secretOfTwo)
	_, ticket := b.ticket("client-two", secretOfTwo)
	require.Equal(t, 503, b.dialWith(ticket), "that of all")
	_ = other.ws.Close()
	b.counts(1, func(s edge.Stats) int64 { return s.Closed["lost"] })
	b.eventually(func() bool { return b.dialWith(ticket) == 101 })
	require.Positive(t, b.srv.Stats().Dials["limit"])
}

func TestADeadConnectionGivesWayToANewOne(t *testing.T) {
	t.Parallel()
	list := consumers()
	list[0].MaxConnections = 1
	b := serve(t, edge.Config{Consumers: list, PingEvery: 50 * time.Millisecond})
	b.dial() // reads nothing, so it answers no ping
	b.eventually(func() bool {
		status, m := b.post(b.openURL(), credentials("client-one", secretOfOne))
		return status == 200 && b.dialWith(m["ticket"].(string)) == 101
	})
	b.counts(1, func(s edge.Stats) int64 { return s.Closed["replaced"] })
}

func TestFloodsAndNonsenseEndTheirConnectionOnly(t *testing.T) {
	t.Parallel()
	b := serve(t, edge.Config{MaxFrame: 4 << 10})
	good := b.dialAs("client-two", secretOfTwo)
	for why, c := range map[string]struct {
		times int
		send  func(*client)
		code  int
	}{
		"garbage":   {100, func(c *client) { c.write("nonsense") }, websocket.CloseInvalidFramePayloadData},
		"flood":     {3000, func(c *client) { c.answer("x", 200, "") }, websocket.ClosePolicyViolation},
		"too_large": {1, func(c *client) { c.write(strings.Repeat(" ", 5<<10)) }, websocket.CloseMessageTooBig},
	} {
		bad := b.dial()
		sent := make(chan struct{})
		go func() {
			defer close(sent)
			for range c.times {
				c.send(bad)
			}
		}()
		// What arrives after the end resets the connection, and the code may be lost.
		require.Contains(t, []int{c.code, 0}, bad.ended(), why)
		<-sent
		b.counts(1, func(s edge.Stats) int64 { return s.Closed[why] })
		r := b.giveTo(t.Context(), "two", robot("m", why))
		good.ok(good.read())
		_, err := r.wait()
		require.NoError(t, err, why)
	}
}

func TestBinaryAndShapelessFramesAreCounted(t *testing.T) {
	t.Parallel()
	b := serve(t, edge.Config{})
	c := b.dial()
	require.NoError(t, c.ws.WriteMessage(websocket.BinaryMessage, []byte(`{"code":200}`)))
	for _, s := range []string{``, `[]`, `{}`, `{"code":{}}`, `{"code":200,`, `7`} {
		c.write(s)
	}
	b.counts(7, func(s edge.Stats) int64 { return s.Strays["not_an_answer"] })
	r := b.give(robot("m", "c"))
	c.ok(c.read())
	_, err := r.wait()
	require.NoError(t, err)
}

func TestPingsAreAnswered(t *testing.T) {
	t.Parallel()
	b := serve(t, edge.Config{PingEvery: 20 * time.Millisecond})
	c := b.dial()
	pong := make(chan string, 1)
	c.ws.SetPongHandler(func(s string) error { pong <- s; return nil })
	require.NoError(t, c.ws.WriteControl(websocket.PingMessage, []byte("p"), time.Now().Add(time.Second)))
	go func() { _ = c.ended() }()
	require.Equal(t, "p", <-pong)
	<-time.After(100 * time.Millisecond)
	require.Zero(t, b.srv.Stats().Strays["late"]+b.srv.Stats().Strays["unknown_id"])
	require.Equal(t, 1, b.srv.Stats().Connections["one"])
}

func TestASlowConsumerIsCutOff(t *testing.T) {
	t.Parallel()
	b := serve(t, edge.Config{
		WriteTimeout: 300 * time.Millisecond, RejoinWithin: 10 * time.Millisecond,
	})
	stalled := b.dial() // never reads
	require.NoError(t, stalled.ws.NetConn().(*net.TCPConn).SetReadBuffer(4<<10))
	var runs []*run
	for i := range 40 {
		m := robot(fmt.Sprint(i), fmt.Sprint(i))
		m.Raw = m.Raw[:len(m.Raw)-1] + message.Raw(`,"x":"`+strings.Repeat("x", 1<<20)+`"}`)
		runs = append(runs, b.give(m))
	}
	for _, r := range runs {
		_, err := r.wait()
		require.Error(t, err)
	}
	b.eventually(func() bool {
		s := b.srv.Stats()
		return s.Connections["one"] == 0 && s.Closed["slow"]+s.Closed["lost"] == 1
	})
}

func TestSlowHandshakesEnd(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("takes as long as a handshake may")
	}
	b := serve(t, edge.Config{})
	u, err := url.Parse(b.srv.URL())
	require.NoError(t, err)
	var conns []net.Conn
	for range 50 {
		conn, err := net.Dial("tcp", u.Host)
		require.NoError(t, err)
		defer conn.Close()
		_, err = conn.Write([]byte("GET /connect HTTP/1.1\r\nHost: x\r\nX-Slow: "))
		require.NoError(t, err)
		conns = append(conns, conn)
	}
	c := b.dial()
	r := b.give(robot("m", "c"))
	c.ok(c.read())
	_, err = r.wait()
	require.NoError(t, err, "nobody else is held up")
	for _, conn := range conns {
		_ = conn.SetReadDeadline(time.Now().Add(patience))
		_, err := bufio.NewReader(conn).ReadString(0)
		require.Error(t, err)
		require.NotErrorIs(t, err, os.ErrDeadlineExceeded, "the server has ended it")
	}
}

// A client that only connects and goes, ever again, leaves nothing behind.
func TestTenThousandConnects(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("many connections")
	}
	b := serve(t, edge.Config{Consumers: []edge.Consumer{
		{Name: "one", ClientID: "client-one", ClientSecret: secretOfOne, MaxConnections: 64},
	}})
	u, err := url.Parse(b.srv.URL())
	require.NoError(t, err)
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			for range 500 {
				conn, err := net.Dial("tcp", u.Host)
				if err != nil {
					continue
				}
				_, _ = conn.Write([]byte("GET /connect?ticket=x HTTP/1.1\r\nHost: x\r\n" +
					"Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n" +
					"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"))
				_ = conn.(*net.TCPConn).SetLinger(0)
				_ = conn.Close()
			}
		})
	}
	wg.Wait()
	c := b.dial()
	r := b.give(robot("m", "c"))
	c.ok(c.read())
	_, err = r.wait()
	require.NoError(t, err)
	require.Zero(t, b.srv.Stats().Dials["busy"])
	b.counts(1, func(s edge.Stats) int64 { return int64(s.Connections["one"]) })
}
