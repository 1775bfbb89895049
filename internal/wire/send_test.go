package wire_test

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/penstock-io/penstock/internal/wire"
)

// tally counts what the hooks report.
type tally struct {
	mu      sync.Mutex
	sent    int
	failed  int
	resent  int
	evicted int
	waits   []time.Duration
	dropped map[wire.Reason]int
	shared  wire.Hooks
}

func (c *tally) hooks() wire.Hooks {
	c.dropped = map[wire.Reason]int{}
	locked := func(f func()) {
		c.mu.Lock()
		defer c.mu.Unlock()
		f()
	}
	return wire.Hooks{
		Sent: func(s wire.Sent) {
			locked(func() {
				if s.Err != nil {
					c.failed++
					return
				}
				c.sent++
				c.waits = append(c.waits, s.Queued, s.Wait)
			})
		},
		Dropped: func(_ wire.Lane, r wire.Reason) { locked(func() { c.dropped[r]++ }) },
		Resent:  func(wire.Lane) { locked(func() { c.resent++ }) },
		Evicted: func(n int) { locked(func() { c.evicted += n }) },
	}
}

func (c *tally) drops() (n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, d := range c.dropped {
		n += d
	}
	return n
}

func text(l wire.Lane, payload string) wire.Frame {
	return wire.Frame{Lane: l, Op: wire.Text, Payload: []byte(payload)}
}

// pipe gives a socket over a connection without any buffer, and its other end.
func pipe(t *testing.T, cfg wire.Config) (*wire.Socket, net.Conn) {
	t.Helper()
	ours, theirs := net.Pipe()
	cfg.Server = true
	t.Cleanup(func() { _, _ = ours.Close(), theirs.Close() })
	return wire.NewSocket(ours, cfg), theirs
}

func within(d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), d)
}

func TestWriteWaitsForTheWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, peer := pipe(t, wire.Config{})
		done := make(chan error, 1)
		go func() { done <- s.Write(t.Context(), text(wire.Normal, "hello")) }()
		synctest.Wait()
		require.Empty(t, done)
		got := make([]byte, 7)
		_, err := io.ReadFull(peer, got)
		require.NoError(t, err)
		require.NoError(t, <-done)
		require.Equal(t, []string{"1:hello"}, frames(got))
		s.Close()
	})
}

func TestDeadlineBeforeTheFirstByteSparesTheSocket(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c tally
		s, peer := pipe(t, wire.Config{Hooks: c.hooks()})
		start := time.Now()
		ctx, cancel := within(time.Second)
		defer cancel()
		require.ErrorIs(t, s.Write(ctx, text(wire.Normal, "late")), context.DeadlineExceeded)
		require.Equal(t, time.Second, time.Since(start))
		require.NoError(t, s.Err())

		// Frames that share a write with one that is late are none the worse.
		require.NoError(t, s.Send(wire.Normal, wire.Text, []byte("stuck")))
		synctest.Wait()
		var senders sync.WaitGroup
		senders.Go(func() {
			f := text(wire.Normal, "late too")
			f.By = time.Now().Add(2 * time.Second)
			require.ErrorIs(t, s.Write(context.Background(), f), context.DeadlineExceeded)
		})
		senders.Go(func() {
			require.NoError(t, s.Write(context.Background(), text(wire.Normal, "good")))
		})
		<-time.After(3 * time.Second)
		got := make([]byte, 13)
		_, err := io.ReadFull(peer, got)
		require.NoError(t, err)
		require.Equal(t, []string{"1:stuck", "1:good"}, frames(got))
		senders.Wait()
		s.Close()
		require.Equal(t, 2, c.dropped[wire.DropExpired])
		require.Equal(t, 2, c.sent)
	})
}

// TestDeadlineInTheSharedWrite lets the deadline of the second of three frames
// pass while the first is on the wire in part.
func TestDeadlineInTheSharedWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, peer := pipe(t, wire.Config{})
		require.NoError(t, s.Send(wire.Normal, wire.Text, []byte("0")))
		synctest.Wait()
		late := text(wire.Normal, "bb")
		late.By = time.Now().Add(time.Second)
		require.NoError(t, s.Send(wire.Normal, wire.Text, []byte("aa")))
		require.NoError(t, s.Try(late))
		require.NoError(t, s.Send(wire.Normal, wire.Text, []byte("cc")))
		got := make([]byte, 11)
		_, err := io.ReadFull(peer, got[:5]) // all of "0", a half of "aa"
		require.NoError(t, err)
		<-time.After(2 * time.Second)
		_, err = io.ReadFull(peer, got[5:])
		require.NoError(t, err)
		require.Equal(t, []string{"1:0", "1:aa", "1:cc"}, frames(got))
		s.Close()
		require.Equal(t, wire.Stats{Taken: 4, Written: 3, Dropped: 1, Writes: 3}, s.Stats())
	})
}

