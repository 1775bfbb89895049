package dingtalk_test

import (
	"context"
	"net"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gorilla/websocket"
	"github.com/stretchr/testify/require"

	"github.com/penstock-io/penstock/integrations"
	"github.com/penstock-io/penstock/integrations/dingtalk"
	"github.com/penstock-io/penstock/message"
)

// bubble runs a test of time. body gets a session whose gateway lives in memory.
func bubble(t *testing.T, change func(*dingtalk.Config), body func(t *testing.T, r *running)) {
	synctest.Test(t, func(t *testing.T) {
		g, use := pipeGateway(t)
		r := serve(t, g, func(c *dingtalk.Config) {
			use(c)
			if change != nil {
				change(c)
			}
		})
		body(t, r)
		r.stop()
		_ = r.sock.Close()
	})
}

func TestSilentLinkIsGivenUpInTime(t *testing.T) {
	bubble(t, nil, func(t *testing.T, r *running) {
		r.sock.SetPingHandler(func(string) error { return nil }) // takes pings, answers none
		r.listen()
		start := time.Now()
		end := <-r.end
		require.Equal(t, 85*time.Second, time.Since(start))
		require.Equal(t, integrations.Lost, end.Why)
		require.Equal(t, "silent", end.Code)
		require.ErrorContains(t, end.Err, "1m25s")
	})
}

func TestSilenceCountsFromTheLastFrame(t *testing.T) {
	bubble(t, nil, func(t *testing.T, r *running) {
		r.sock.SetPingHandler(func(string) error { return nil })
		r.listen()
		<-time.After(50 * time.Second)
		r.say(t, "any message counts")
		synctest.Wait()
		start := time.Now()
		<-r.end
		require.Equal(t, 85*time.Second, time.Since(start))
	})
}

func TestIdleLinkIsKept(t *testing.T) {
	bubble(t, nil, func(t *testing.T, r *running) {
		pings := 0
		answer := r.sock.PingHandler()
		r.sock.SetPingHandler(func(d string) error { pings++; return answer(d) })
		r.listen()
		<-time.After(6 * time.Hour)
		synctest.Wait()
		require.Empty(t, r.end)
		require.Len(t, r.core.opened, 1)
		require.Empty(t, r.core.live, "pongs prove a link, not a session")
		require.Equal(t, 720, pings)
	})
}

func TestAppSilence(t *testing.T) {
	silent := func(c *dingtalk.Config) { c.AppSilence = 100 * time.Second }
	bubble(t, silent, func(t *testing.T, r *running) {
		r.listen()
		<-time.After(40 * time.Second)
		r.say(t, frame("SYSTEM", "ping", "", "x"))
		synctest.Wait()
		start := time.Now()
		end := <-r.end
		require.Equal(t, 100*time.Second, time.Since(start))
		require.Equal(t, "app_silent", end.Code)
	})
}

func TestDisconnect(t *testing.T) {
	for name, id := range map[string]string{"with id": "d1", "bare": ""} {
		t.Run(name, func(t *testing.T) {
			bubble(t, nil, func(t *testing.T, r *running) {
				r.say(t, robotFrame("before"))
				before := <-r.core.offers
				r.say(t, frame("SYSTEM", "disconnect", id, `{"reason":"connection is expired"}`))
				require.Equal(t, 10*time.Second, <-r.core.retired)
				if id != "" {
					require.Equal(t, ackText(200, id, "OK", ""), r.hear(t))
				}
				<-time.After(5 * time.Second)
				require.NoError(t, before.Ack.Settle(message.Accept, nil))
				require.Equal(t, ackText(200, "before", "OK", `{"response":null}`), r.hear(t))
				r.say(t, robotFrame("after"))
				require.NoError(t, (<-r.core.offers).Ack.Settle(message.Accept, nil))
				require.Equal(t, ackText(200, "after", "OK", `{"response":null}`), r.hear(t))
				r.say(t, frame("SYSTEM", "disconnect", "", `again`))
				synctest.Wait()
				require.Empty(t, r.core.retired, "said once")
				_ = r.sock.Close()
				end := <-r.end
				require.Equal(t, integrations.Asked, end.Why)
				require.Zero(t, end.After)
				require.NoError(t, end.Err)
			})
		})
	}
}

func TestGatewayThatAsksAndStays(t *testing.T) {
	bubble(t, nil, func(t *testing.T, r *running) {
		r.listen()
		r.say(t, frame("SYSTEM", "disconnect", "", `{}`))
		start := time.Now()
		require.Equal(t, integrations.Asked, (<-r.end).Why)
		require.Equal(t, 15*time.Second, time.Since(start))
	})
}

func TestStopSendsWhatIsOwed(t *testing.T) {
	bubble(t, nil, func(t *testing.T, r *running) {
		r.say(t, robotFrame("f1"))
		r.say(t, robotFrame("f2"))
		d1, d2 := <-r.core.offers, <-r.core.offers
		r.stop()
		synctest.Wait()
		r.say(t, robotFrame("late"))
		require.NoError(t, d1.Ack.Settle(message.Accept, nil))
		require.Equal(t, ackText(200, "f1", "OK", `{"response":null}`), r.hear(t))
		<-time.After(2 * time.Second)
		require.NoError(t, d2.Ack.Settle(message.Accept, nil))
		require.Equal(t, ackText(200, "f2", "OK", `{"response":null}`), r.hear(t))
		_, _, err := r.sock.ReadMessage()
		require.True(t, websocket.IsCloseError(err, websocket.CloseNormalClosure), "%v", err)
		require.Equal(t, integrations.End{Why: integrations.Stopped}, <-r.end)
		require.Empty(t, r.core.offers)
		require.EqualValues(t, 1, r.conn.Stats().DroppedStopping)
	})
}

