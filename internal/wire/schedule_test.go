package wire_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/penstock-io/penstock/internal/wire"
)

// fate is what becomes of one write.
type fate int

const (
	whole    fate = iota
	stalled0      // nothing leaves until the deadline
	stalled1      // one byte leaves until the deadline
	broken
)

// fickle is a connection that serves its writes by a list of fates.
type fickle struct {
	net.Conn
	fates    []fate
	at       atomic.Int64
	deadline atomic.Int64
	writers  atomic.Int64
	overlaps atomic.Int64
	closed   chan struct{}
	once     sync.Once
}

func (c *fickle) SetWriteDeadline(t time.Time) error {
	c.deadline.Store(t.UnixNano())
	return nil
}

func (c *fickle) Close() error {
	c.once.Do(func() { close(c.closed) })
	return nil
}

func (c *fickle) Write(b []byte) (int, error) {
	if c.writers.Add(1) > 1 {
		c.overlaps.Add(1)
	}
	defer c.writers.Add(-1)
	f := whole
	if i := int(c.at.Add(1)) - 1; i < len(c.fates) {
		f = c.fates[i]
	}
	switch f {
	case whole:
		return len(b), nil
	case broken:
		return 0, errors.New("connection reset")
	}
	select {
	case <-c.closed:
		return 0, net.ErrClosed
	case <-time.After(time.Until(time.Unix(0, c.deadline.Load()))):
		return int(f - stalled0), os.ErrDeadlineExceeded
	}
}

// act is one step of a worker.
type act struct {
	kind   string
	socket int
	frame  wire.Frame
	within time.Duration
}

func drawAct(rt *rapid.T) act {
	a := act{
		kind: rapid.SampledFrom([]string{
			"try", "try", "try", "offer", "offer", "write", "write", "require",
			"resend", "ack", "fail", "finish", "close",
		}).Draw(rt, "kind"),
		socket: rapid.IntRange(0, 2).Draw(rt, "socket"),
		within: time.Duration(rapid.IntRange(0, 1500).Draw(rt, "within")) * time.Microsecond,
	}
	// What ends a socket is rare, or nothing else would happen.
	if a.kind == "fail" || a.kind == "finish" || a.kind == "close" || a.kind == "require" {
		if rapid.IntRange(0, 3).Draw(rt, "rare") > 0 {
			a.kind = "try"
		}
	}
	sizes := rapid.SampledFrom([]int{0, 10, 300, 2000, 40_000, 70_000})
	payload := make([]byte, sizes.Draw(rt, "size"))
	a.frame = wire.Frame{
		Lane:    wire.Lane(rapid.IntRange(0, 3).Draw(rt, "lane")),
		Op:      wire.Text,
		Payload: payload,
		ID:      rapid.SampledFrom([]string{"", "a", "b", "c", "d", "e"}).Draw(rt, "id"),
	}
	if rapid.Bool().Draw(rt, "encoded") {
		a.frame.Size = rapid.SampledFrom([]int{0, 10, len(payload)}).Draw(rt, "announced")
		a.frame.Append = func(b []byte) ([]byte, error) { return append(b, payload...), nil }
	}
	return a
}

// play does one step and tells whether a frame was asked to be sent.
func (a act) play(s *wire.Socket) bool {
	ctx, cancel := within(a.within)
	defer cancel()
	var err error
	switch a.kind {
	case "try":
		err = s.Try(a.frame)
	case "offer":
		err = s.Offer(ctx, a.frame)
	case "write":
		a.frame.By = time.Now().Add(a.within)
		err = s.Write(context.Background(), a.frame)
	case "require":
		err = s.Require(ctx, a.frame)
	case "resend":
		state, _ := s.Resend(a.frame.ID)
		_ = state
		return false
	case "ack":
		s.Tracker().Ack(a.frame.ID)
		return false
	case "fail":
		s.Fail(errors.New("told to"))
		return false
	case "finish":
		s.Finish(1000)
		return false
	case "close":
		s.Close()
		return false
	}
	var dup *wire.DuplicateError
	return !errors.As(err, &dup)
}

// TestEveryByteIsGivenBack plays random schedules of sends, failures, resends,
// acknowledgements and ends on sockets that share a budget. When all is over
// nothing is reserved, and every frame has been reported once.
func TestEveryByteIsGivenBack(t *testing.T) {
	schedules := 0
	rapid.Check(t, func(rt *rapid.T) {
		schedules++
		var c tally
		b := wire.NewBudget(wire.BudgetConfig{Content: 400_000, Control: 10_000, Encoders: 2})
		peers := []*wire.Peer{b.Peer(), b.Peer()}
		var sockets []*wire.Socket
		var conns []*fickle
		for i := range 3 {
			conn := &fickle{closed: make(chan struct{})}
			for _, f := range rapid.SliceOfN(rapid.IntRange(0, 12), 0, 12).Draw(rt, fmt.Sprint("fates", i)) {
				conn.fates = append(conn.fates, max(whole, fate(f-9)))
			}
			conns = append(conns, conn)
			sockets = append(sockets, wire.NewSocket(conn, wire.Config{
				WriteTimeout: 2 * time.Millisecond, Frames: 3, BulkFrames: 2, CriticalFrames: 2,
				TrackFrames: 3, Peer: peers[i%2], Hooks: c.hooksOnce(), Server: true,
			}))
		}
		var workers sync.WaitGroup
		var asked atomic.Int64
		for range 4 {
			acts := rapid.SliceOfN(rapid.Custom(drawAct), 1, 25).Draw(rt, "acts")
			workers.Go(func() {
				for _, a := range acts {
					if a.play(sockets[a.socket]) {
						asked.Add(1)
					}
				}
			})
		}
		workers.Wait()
		for i, s := range sockets {
			s.Close()
			st := s.Stats()
			require.Equal(rt, st.Taken, st.Written+st.Dropped)
			require.Zero(rt, conns[i].overlaps.Load(), "one writer at a time")
			require.Zero(rt, s.Tracker().Stats().Bytes)
		}
		require.Equal(rt, wire.Usage{}, b.Usage())
		for _, p := range peers {
			require.Zero(rt, p.Used(wire.ContentBytes)+p.Used(wire.ControlBytes))
		}
		require.EqualValues(rt, int(asked.Load())+c.resent, c.sent+c.drops(), "%v", c.dropped)
	})
	t.Logf("%d schedules", schedules)
}

// hooksOnce gives hooks that share one tally among sockets.
func (c *tally) hooksOnce() wire.Hooks {
	if c.dropped == nil {
		c.shared = c.hooks()
	}
	return c.shared
}
