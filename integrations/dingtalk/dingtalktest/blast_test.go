package dingtalktest_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"github.com/stretchr/testify/require"

	"github.com/penstock-io/penstock/integrations/dingtalk/dingtalktest"
)

// echo answers everything with code until the socket ends, except what skip
// wants to let pass.
func (k *conn) echo(done *sync.WaitGroup, code int, skip func(envelope) bool) {
	done.Go(func() {
		for {
			e, err := k.next()
			if err != nil {
				return
			}
			if !skip(e) {
				_ = k.ws.WriteJSON(map[string]any{ // a closed socket shows at the next read
					"code": code, "headers": map[string]any{"messageId": e.id()}, "data": "",
				})
			}
		}
	})
}

func nothing(envelope) bool { return false }

func TestBlastCountsEveryMessage(t *testing.T) {
	t.Parallel()
	c := serve(t, dingtalktest.Config{})
	var mu sync.Mutex
	var clients sync.WaitGroup
	texts := map[string]string{}
	note := func(e envelope) bool {
		var data struct {
			ConversationID string
			MsgID          string
			Text           struct{ Content string }
			SessionWebhook string
		}
		mu.Lock()
		defer mu.Unlock()
		if json.Unmarshal([]byte(e.Data), &data) == nil {
			texts[data.Text.Content[:11]] = data.ConversationID
		}
		return false
	}
	for range 2 {
		c.connect().echo(&clients, 200, note)
	}
	require.NoError(t, c.app().AwaitSessions(within(t, time.Minute), 2))
	r, err := c.app().Blast(t.Context(), dingtalktest.BlastConfig{
		Count: 500, Window: 16, Size: 2000, Conversations: 3,
	})
	require.NoError(t, err)
	require.Equal(t, 500, r.Pushed)
	require.Equal(t, 500, r.Acked)
	require.Zero(t, r.Refused+r.Redelivered+r.Duplicates+r.Unanswered)
	require.Positive(t, r.P50)
	require.LessOrEqual(t, r.P50, r.P99)
	require.LessOrEqual(t, r.P99, r.Max)
	require.Positive(t, r.PerSecond())
	require.Len(t, texts, 500)
	require.Equal(t, texts["#0000000000"], texts["#0000000003"])
	require.NotEqual(t, texts["#0000000000"], texts["#0000000001"])
	info := c.app().Sessions()[0].Info()
	require.Positive(t, info.Pushed)
	c.app().Cut()
	clients.Wait()
}

func TestBlastRedeliversOnce(t *testing.T) {
	t.Parallel()
	for school, again := range map[dingtalktest.Redelivery]int{
		dingtalktest.RedeliverNew: 4, dingtalktest.RedeliverNever: 0,
	} {
		bubble(t, dingtalktest.Config{PingEvery: -1, Redelivery: school}, func(c *client) {
			k := c.connect()
			var clients sync.WaitGroup
			firsts := 0
			k.echo(&clients, 500, func(e envelope) bool {
				firsts++
				return firsts <= 4 // not answered
			})
			r, err := c.app().Blast(c.t.Context(), dingtalktest.BlastConfig{
				Count: 8, Window: 8, Drain: 5 * time.Minute,
			})
			require.NoError(c.t, err)
			require.Equal(c.t, again, r.Redelivered)
			require.Equal(c.t, 4+again, r.Refused)
			require.Equal(c.t, 4-again, r.Unanswered)
			c.app().Cut()
			clients.Wait()
		})
	}
}