func TestStopWaitsNoLongerThanItsGrace(t *testing.T) {
	bubble(t, nil, func(t *testing.T, r *running) {
		r.listen()
		r.say(t, robotFrame("f1"))
		d := <-r.core.offers
		start := time.Now()
		r.stop()
		require.Equal(t, integrations.Stopped, (<-r.end).Why)
		require.Equal(t, 3*time.Second, time.Since(start))
		require.ErrorIs(t, d.Ack.Settle(message.Accept, nil), dingtalk.ErrSessionOver)
	})
}

func TestStopWithAPeerThatDoesNotRead(t *testing.T) {
	bubble(t, nil, func(t *testing.T, r *running) {
		r.say(t, robotFrame("f1"))
		require.NoError(t, (<-r.core.offers).Ack.Settle(message.Accept, nil))
		start := time.Now()
		r.stop()
		require.Equal(t, integrations.Stopped, (<-r.end).Why)
		require.LessOrEqual(t, time.Since(start), 2*time.Second)
		require.EqualValues(t, 1, r.conn.Stats().AcksLost)
	})
}

func TestPeerThatDoesNotReadIsGivenUp(t *testing.T) {
	bubble(t, nil, func(t *testing.T, r *running) {
		r.core.offer = func(d message.Delivery) error { return d.Ack.Settle(message.Accept, nil) }
		text := []byte(robotFrame("f"))
		sent := 0
		for r.sock.WriteMessage(websocket.TextMessage, text) == nil {
			sent++
		}
		require.Greater(t, sent, 4096)
		end := <-r.end
		require.Equal(t, integrations.Lost, end.Why)
		require.Equal(t, "not_reading", end.Code)
	})
}

func TestStopWhileOpening(t *testing.T) {
	for _, where := range []string{"open", "connect"} {
		t.Run(where, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g, use := pipeGateway(t)
				if where == "open" {
					g.open = hanging
				} else {
					g.connect = hanging
				}
				cfg := g.config()
				use(&cfg)
				r := run(t, cfg)
				<-time.After(4 * time.Second)
				start := time.Now()
				r.stop()
				require.Equal(t, integrations.End{Why: integrations.Stopped}, <-r.end)
				require.Zero(t, time.Since(start))
			})
		})
	}
}

func TestOpeningIsBounded(t *testing.T) {
	for where, code := range map[string]string{"open": "open_timeout", "connect": "dial_timeout"} {
		t.Run(where, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g, use := pipeGateway(t)
				if where == "open" {
					g.open = hanging
				} else {
					g.connect = hanging
				}
				cfg := g.config()
				use(&cfg)
				start := time.Now()
				end := <-run(t, cfg).end
				require.Equal(t, 10*time.Second, time.Since(start))
				require.Equal(t, integrations.Lost, end.Why)
				require.Equal(t, code, end.Code)
			})
		})
	}
}

func TestSlowHandshakeIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, use := pipeGateway(t)
		g.connect = func(w http.ResponseWriter, r *http.Request) {
			<-time.After(6 * time.Second)
			g.upgrade(w, r)
		}
		r := serve(t, g, use)
		require.Len(t, g.dials, 1)
		r.stop()
		_ = r.sock.Close()
		<-r.end
	})
}

// hanging answers nothing until the client has gone.
func hanging(w http.ResponseWriter, r *http.Request) { <-r.Context().Done() }

// TestBlackHole cuts a real link without a word: writes go on succeeding.
func TestBlackHole(t *testing.T) {
	g := tcpGateway(t)
	hole := newHole(t, g.addr)
	r := serve(t, g, func(c *dingtalk.Config) {
		c.PingEvery, c.Silence = 50*time.Millisecond, 200*time.Millisecond
		c.DialContext = hole.dial
	})
	r.say(t, robotFrame("f1"))
	d := <-r.core.offers
	hole.swallow()
	require.NoError(t, d.Ack.Settle(message.Accept, nil), "a write proves nothing")
	end := <-r.end
	require.Equal(t, integrations.Lost, end.Why)
	require.Equal(t, "silent", end.Code)
}

// hole is a TCP proxy that can stop to forward while it goes on reading.
type hole struct {
	l    net.Listener
	to   string
	mu   sync.Mutex
	gone bool
}

func newHole(t *testing.T, to string) *hole {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	h := &hole{l: l, to: to}
	var open sync.WaitGroup
	open.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			up, err := net.Dial("tcp", to)
			if err != nil {
				_ = c.Close()
				continue
			}
			open.Go(func() { h.pump(c, up) })
			open.Go(func() { h.pump(up, c) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		open.Wait()
	})
	return h
}

func (h *hole) pump(from, to net.Conn) {
	defer func() { _, _ = from.Close(), to.Close() }()
	b := make([]byte, 4096)
	for {
		n, err := from.Read(b)
		h.mu.Lock()
		gone := h.gone
		h.mu.Unlock()
		if !gone {
			_, _ = to.Write(b[:n])
		}
		if err != nil {
			return
		}
	}
}

// dial goes through the hole, whatever the address.
func (h *hole) dial(ctx context.Context, network, _ string) (net.Conn, error) {
	return (&net.Dialer{}).DialContext(ctx, network, h.l.Addr().String())
}

func (h *hole) swallow() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.gone = true
}
