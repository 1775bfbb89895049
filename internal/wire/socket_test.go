package wire_test

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gorilla/websocket"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/penstock-io/penstock/internal/wire"
)

// peer is a WebSocket server that reads with an implementation that is not ours.
type peer struct {
	ws   *websocket.Conn
	done chan struct{}
}

// dial gives a socket and the peer that reads it.
func dial(t testing.TB, cfg wire.Config) (*wire.Socket, *peer) {
	t.Helper()
	got := make(chan *peer, 1)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		up := websocket.Upgrader{}
		ws, err := up.Upgrade(w, r, nil)
		if err != nil {
			return
		}
		p := &peer{ws: ws, done: make(chan struct{})}
		got <- p
		<-p.done
		_ = ws.Close()
	}))
	ws, _, err := websocket.DefaultDialer.Dial("ws"+strings.TrimPrefix(srv.URL, "http"), nil)
	require.NoError(t, err)
	s := wire.NewSocket(ws.NetConn(), cfg)
	p := <-got
	t.Cleanup(func() {
		s.Close()
		close(p.done)
		srv.Close()
	})
	return s, p
}

func TestFramesArriveWhole(t *testing.T) {
	s, p := dial(t, wire.Config{Bytes: 64 << 20})
	rapid.Check(t, func(rt *rapid.T) {
		// The edges of the three ways to write a length are likelier than chance.
		size := rapid.OneOf(
			rapid.SampledFrom([]int{0, 1, 125, 126, 127, 65535, 65536, 100_000}),
			rapid.IntRange(0, 3000),
		)
		var want []string
		for i := range rapid.IntRange(1, 4).Draw(rt, "frames") {
			want = append(want, strings.Repeat(string(rune('a'+i)), size.Draw(rt, "size")))
		}
		for _, w := range want {
			require.NoError(rt, s.Send(wire.Normal, wire.Text, []byte(w)))
		}
		for _, w := range want {
			kind, got, err := p.ws.ReadMessage()
			require.NoError(rt, err)
			require.Equal(rt, websocket.TextMessage, kind)
			require.Equal(rt, w, string(got))
		}
	})
}

func TestControlFramesArrive(t *testing.T) {
	s, p := dial(t, wire.Config{})
	var pings, pongs []string
	p.ws.SetPingHandler(func(d string) error { pings = append(pings, d); return nil })
	p.ws.SetPongHandler(func(d string) error { pongs = append(pongs, d); return nil })
	require.NoError(t, s.Send(wire.Control, wire.Ping, nil))
	require.NoError(t, s.Send(wire.Control, wire.Pong, []byte(strings.Repeat("p", 125))))
	require.ErrorIs(t, s.Send(wire.Control, wire.Pong, make([]byte, 126)), wire.ErrTooLarge)
	s.Finish(websocket.CloseGoingAway)
	_, _, err := p.ws.ReadMessage()
	var closed *websocket.CloseError
	require.ErrorAs(t, err, &closed)
	require.Equal(t, websocket.CloseGoingAway, closed.Code)
	require.Equal(t, []string{""}, pings)
	require.Equal(t, []string{strings.Repeat("p", 125)}, pongs)
}

// gated is a connection whose writes wait for a permit, so that a test decides
// what is ready when the next write begins.
type gated struct {
	net.Conn
	permit chan error
	wrote  chan []byte
	closed chan struct{}
	once   sync.Once
}

func newGated() *gated {
	return &gated{permit: make(chan error), wrote: make(chan []byte, 100), closed: make(chan struct{})}
}

func (g *gated) Write(b []byte) (int, error) {
	select {
	case err := <-g.permit:
		if err != nil {
			return 0, err
		}
		g.wrote <- append([]byte(nil), b...)
		return len(b), nil
	case <-g.closed:
		return 0, net.ErrClosed
	}
}

func (g *gated) SetWriteDeadline(time.Time) error { return nil }

func (g *gated) Close() error {
	g.once.Do(func() { close(g.closed) })
	return nil
}

// frames cuts the unmasked short frames of b into opcode and payload.
func frames(b []byte) (out []string) {
	for len(b) > 0 {
		n := int(b[1])
		out = append(out, fmt.Sprintf("%x:%s", b[0]&0xf, b[2:2+n]))
		b = b[2+n:]
	}
	return out
}

func TestReadyFramesLeaveInOneWriteControlFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGated()
		s := wire.NewSocket(g, wire.Config{Server: true})
		require.NoError(t, s.Send(wire.Normal, wire.Text, []byte("first")))
		synctest.Wait() // the writer is in its first write now
		for i := range 3 {
			require.NoError(t, s.Send(wire.Normal, wire.Text, fmt.Appendf(nil, "n%d", i)))
		}
		require.NoError(t, s.Send(wire.Control, wire.Pong, []byte("c")))
		g.permit <- nil
		g.permit <- nil
		require.Equal(t, []string{"1:first"}, frames(<-g.wrote))
		require.Equal(t, []string{"a:c", "1:n0", "1:n1", "1:n2"}, frames(<-g.wrote))
		s.Close()
		require.Equal(t, wire.Stats{Taken: 5, Written: 5, Writes: 2}, s.Stats())
	})
}