func TestPartialWriteEndsTheSocket(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c tally
		s, peer := pipe(t, wire.Config{Hooks: c.hooks()})
		done := make(chan error, 1)
		go func() {
			f := text(wire.Normal, "half")
			f.By = time.Now().Add(time.Second)
			done <- s.Write(context.Background(), f)
		}()
		_, err := io.ReadFull(peer, make([]byte, 3))
		require.NoError(t, err)
		require.ErrorIs(t, <-done, wire.ErrWrite)
		require.ErrorIs(t, s.Err(), wire.ErrWrite)
		require.ErrorIs(t, s.Write(context.Background(), text(wire.Normal, "")), wire.ErrClosed)
		s.Close()
		require.Equal(t, map[wire.Reason]int{wire.DropWrite: 1, wire.DropClosed: 1}, c.dropped)
		require.Equal(t, 1, c.failed)
	})
}

func TestDeadlineOverTLSEndsTheSocket(t *testing.T) {
	t.Parallel()
	srv := httptest.NewTLSServer(nil) // for its certificate
	defer srv.Close()
	ours, theirs := net.Pipe()
	defer func() { _ = theirs.Close() }()
	server := tls.Server(ours, srv.TLS)
	client := tls.Client(theirs, &tls.Config{InsecureSkipVerify: true}) //nolint:gosec // our own
	shaken := make(chan error, 1)
	go func() {
		_, err := client.Read(make([]byte, 1)) // with the last of the handshake
		shaken <- err
	}()
	_, err := server.Write([]byte("x"))
	require.NoError(t, err)
	require.NoError(t, <-shaken)
	s := wire.NewSocket(server, wire.Config{Server: true})
	f := text(wire.Normal, "nobody reads")
	f.By = time.Now().Add(500 * time.Millisecond)
	require.ErrorIs(t, s.Write(context.Background(), f), wire.ErrWrite)
	require.ErrorIs(t, s.Err(), wire.ErrWrite)
	s.Close()
}

// TestNobodyJumpsTheLine has a frame wait for more room than there is, while
// there is enough for a smaller one.
func TestNobodyJumpsTheLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, g := stalled(t, wire.Config{Bytes: 100})
		require.NoError(t, s.Send(wire.Normal, wire.Text, make([]byte, 60)))
		done := make(chan error, 1)
		go func() {
			f := wire.Frame{Lane: wire.Normal, Op: wire.Text, Payload: make([]byte, 60)}
			done <- s.Offer(t.Context(), f)
		}()
		synctest.Wait()
		require.ErrorIs(t, s.Send(wire.Normal, wire.Text, nil), wire.ErrFull)
		g.permit <- nil
		require.NoError(t, <-done)
		require.NoError(t, s.Send(wire.Normal, wire.Text, nil))
		s.Close()
	})
}

func TestOfferWaitsForRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c tally
		s, g := stalled(t, wire.Config{Frames: 1, Hooks: c.hooks()})
		require.NoError(t, s.Offer(t.Context(), text(wire.Normal, "a")), "there is room")
		ctx, cancel := within(time.Second)
		defer cancel()
		require.ErrorIs(t, s.Offer(ctx, text(wire.Normal, "b")), context.DeadlineExceeded)
		require.Equal(t, 1, c.dropped[wire.DropExpired])

		stop, cancel := context.WithCancel(context.Background())
		done := make(chan error, 2)
		go func() { done <- s.Offer(stop, text(wire.Normal, "c")) }()
		synctest.Wait()
		require.ErrorIs(t, s.Send(wire.Normal, wire.Text, nil), wire.ErrFull, "nobody jumps the line")
		cancel()
		require.ErrorIs(t, <-done, context.Canceled)
		require.Equal(t, 1, c.dropped[wire.DropCanceled])

		go func() { done <- s.Offer(context.Background(), text(wire.Normal, "d")) }()
		synctest.Wait()
		require.Empty(t, done)
		g.permit <- nil
		require.NoError(t, <-done, "taken when the writer has made room, not later")
		require.Equal(t, []string{"1:first"}, frames(<-g.wrote))
		g.permit <- nil
		g.permit <- nil
		require.Equal(t, []string{"1:a"}, frames(<-g.wrote))
		require.Equal(t, []string{"1:d"}, frames(<-g.wrote))
		s.Close()
	})
}

