package dingtalktest_test

import (
	"crypto/tls"
	"errors"
	"net"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gorilla/websocket"
	"github.com/stretchr/testify/require"

	"github.com/penstock-io/penstock/integrations/dingtalk/dingtalktest"
)

// only is the one session there is.
func (c *client) only() *dingtalktest.Session {
	c.t.Helper()
	all := c.app().Sessions()
	require.Len(c.t, all, 1)
	return all[0]
}

// ended waits for the end of a session, bounded.
func (c *client) ended(s *dingtalktest.Session) {
	c.t.Helper()
	select {
	case <-s.Done():
	case <-within(c.t, time.Hour).Done():
		require.Fail(c.t, "the session has not ended")
	}
}

func TestSystemPingComesEvery25Seconds(t *testing.T) {
	t.Parallel()
	bubble(t, dingtalktest.Config{}, func(c *client) {
		k := c.connect()
		start := time.Now()
		for i := 1; i <= 3; i++ {
			f := k.read()
			require.Equal(c.t, "SYSTEM", f.Type)
			require.Equal(c.t, "ping", f.Headers["topic"])
			require.Contains(c.t, f.Data, "opaque")
			require.Equal(c.t, time.Duration(i)*25*time.Second, time.Since(start))
			data := f.Data
			if i == 3 {
				data = "other"
			}
			k.ack(f, 200, data)
		}
		synctest.Wait()
		info := c.only().Info()
		require.Equal(c.t, []int{3, 2, 1}, []int{info.Pings, info.Pongs, info.BadPongs})
		require.Empty(c.t, c.app().Acks())
	})
}

func TestPingOnDemandAndWebSocketPings(t *testing.T) {
	t.Parallel()
	c := serve(t, dingtalktest.Config{})
	k := c.connect()
	pong := make(chan string, 1)
	k.ws.SetPongHandler(func(data string) error { pong <- data; return nil })
	require.NoError(t, k.ws.WriteControl(websocket.PingMessage, []byte("hi"), time.Time{}))
	require.NoError(t, k.ws.WriteMessage(websocket.TextMessage, []byte("not an answer")))
	require.NoError(t, k.ws.WriteMessage(websocket.TextMessage, []byte(`{"code":200,"headers":{"messageId":"m"}}`)))
	_, err := c.app().AwaitAcks(within(t, time.Minute), 1)
	require.NoError(t, err)
	c.app().Ping()
	require.Equal(t, "ping", k.read().Headers["topic"])
	require.Equal(t, "hi", <-pong)
	require.Equal(t, 1, c.only().Info().BadReplies)
}

func TestDisconnectLetsAnswersFinish(t *testing.T) {
	t.Parallel()
	for _, bare := range []bool{false, true} {
		bubble(t, dingtalktest.Config{PingEvery: -1, BareDisconnect: bare}, func(c *client) {
			k := c.connect()
			p := c.push(dingtalktest.Text("cid1", "before"))
			f := k.read()
			s := c.only()
			c.app().Disconnect()
			c.app().Disconnect() // once is enough
			d := k.read()
			require.Equal(c.t, "disconnect", d.Headers["topic"])
			require.Equal(c.t, bare, d.id() == "")
			k.ack(d, 200, "")
			_, err := c.outcome(c.push(dingtalktest.Text("cid1", "after")))
			require.ErrorIs(c.t, err, dingtalktest.ErrLost)

			<-time.After(6 * time.Second)
			start := time.Now()
			k.ack(f, 200, "")
			ack, err := c.outcome(p)
			require.NoError(c.t, err)
			require.Equal(c.t, 6*time.Second, ack.Latency)
			_, err = k.next()
			require.Error(c.t, err)
			require.Equal(c.t, 10*time.Second, time.Since(start))
			c.ended(s)
			synctest.Wait()
			require.Equal(c.t, "disconnected", s.Info().Reason)
			require.Len(c.t, c.app().Acks(), 1)
		})
	}
}