func TestBlastLimits(t *testing.T) {
	t.Parallel()
	bubble(t, dingtalktest.Config{PingEvery: -1}, func(c *client) {
		ctx, cancel := context.WithTimeout(c.t.Context(), time.Second)
		defer cancel()
		_, err := c.app().Blast(ctx, dingtalktest.BlastConfig{}) // no socket
		require.ErrorIs(c.t, err, context.DeadlineExceeded)

		var clients sync.WaitGroup
		c.connect().echo(&clients, 200, nothing)
		r, err := c.app().Blast(c.t.Context(), dingtalktest.BlastConfig{
			Rate: 100, Duration: 2 * time.Second,
		})
		require.NoError(c.t, err)
		require.InDelta(c.t, 200, r.Acked, 2)

		other := make(chan error)
		ctx, cancel = context.WithCancel(c.t.Context())
		go func() {
			_, err := c.app().Blast(ctx, dingtalktest.BlastConfig{Rate: 1})
			other <- err
		}()
		<-time.After(time.Second)
		_, err = c.app().Blast(ctx, dingtalktest.BlastConfig{})
		require.ErrorIs(c.t, err, dingtalktest.ErrBusy)
		cancel()
		require.ErrorIs(c.t, <-other, context.Canceled)
		c.app().Cut()
		clients.Wait()
	})
	gw, err := dingtalktest.New(dingtalktest.Config{})
	require.NoError(t, err)
	_, err = gw.App("").Blast(t.Context(), dingtalktest.BlastConfig{Window: -1})
	require.ErrorContains(t, err, "Window:")
}

// drain is a client without a WebSocket library: it answers all frames of one
// read with one write.
func drain(nc net.Conn) {
	r := bufio.NewReaderSize(nc, 256<<10)
	var out []byte
	for {
		head, err := r.Peek(4)
		if err != nil {
			return
		}
		size, skip := int(head[1]), 2
		if size == 126 {
			size, skip = int(binary.BigEndian.Uint16(head[2:])), 4
		}
		frame, err := r.Peek(skip + size)
		if err != nil {
			return
		}
		_, id, _ := bytes.Cut(frame[skip:], []byte(`"messageId":"`))
		id, _, _ = bytes.Cut(id, []byte(`"`))
		ack := append(append([]byte(`{"code":200,"headers":{"messageId":"`), id...),
			`","contentType":"application/json"},"message":"OK","data":"{\"response\":null}"}`...)
		out = append(out, 0x81, 0x80|126, byte(len(ack)>>8), byte(len(ack)), 0, 0, 0, 0)
		out = append(out, ack...)
		_, _ = r.Discard(skip + size) // it was peeked at
		if r.Buffered() < 4 || len(out) > 64<<10 {
			if _, err := nc.Write(out); err != nil {
				return
			}
			out = out[:0]
		}
	}
}

// BenchmarkBlast pushes through one socket to a client in this process.
func BenchmarkBlast(b *testing.B) {
	gw := dingtalktest.Serve(b, dingtalktest.Config{PlainTickets: true})
	app := gw.App("")
	endpoint, ticket := openRaw(b, gw)
	ws, _, err := websocket.DefaultDialer.DialContext(b.Context(), endpoint+"?ticket="+ticket, nil)
	require.NoError(b, err)
	done := make(chan struct{})
	go func() { defer close(done); drain(ws.NetConn()) }()
	require.NoError(b, app.AwaitSessions(b.Context(), 1))
	b.ReportAllocs()
	b.ResetTimer()
	r, err := app.Blast(b.Context(), dingtalktest.BlastConfig{Count: b.N})
	require.NoError(b, err)
	require.Equal(b, b.N, r.Acked)
	b.ReportMetric(r.PerSecond(), "acks/s")
	b.ReportMetric(float64(r.P50.Microseconds()), "p50-us")
	b.ReportMetric(float64(r.P99.Microseconds()), "p99-us")
	app.Cut()
	<-done
}

// openRaw gets an endpoint and a ticket.
func openRaw(tb testing.TB, gw *dingtalktest.Gateway) (endpoint, ticket string) {
	cred := gw.App("").Credentials()
	req, err := http.NewRequestWithContext(tb.Context(), http.MethodPost,
		gw.URL()+"/v1.0/gateway/connections/open",
		strings.NewReader(openBody(cred.ClientID, cred.Secret)))
	require.NoError(tb, err)
	req.Header.Set("Accept", "application/json")
	tr := &http.Transport{DisableKeepAlives: true}
	resp, err := tr.RoundTrip(req)
	require.NoError(tb, err)
	defer func() { _ = resp.Body.Close() }()
	var a struct{ Endpoint, Ticket string }
	require.NoError(tb, json.NewDecoder(resp.Body).Decode(&a))
	return a.Endpoint, a.Ticket
}