// TestOfferedFrameExpires has a frame taken that then waits too long.
func TestOfferedFrameExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c tally
		s, g := stalled(t, wire.Config{Hooks: c.hooks()})
		ctx, cancel := within(time.Second)
		defer cancel()
		require.NoError(t, s.Offer(ctx, text(wire.Normal, "a")))
		<-time.After(2 * time.Second)
		require.NoError(t, s.Send(wire.Normal, wire.Text, []byte("b")))
		g.permit <- nil
		g.permit <- nil
		<-g.wrote
		require.Equal(t, []string{"1:b"}, frames(<-g.wrote))
		s.Close()
		require.Equal(t, 1, c.dropped[wire.DropExpired])
		require.Equal(t, []time.Duration{0, 2 * time.Second, 0, 0}, c.waits)
	})
}

func TestRequireEndsTheSocket(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, g := stalled(t, wire.Config{})
		ctx, cancel := within(time.Second)
		defer cancel()
		start := time.Now()
		require.ErrorIs(t, s.Require(ctx, text(wire.Critical, "x")), context.DeadlineExceeded)
		require.Equal(t, time.Second, time.Since(start))
		require.ErrorIs(t, s.Err(), context.DeadlineExceeded)
		<-g.closed
		s.Close()
	})
}

func TestRequireForgivesDuplicates(t *testing.T) {
	s, peer := pipe(t, wire.Config{})
	go func() { _, _ = io.Copy(io.Discard, peer) }()
	f := text(wire.Normal, "x")
	f.ID = "1"
	require.NoError(t, s.Require(context.Background(), f))
	var dup *wire.DuplicateError
	require.ErrorAs(t, s.Require(context.Background(), f), &dup)
	require.Equal(t, wire.Written, dup.State)
	require.NoError(t, s.Err())
	s.Close()
	_ = peer.Close()
}

// TestResultWinsOverDeadline writes at the very instant of the deadline.
func TestResultWinsOverDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, g := stalled(t, wire.Config{})
		done := make(chan error, 1)
		ctx, cancel := within(time.Second)
		defer cancel()
		go func() { done <- s.Write(ctx, text(wire.Normal, "x")) }()
		g.permit <- nil
		synctest.Wait() // x is in flight; this connection knows no deadline
		<-time.After(time.Second)
		synctest.Wait()
		g.permit <- nil
		require.NoError(t, <-done)
		require.NoError(t, s.Err())
		s.Close()
	})
}

func TestCloseEndsEveryKindOfWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c tally
		b := wire.NewBudget(wire.BudgetConfig{Content: 4000})
		p := b.Peer()
		s, _ := stalled(t, wire.Config{Frames: 1, Peer: p, Hooks: c.hooks()})
		require.NoError(t, s.Send(wire.Bulk, wire.Text, make([]byte, 900)))
		done := make(chan error, 10)
		for _, f := range []wire.Frame{
			text(wire.Normal, "queued"),
			text(wire.Normal, "in line"),
			text(wire.Critical, strings.Repeat("for bytes", 60)),
			{Lane: wire.Normal, Op: wire.Text, Append: func(b []byte) ([]byte, error) {
				return append(b, make([]byte, 800)...), nil
			}},
		} {
			go func() { done <- s.Write(context.Background(), f) }()
			synctest.Wait()
		}
		require.Equal(t, 2, b.Usage().Waiting)
		require.Empty(t, done)
		s.Close()
		for range 4 {
			require.ErrorIs(t, <-done, wire.ErrClosed)
		}
		require.Equal(t, wire.Usage{}, b.Usage())
		require.Equal(t, map[wire.Reason]int{wire.DropClosed: 5, wire.DropWrite: 1}, c.dropped)
	})
}

func TestFinishLetsTheTakenLeave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, g := stalled(t, wire.Config{Frames: 1})
		done := make(chan error, 2)
		go func() { done <- s.Write(context.Background(), text(wire.Normal, "taken")) }()
		synctest.Wait()
		go func() { done <- s.Write(context.Background(), text(wire.Normal, "in line")) }()
		synctest.Wait()
		s.Finish(1000)
		require.ErrorIs(t, <-done, wire.ErrClosed, "who stands in line does not wait for the write")
		for range 3 {
			g.permit <- nil
		}
		require.NoError(t, <-done)
		s.Close()
		require.Equal(t, wire.Stats{Taken: 2, Written: 2, Writes: 3}, s.Stats())
	})
}