func TestControlOvertakesBacklog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGated()
		s := wire.NewSocket(g, wire.Config{Server: true})
		block := make([]byte, 60<<10)
		for range 4 {
			require.NoError(t, s.Send(wire.Normal, wire.Text, block))
		}
		synctest.Wait()
		require.NoError(t, s.Send(wire.Control, wire.Pong, []byte("alive")))
		g.permit <- nil
		g.permit <- nil
		<-g.wrote
		second := <-g.wrote
		require.Equal(t, []string{"a:alive"}, frames(second[:7]))
		require.Less(t, len(second), 2*len(block), "the backlog is written in pieces")
		s.Close()
	})
}

func TestFullLaneRefuses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGated()
		s := wire.NewSocket(g, wire.Config{ControlFrames: 2, Frames: 3, Bytes: 100})
		require.NoError(t, s.Send(wire.Normal, wire.Text, nil))
		synctest.Wait() // taken out by the writer
		for range 3 {
			require.NoError(t, s.Send(wire.Normal, wire.Text, nil))
		}
		require.ErrorIs(t, s.Send(wire.Normal, wire.Text, nil), wire.ErrFull)
		require.NoError(t, s.Send(wire.Control, wire.Ping, nil), "lanes do not share room")
		require.NoError(t, s.Send(wire.Control, wire.Ping, nil))
		require.ErrorIs(t, s.Send(wire.Control, wire.Ping, nil), wire.ErrFull)
		s.Close()
		require.ErrorIs(t, s.Send(wire.Control, wire.Ping, nil), wire.ErrClosed)
		require.Equal(t, wire.Stats{Taken: 6, Dropped: 6, Writes: 1}, s.Stats())
	})
}

func TestBytesBoundTheLane(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGated()
		s := wire.NewSocket(g, wire.Config{Bytes: 100})
		require.NoError(t, s.Send(wire.Normal, wire.Text, nil))
		synctest.Wait()
		require.NoError(t, s.Send(wire.Normal, wire.Text, make([]byte, 5000)), "an empty lane takes all")
		require.ErrorIs(t, s.Send(wire.Normal, wire.Text, nil), wire.ErrFull)
		g.permit <- nil
		g.permit <- nil
		synctest.Wait()
		require.NoError(t, s.Send(wire.Normal, wire.Text, nil), "room is given back")
		s.Close()
	})
}

func TestFailedWriteEndsTheSocket(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGated()
		s := wire.NewSocket(g, wire.Config{})
		require.NoError(t, s.Send(wire.Normal, wire.Text, []byte("x")))
		broken := errors.New("broken")
		g.permit <- broken
		synctest.Wait()
		require.ErrorIs(t, s.Err(), broken)
		require.ErrorIs(t, s.Send(wire.Normal, wire.Text, nil), wire.ErrClosed)
		<-g.closed
		s.Fail(errors.New("later"))
		require.ErrorIs(t, s.Err(), broken, "the first cause is kept")
		s.Close()
	})
}

func TestWriteHasADeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ours, theirs := net.Pipe()
		defer func() { _ = theirs.Close() }()
		s := wire.NewSocket(ours, wire.Config{WriteTimeout: 7 * time.Second})
		start := time.Now()
		require.NoError(t, s.Send(wire.Normal, wire.Text, []byte("nobody reads")))
		_, err := ours.Read(make([]byte, 1))
		require.Error(t, err, "a broken socket wakes its reader")
		require.Equal(t, 7*time.Second, time.Since(start))
		var timeout net.Error
		require.ErrorAs(t, s.Err(), &timeout)
		require.True(t, timeout.Timeout())
		s.Close()
	})
}

func TestCloseAfterFinishLingersASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGated()
		s := wire.NewSocket(g, wire.Config{})
		require.NoError(t, s.Send(wire.Normal, wire.Text, []byte("stuck")))
		s.Finish(1000)
		start := time.Now()
		s.Close()
		require.Equal(t, time.Second, time.Since(start))
		s.Close()
		require.Equal(t, uint64(1), s.Stats().Dropped)
	})
}

func TestCloseBeforeUse(t *testing.T) {
	s := wire.NewSocket(newGated(), wire.Config{})
	s.Close()
	s.Finish(1000)
	require.ErrorIs(t, s.Send(wire.Normal, wire.Text, nil), wire.ErrClosed)
}

// TestEveryFrameIsAccounted closes sockets under fire.
func TestEveryFrameIsAccounted(t *testing.T) {
	for round := range 4 {
		s, p := dial(t, wire.Config{Frames: 64})
		var reader, senders sync.WaitGroup
		read := 0
		reader.Go(func() {
			for {
				if _, _, err := p.ws.ReadMessage(); err != nil {
					return
				}
				read++
			}
		})
		for range 4 {
			senders.Go(func() {
				for !errors.Is(s.Send(wire.Normal, wire.Text, []byte("frame")), wire.ErrClosed) {
					runtime.Gosched()
				}
			})
		}
		for s.Stats().Written < 50 {
			require.NoError(t, s.Err())
			runtime.Gosched()
		}
		if round%2 == 0 {
			s.Finish(1000)
		}
		s.Close()
		senders.Wait()
		st := s.Stats()
		require.Equal(t, st.Taken, st.Written+st.Dropped)
		reader.Wait()
		if round%2 == 0 {
			require.Zero(t, st.Dropped, "what was taken before Finish leaves")
			require.EqualValues(t, st.Written, read)
		}
	}
}
