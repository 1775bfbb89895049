package wire_test

import (
	"context"
	"io"
	"math/rand/v2"
	"net"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/penstock-io/penstock/internal/wire"
)

// tcpPair gives both ends of a loopback connection.
func tcpPair(t testing.TB) (ours, peer net.Conn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { _ = l.Close() }()
	ours, err = net.Dial("tcp", l.Addr().String())
	require.NoError(t, err)
	peer, err = l.Accept()
	require.NoError(t, err)
	t.Cleanup(func() { _, _ = ours.Close(), peer.Close() })
	return ours, peer
}

// BenchmarkAcks sends frames of an ack's size as fast as the lane takes them.
func BenchmarkAcks(b *testing.B) {
	ours, peer := tcpPair(b)
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = io.Copy(io.Discard, peer)
	}()
	s := wire.NewSocket(ours, wire.Config{Frames: 4096})
	payload := []byte(strings.Repeat("x", 150))
	b.ReportAllocs()
	for b.Loop() {
		for s.Send(wire.Normal, wire.Text, payload) != nil {
		}
	}
	s.Finish(1000)
	s.Close()
	<-done
	st := s.Stats()
	b.ReportMetric(float64(st.Written)/float64(st.Writes), "frames/write")
	b.ReportMetric(float64(st.Written)/b.Elapsed().Seconds(), "frames/s")
}

// drained gives a socket whose peer reads as fast as it can.
func drained(b *testing.B, cfg wire.Config) (*wire.Socket, net.Conn) {
	ours, peer := tcpPair(b)
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = io.Copy(io.Discard, peer)
	}()
	s := wire.NewSocket(ours, cfg)
	b.Cleanup(func() {
		s.Close()
		<-done
	})
	return s, ours
}

// BenchmarkWrite is from the call to the end of the write, on a socket that
// nobody else uses, with a budget and hooks. "raw" is the system call alone, with
// its deadline, on a connection of the same kind; the rest is ours. "null" has no
// system call.
func BenchmarkWrite(b *testing.B) {
	payload := []byte(strings.Repeat("x", 150))
	f := wire.Frame{Lane: wire.Normal, Op: wire.Text, Payload: payload}
	config := func() wire.Config {
		return wire.Config{
			Server: true,
			Peer:   wire.NewBudget(wire.BudgetConfig{}).Peer(),
			Hooks:  wire.Hooks{Sent: func(wire.Sent) {}},
		}
	}
	b.Run("raw", func(b *testing.B) {
		_, conn := drained(b, wire.Config{})
		b.ReportAllocs()
		for b.Loop() {
			if err := conn.SetWriteDeadline(time.Now().Add(time.Minute)); err != nil {
				b.Fatal(err)
			}
			if _, err := conn.Write(payload); err != nil {
				b.Fatal(err)
			}
		}
	})
	write := func(b *testing.B, s *wire.Socket) {
		b.ReportAllocs()
		for b.Loop() {
			if err := s.Write(context.Background(), f); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.Run("socket", func(b *testing.B) {
		s, _ := drained(b, config())
		write(b, s)
	})
	b.Run("null", func(b *testing.B) {
		s := wire.NewSocket(&null{}, config())
		write(b, s)
		s.Close()
	})
}

// null is a connection that takes everything at once.
type null struct{ net.Conn }

func (*null) Write(b []byte) (int, error)      { return len(b), nil }
func (*null) SetWriteDeadline(time.Time) error { return nil }
func (*null) Close() error                     { return nil }

// BenchmarkBacklog has 256 senders that wait for their frames.
func BenchmarkBacklog(b *testing.B) {
	s, _ := drained(b, wire.Config{Server: true, Frames: 256})
	f := wire.Frame{Lane: wire.Normal, Op: wire.Text, Payload: make([]byte, 1000)}
	b.SetParallelism(128)
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if err := s.Write(context.Background(), f); err != nil {
				b.Error(err)
			}
		}
	})
	st := s.Stats()
	b.ReportMetric(float64(st.Written)/float64(st.Writes), "frames/write")
}

// slow is a connection over which bytes leave at a steady rate.
type slow struct {
	null
	small chan time.Time // has room for one: when a small write ended
}

// slowRate is in bytes a second: one MiB takes 15.6 ms, sixteen a quarter of a second.
const slowRate = 64 << 20

func (c *slow) Write(b []byte) (int, error) {
	<-time.After(time.Duration(len(b)) * time.Second / slowRate)
	if len(b) < 1000 {
		select {
		case c.small <- time.Now():
		default:
		}
	}
	return len(b), nil
}

// BenchmarkPongBehindBulk is how long a control frame waits behind 16 MiB of bulk
// in frames of 1 MiB on a slow link, at any moment of the first of them: until it has
// left, and until its sender knows, which is when all that was written with it has
// left too. Beside it stands the time that one large frame takes alone.
func BenchmarkPongBehindBulk(b *testing.B) {
	conn := &slow{small: make(chan time.Time, 1)}
	s := wire.NewSocket(conn, wire.Config{Server: true})
	defer s.Close()
	bulk := wire.Frame{Lane: wire.Bulk, Op: wire.Text, Payload: make([]byte, 1<<20)}
	timed := func(f wire.Frame) time.Duration {
		start := time.Now()
		require.NoError(b, s.Write(b.Context(), f))
		return time.Since(start)
	}
	var alone, left, told []time.Duration
	for b.Loop() {
		one := timed(bulk)
		alone = append(alone, one)
		for range 16 {
			require.NoError(b, s.Offer(b.Context(), bulk))
		}
		<-time.After(rand.N(one))
		start := time.Now()
		told = append(told, timed(wire.Frame{Lane: wire.Control, Op: wire.Pong}))
		left = append(left, (<-conn.small).Sub(start))
		timed(wire.Frame{Lane: wire.Bulk, Op: wire.Text, Payload: make([]byte, 2000)}) // all have left
	}
	for name, times := range map[string][]time.Duration{
		"µs/MiB": alone, "µs/pong": left, "µs/told": told,
	} {
		slices.Sort(times)
		b.ReportMetric(float64(times[len(times)/2].Microseconds()), "p50-"+name)
		b.ReportMetric(float64(times[len(times)-1].Microseconds()), "max-"+name)
	}
}

// BenchmarkIdleSockets is what sockets hold that have been used and wait.
func BenchmarkIdleSockets(b *testing.B) {
	const count = 2000
	for b.Loop() {
		var before, after runtime.MemStats
		peer := wire.NewBudget(wire.BudgetConfig{}).Peer()
		runtime.GC()
		runtime.ReadMemStats(&before)
		all := make([]*wire.Socket, count)
		for i := range all {
			all[i] = wire.NewSocket(&null{}, wire.Config{Server: true, Peer: peer})
			require.NoError(b, all[i].Send(wire.Control, wire.Ping, nil))
			f := wire.Frame{Lane: wire.Normal, Op: wire.Text, Payload: make([]byte, 5000)}
			require.NoError(b, all[i].Write(b.Context(), f))
		}
		runtime.GC()
		runtime.GC() // the second empties the pools
		runtime.ReadMemStats(&after)
		b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/count, "B/socket")
		b.ReportMetric(float64(runtime.NumGoroutine()), "goroutines")
		for _, s := range all {
			s.Close()
		}
	}
}