func TestSizeCap(t *testing.T) {
	var c tally
	s := wire.NewSocket(newGated(), wire.Config{MaxFrame: 10, Hooks: c.hooks()})
	require.ErrorIs(t, s.Send(wire.Normal, wire.Text, make([]byte, 11)), wire.ErrTooLarge)
	called := false
	f := wire.Frame{Lane: wire.Normal, Op: wire.Text, Size: 11, Append: func([]byte) ([]byte, error) {
		called = true
		return nil, nil
	}}
	require.ErrorIs(t, s.Try(f), wire.ErrTooLarge)
	require.False(t, called, "the cap comes before the buffer")
	f.Size = 0
	f.Append = func(b []byte) ([]byte, error) { return append(b, make([]byte, 11)...), nil }
	require.ErrorIs(t, s.Try(f), wire.ErrTooLarge)
	s.Close()
	require.Equal(t, 3, c.dropped[wire.DropTooLarge])
}

func TestEncoderFailures(t *testing.T) {
	var c tally
	b := wire.NewBudget(wire.BudgetConfig{})
	s := wire.NewSocket(newGated(), wire.Config{Peer: b.Peer(), Hooks: c.hooks()})
	broken := errors.New("broken")
	for _, encode := range []func([]byte) ([]byte, error){
		func([]byte) ([]byte, error) { return nil, broken },
		func([]byte) ([]byte, error) { panic("broken") },
	} {
		f := wire.Frame{Lane: wire.Normal, Op: wire.Text, Size: 10, Append: encode}
		require.ErrorIs(t, s.Try(f), wire.ErrEncode)
		require.ErrorIs(t, s.Write(context.Background(), f), wire.ErrEncode)
	}
	require.Equal(t, wire.Usage{}, b.Usage())
	require.Equal(t, 4, c.dropped[wire.DropEncode])
	s.Close()
}

// TestHooksMayUseTheSocket calls back from a hook while a caller of the socket
// waits.
func TestHooksMayUseTheSocket(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s *wire.Socket
		var mu sync.Mutex
		calls := 0
		g := newGated()
		s = wire.NewSocket(g, wire.Config{Server: true, Hooks: wire.Hooks{
			Sent:    func(wire.Sent) { mu.Lock(); defer mu.Unlock(); calls++; _ = s.Stats() },
			Dropped: func(wire.Lane, wire.Reason) { mu.Lock(); defer mu.Unlock(); calls++; s.Fail(s.Err()) },
		}})
		require.NoError(t, s.Send(wire.Normal, wire.Text, nil))
		synctest.Wait()
		require.NoError(t, s.Send(wire.Normal, wire.Text, nil))
		mu.Lock()
		s.Fail(errors.New("by a caller that holds a lock that the hooks want"))
		s.Finish(1000)
		mu.Unlock()
		s.Close()
		require.Equal(t, 3, calls)
	})
}

// TestOfferInLineLearnsOfTheEnd lets the writer find the frame before its sender
// has looked.
func TestOfferInLineLearnsOfTheEnd(t *testing.T) {
	for range 50 {
		synctest.Test(t, func(t *testing.T) {
			var c tally
			s, _ := stalled(t, wire.Config{Frames: 1, Hooks: c.hooks()})
			require.NoError(t, s.Send(wire.Normal, wire.Text, nil))
			done := make(chan error, 2)
			for range 2 {
				go func() { done <- s.Offer(context.Background(), text(wire.Normal, "")) }()
			}
			synctest.Wait()
			s.Fail(errors.New("told to"))
			require.ErrorIs(t, <-done, wire.ErrClosed)
			require.ErrorIs(t, <-done, wire.ErrClosed)
			s.Close()
			require.Equal(t, map[wire.Reason]int{wire.DropClosed: 3, wire.DropWrite: 1}, c.dropped)
			require.Equal(t, uint64(2), s.Stats().Dropped)
		})
	}
}

func TestCloseWaitsForSenders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := wire.NewBudget(wire.BudgetConfig{})
		s := wire.NewSocket(newGated(), wire.Config{Peer: b.Peer()})
		f := wire.Frame{Lane: wire.Normal, Op: wire.Text, Size: 100}
		f.Append = func(b []byte) ([]byte, error) {
			<-time.After(time.Second)
			return append(b, "late"...), nil
		}
		done := make(chan error, 1)
		go func() { done <- s.Try(f) }()
		synctest.Wait()
		start := time.Now()
		s.Close()
		require.Equal(t, time.Second, time.Since(start))
		require.Equal(t, wire.Usage{}, b.Usage())
		require.ErrorIs(t, <-done, wire.ErrClosed)
	})
}
