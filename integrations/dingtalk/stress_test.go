package dingtalk_test

import (
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gorilla/websocket"
	"github.com/stretchr/testify/require"

	"github.com/penstock-io/penstock/integrations/dingtalk"
	"github.com/penstock-io/penstock/message"
)

// TestEveryFrameIsAccountedForAtTheEnd settles from many goroutines while the
// session is ended in one way or another, and compares both ends' books.
func TestEveryFrameIsAccountedForAtTheEnd(t *testing.T) {
	for name, finish := range map[string]func(*running){
		"stop":  func(r *running) { r.stop() },
		"drop":  func(r *running) { _ = r.sock.NetConn().Close() },
		"serve": func(*running) {},
	} {
		t.Run(name, func(t *testing.T) {
			r := serve(t, tcpGateway(t), nil)
			var settling, pushing, hearing sync.WaitGroup
			r.core.offer = func(d message.Delivery) error {
				settling.Go(func() { _ = d.Ack.Settle(message.Accept, nil) })
				return nil
			}
			const frames = 400
			heard := 0
			half := make(chan struct{}) // closed at half of the answers
			hearing.Go(func() {
				for {
					if _, _, err := r.sock.ReadMessage(); err != nil {
						return
					}
					if heard++; heard == frames/2 {
						close(half)
					}
					if heard == frames && name == "serve" {
						r.stop()
					}
				}
			})
			pushing.Go(func() {
				for i := range frames {
					text := []byte(robotFrame(fmt.Sprint("f", i)))
					if r.sock.WriteMessage(websocket.TextMessage, text) != nil {
						return
					}
				}
			})
			<-half
			finish(r)
			<-r.end
			settling.Wait()
			hearing.Wait()
			_ = r.sock.Close()
			pushing.Wait()
			st := r.conn.Stats()
			require.Equal(t, st.Callbacks, st.Acks+st.AcksLate+st.DroppedStopping)
			require.Zero(t, st.Sessions)
			if name != "drop" {
				require.Zero(t, st.AcksLate, "what was offered is waited for")
				require.Zero(t, st.AcksLost)
				require.EqualValues(t, st.Acks, heard)
			}
		})
	}
}

// TestIdleSessionHasOneGoroutine looks for goroutines of ours beside the reader.
func TestIdleSessionHasOneGoroutine(t *testing.T) {
	bubble(t, nil, func(t *testing.T, r *running) {
		r.listen()
		<-time.After(time.Hour)
		synctest.Wait()
		stacks := make([]byte, 1<<20)
		stacks = stacks[:runtime.Stack(stacks, true)]
		ours := 0
		for _, g := range strings.Split(string(stacks), "\n\n") {
			if strings.Contains(g, "penstock/integrations/dingtalk.") ||
				strings.Contains(g, "penstock/internal/wire.") {
				ours++
			}
		}
		require.Equal(t, 1, ours, "%s", stacks)
	})
}

// TestConstructingStartsNothing is read by the goroutine gate of TestMain too.
func TestConstructingStartsNothing(t *testing.T) {
	before := runtime.NumGoroutine()
	for range 10 {
		_, err := dingtalk.Open(dingtalk.Config{ClientID: "id", ClientSecret: "s"})
		require.NoError(t, err)
	}
	require.LessOrEqual(t, runtime.NumGoroutine(), before)
}