func TestOldSocketsAreAskedToLeave(t *testing.T) {
	t.Parallel()
	bubble(t, dingtalktest.Config{PingEvery: -1, SocketAge: time.Hour}, func(c *client) {
		k := c.connect()
		start := time.Now()
		require.Equal(c.t, "disconnect", k.read().Headers["topic"])
		require.Equal(c.t, time.Hour, time.Since(start))
		require.Equal(c.t, dingtalktest.StateRetiring, c.only().Info().State)
	})
}

func TestReplacementTakesOver(t *testing.T) {
	t.Parallel()
	c := serve(t, dingtalktest.Config{})
	old := c.connect()
	c.app().Disconnect()
	require.Equal(t, "disconnect", old.read().Headers["topic"])
	k := c.connectBeside()
	c.push(dingtalktest.Text("cid1", "hello"))
	f := k.read()
	old.ack(f, 200, "") // on the wrong socket: counts, and shows
	acks, err := c.app().AwaitAcks(within(t, time.Minute), 1)
	require.NoError(t, err)
	require.NotEqual(t, acks[0].Session, acks[0].PushedOn)
}

// connectBeside connects while another socket is about to leave.
func (c *client) connectBeside() *conn {
	c.t.Helper()
	a := c.open()
	k, _, err := c.dialTicket(a.json["endpoint"].(string), a.json["ticket"].(string))
	require.NoError(c.t, err)
	require.NoError(c.t, c.app().AwaitSessions(within(c.t, time.Minute), 1))
	return k
}

func TestEndsOfSockets(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		end  func(s *dingtalktest.Session)
		want func(t *testing.T, err error)
	}{
		"close code": {
			func(s *dingtalktest.Session) { s.Close(4001, "bye") },
			func(t *testing.T, err error) { require.True(t, websocket.IsCloseError(err, 4001), err) },
		},
		"dropped": {
			(*dingtalktest.Session).Drop,
			func(t *testing.T, err error) { require.True(t, websocket.IsCloseError(err, 1006), err) },
		},
		"cut": {
			(*dingtalktest.Session).Cut,
			func(t *testing.T, err error) { require.ErrorIs(t, err, syscall.ECONNRESET) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := serve(t, dingtalktest.Config{})
			k := c.connect()
			s := c.only()
			test.end(s)
			_, err := k.next()
			test.want(t, err)
			c.ended(s)
			require.NoError(t, c.app().AwaitSessions(within(t, time.Minute), 0))
		})
	}
}

func TestClientCloseIsAnswered(t *testing.T) {
	t.Parallel()
	c := serve(t, dingtalktest.Config{})
	k := c.connect()
	s := c.only()
	require.NoError(t, k.ws.WriteControl(websocket.CloseMessage,
		websocket.FormatCloseMessage(1000, ""), time.Time{}))
	_, err := k.next()
	require.True(t, websocket.IsCloseError(err, 1000), err)
	c.ended(s)
	require.NoError(t, c.app().AwaitSessions(within(t, time.Minute), 0))
	require.False(t, s.PushRaw([]byte("late")))
}

func TestZombieAnswersPingsAndPushesNothing(t *testing.T) {
	t.Parallel()
	bubble(t, dingtalktest.Config{}, func(c *client) {
		k := c.connect()
		s := c.only()
		s.Zombie()
		pongs := 0
		k.ws.SetPongHandler(func(string) error { pongs++; return nil })
		c.push(dingtalktest.Text("cid1", "vanishes"))
		require.NoError(c.t, k.ws.WriteControl(websocket.PingMessage, nil, time.Time{}))
		require.NoError(c.t, k.ws.SetReadDeadline(time.Now().Add(5*time.Minute)))
		_, err := k.next()
		var timeout net.Error
		require.ErrorAs(c.t, err, &timeout)
		require.True(c.t, timeout.Timeout())
		require.Equal(c.t, 1, pongs)
		require.Equal(c.t, 2, s.Info().Pushed)
	})
}

