package edge_test

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"github.com/stretchr/testify/require"

	"github.com/penstock-io/penstock/edge"
	"github.com/penstock-io/penstock/router"
)

// rotate gives consumer "one" another secret.
func (b *bench) rotate(maxConnections int) {
	list := consumers()
	list[0].ClientSecret, list[0].MaxConnections = "SENTINEL-new", maxConnections
	require.NoError(b.t, b.srv.Reload(list))
}

// A connection whose credentials are not good any more neither stays by talking, nor
// keeps its successor out, nor settles what that has been given.
func TestARetiredConnectionHasNoPower(t *testing.T) {
	t.Parallel()
	list := consumers()
	list[0].MaxConnections = 1
	b := serve(t, edge.Config{Consumers: list, LeaveWithin: 500 * time.Millisecond})
	old := b.dial()
	b.rotate(1)
	notice := old.read()
	require.Equal(t, "disconnect", notice.Headers["topic"])
	fresh := b.dialAs("client-one", "SENTINEL-new")
	r := b.give(robot("m", "c"))
	f := fresh.read()
	tag, _, _ := strings.Cut(f.Headers["messageId"], "_m")
	require.GreaterOrEqual(t, len(f.Headers["messageId"])-len(tag), 8, "not to be guessed")
	ended := make(chan int, 1)
	go func() { ended <- old.ended() }()
	for i := 0; len(ended) == 0; i++ {
		old.answer(fmt.Sprint(tag, "_m", i), 200, "")
		_ = old.ws.WriteControl(websocket.PingMessage, nil, time.Now().Add(time.Second))
		<-time.After(20 * time.Millisecond)
		require.Less(t, i, 1000, "it is closed, however much it talks")
	}
	require.True(t, r.pending())
	fresh.ok(f)
	_, err := r.wait()
	require.NoError(t, err)
	b.counts(1, func(s edge.Stats) int64 { return s.Closed["asked"] })
}

// Two consumers share the workers of an installation.
func TestAConsumerThatDoesNotAnswerLeavesRoomForAnother(t *testing.T) {
	t.Parallel()
	b := serve(t, edge.Config{Workers: 16})
	b.dial() // reads and never answers
	good := b.dialAs("client-two", secretOfTwo)
	good.obey()
	for i := range 50 {
		b.give(robot(fmt.Sprint("bad", i), fmt.Sprint("bad", i)))
	}
	b.counts(42, func(s edge.Stats) int64 { return s.Outcomes["absent"] })
	for i := range 20 {
		_, err := b.giveTo(t.Context(), "two", robot(fmt.Sprint(i), fmt.Sprint(i))).wait()
		require.NoError(t, err)
	}
	list := consumers()[:1]
	require.NoError(t, b.srv.Reload(list))
	r := b.give(robot("more", "more"))
	b.counts(8+20+1, func(s edge.Stats) int64 { return s.Pushes })
	require.True(t, r.pending(), "alone it may have them all")
}

// Each of those that wait costs something to be tried again.
func TestAConnectionThatOnlyTalksWakesNobody(t *testing.T) {
	t.Parallel()
	b := serve(t, edge.Config{})
	chat := b.dial(topicRobot)
	_ = chat.ws.Close()
	b.counts(0, func(s edge.Stats) int64 { return int64(s.Connections["one"]) })
	cards := b.dial("/v1.0/card/instances/callback")
	for i := range 10 {
		_, err := b.give(robot(fmt.Sprint(i), "c")).wait()
		require.ErrorContains(t, err, "subscribes to this now")
		require.True(t, router.IsUnreached(err))
		_ = cards.ws.WriteControl(websocket.PingMessage, nil, time.Now().Add(time.Second))
	}
	pong := make(chan struct{})
	cards.ws.SetPongHandler(func(string) error {
		select {
		case <-pong:
		default:
			close(pong)
		}
		return nil
	})
	cards.obey()
	<-pong
	require.Empty(t, b.connected)
	require.Zero(t, b.again.Load())
	b.dial(topicRobot)
	<-b.connected
}

// Bodies that come slowly take nobody's place.
func TestSlowBodiesDoNotCloseTheDoor(t *testing.T) {
	t.Parallel()
	b := serve(t, edge.Config{})
	u, err := url.Parse(b.openURL())
	require.NoError(t, err)
	for range 300 {
		r, w := io.Pipe()
		defer w.Close()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, u.String(), r)
		require.NoError(t, err)
		go func() {
			if res, err := http.DefaultTransport.RoundTrip(req); err == nil {
				_ = res.Body.Close()
			}
		}()
		go func() { _, _ = w.Write([]byte("{")) }()
	}
	c := b.dial()
	c.obey()
	_, err = b.give(robot("m", "c")).wait()
	require.NoError(t, err)
	require.Zero(t, b.srv.Stats().Opens["busy"])
}
