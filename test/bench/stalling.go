package main

import (
	"bytes"
	"net"
	"strconv"
	"time"

	"github.com/gorilla/websocket"

	"github.com/penstock-io/penstock/test/bench/internal/socket"
)

// stalling is a socket of a crowd that stops reading for good when it is told to.
// What was written to it meanwhile is read when it has been cut off.
type stalling struct {
	now     chan struct{} // closed by whoever wants it to stop
	stopped chan struct{} // closed by the reader when it has read the last
	cut     chan struct{} // closed by whoever knows that the socket was cut
	ended   chan struct{} // closed by the reader at its end

	// owned by the reader until ended is closed; at until stopped is
	at   time.Time         // when it read for the last time
	rest map[int]time.Time // messages that were left, and when their frames were made
}

// joinStalling adds a socket that is going to stall. It is not dialled again.
func (c *crowd) joinStalling() *stalling {
	st := &stalling{
		now: make(chan struct{}), stopped: make(chan struct{}),
		cut: make(chan struct{}), ended: make(chan struct{}), rest: map[int]time.Time{},
	}
	c.readers.Go(func() {
		defer close(st.ended)
		ws, err := socket.Open(c.url, "bench-0")
		if err != nil || !c.enter(ws) {
			return // the edge has one socket less, which is waited for
		}
		defer c.exit(ws)
		st.serve(c, ws)
	})
	return st
}

func (st *stalling) serve(c *crowd, ws *websocket.Conn) {
	for !isClosed(st.now) {
		if c.next(ws, 0) != nil {
			return
		}
	}
	if tcp, ok := ws.NetConn().(*net.TCPConn); ok {
		_ = tcp.SetReadBuffer(4096) // or the system takes megabytes in its place
	}
	st.at = time.Now()
	close(st.stopped)
	select {
	case <-st.cut:
		st.readRest(ws)
	case <-c.left:
	}
}

// restFor bounds the time for which the system still delivers.
const restFor = 15 * time.Second

func (st *stalling) readRest(ws *websocket.Conn) {
	_ = ws.SetReadDeadline(time.Now().Add(restFor))
	ws.SetPingHandler(func(string) error { return nil }) // nobody is there for the answer
	for {
		_, raw, err := ws.ReadMessage()
		if err != nil {
			return
		}
		if n, err := numberOf(raw); err == nil {
			st.rest[n] = madeAt(raw)
		}
	}
}

// last is from the last read to the newest frame that was left.
func (st *stalling) last() (took time.Duration) {
	for _, made := range st.rest {
		took = max(took, made.Sub(st.at))
	}
	return took
}

// madeAt finds when a frame of the edge was made, to the millisecond.
func madeAt(raw []byte) time.Time {
	_, rest, _ := bytes.Cut(raw, []byte(`"time":"`))
	digits, _, _ := bytes.Cut(rest, []byte(`"`))
	n, err := strconv.ParseInt(string(digits), 10, 64)
	if err != nil {
		return time.Time{}
	}
	return time.UnixMilli(n)
}

func isClosed(ch <-chan struct{}) bool {
	select {
	case <-ch:
		return true
	default:
		return false
	}
}