func TestBlackHole(t *testing.T) {
	t.Parallel()
	for _, deaf := range []bool{false, true} {
		c := serve(t, dingtalktest.Config{})
		k := c.connect()
		s := c.only()
		s.BlackHole(deaf)
		c.push(dingtalktest.Text("cid1", "vanishes"))
		s.Ping()
		chunk := make([]byte, 64<<10)
		patience := 30 * time.Second
		if deaf {
			patience = 200 * time.Millisecond
		}
		var err error
		for i := 0; i < 256 && err == nil; i++ { // more than socket buffers hold
			require.NoError(t, k.ws.SetWriteDeadline(time.Now().Add(patience)))
			err = k.ws.WriteMessage(websocket.TextMessage, chunk)
		}
		if deaf {
			var timeout net.Error
			require.ErrorAs(t, err, &timeout)
		} else {
			require.NoError(t, err)
		}
		require.NoError(t, k.ws.SetReadDeadline(time.Now().Add(10*time.Millisecond)))
		_, err = k.next()
		require.Error(t, err)
		require.Empty(t, c.app().Acks())
		s.Drop()
	}
}

func TestDeadSocketIsChosenForAWhile(t *testing.T) {
	t.Parallel()
	bubble(t, dingtalktest.Config{PingEvery: -1, DeadFor: 5 * time.Second}, func(c *client) {
		c.connect()
		c.app().Cut()
		synctest.Wait()
		p := c.push(dingtalktest.Text("cid1", "vanishes"))
		require.Len(c.t, p.Tries(), 1)
		require.Empty(c.t, c.app().Sessions())
		<-time.After(6 * time.Second)
		k := c.connect()
		require.Contains(c.t, k.read().Data, "vanishes") // again, after a minute
		require.Len(c.t, p.Tries(), 2)
	})
}

func TestSocketThatIsNotReadIsCut(t *testing.T) {
	t.Parallel()
	c := serve(t, dingtalktest.Config{})
	c.connect()
	s := c.only()
	big := []byte(strings.Repeat("x", 1<<20))
	for range 64 {
		if !s.PushRaw(big) {
			break
		}
	}
	c.ended(s)
	require.NoError(t, c.app().AwaitSessions(within(t, time.Minute), 0))
	require.Equal(t, "overflow", s.Info().Reason)
}

func TestTLS(t *testing.T) {
	t.Parallel()
	donor := httptest.NewTLSServer(nil)
	donor.Close()
	gw := dingtalktest.Serve(t, dingtalktest.Config{
		TLS: &tls.Config{Certificates: donor.TLS.Certificates},
	})
	require.True(t, strings.HasPrefix(gw.URL(), "https://"))
	trust := donor.Client().Transport.(interface{ CloseIdleConnections() })
	defer trust.CloseIdleConnections()
	c := newClient(t, gw, (&net.Dialer{}).DialContext)
	c.http = donor.Client()
	a := c.open()
	endpoint := a.json["endpoint"].(string)
	require.True(t, strings.HasPrefix(endpoint, "wss://"))
	d := websocket.Dialer{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	ws, _, err := d.DialContext(t.Context(), endpoint+"?ticket="+escape(a.json["ticket"].(string)), nil)
	require.NoError(t, err)
	defer func() { _ = ws.Close() }()
	k := &conn{t: t, ws: ws}
	require.NoError(t, c.app().AwaitSessions(within(t, time.Minute), 1))
	p := c.push(dingtalktest.Text("cid1", "hello"))
	k.ack(k.read(), 200, "")
	_, err = c.outcome(p)
	require.NoError(t, err)
	c.app().Cut()
	_, err = k.next()
	require.Error(t, err)
	require.False(t, errors.Is(err, net.ErrClosed))
}

func TestTheHookSeesSocketsOpenAndEnd(t *testing.T) {
	t.Parallel()
	var seen []dingtalktest.SessionInfo // one socket, whose goroutine serves the hook
	hook := func(i dingtalktest.SessionInfo) { seen = append(seen, i) }
	bubble(t, dingtalktest.Config{OnSession: hook}, func(c *client) {
		c.connect()
		synctest.Wait()
		require.Len(c.t, seen, 1)
		require.Equal(c.t, dingtalktest.StateOpen, seen[0].State)
		require.Empty(c.t, seen[0].Reason)
		c.only().Drop()
		synctest.Wait()
		require.Len(c.t, seen, 2)
		require.Equal(c.t, dingtalktest.StateClosed, seen[1].State)
		require.Equal(c.t, "dropped", seen[1].Reason)
		require.Equal(c.t, seen[0].ID, seen[1].ID)
	})
}
