package wire_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/penstock-io/penstock/internal/wire"
)

// TestSlowTenantDoesNotCutAnother fills all that a tenant can get by way of many
// sockets that nobody reads.
func TestSlowTenantDoesNotCutAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := wire.NewBudget(wire.BudgetConfig{Content: 1 << 20, Control: 1 << 16})
		var all []*wire.Socket
		for range 6 { // slow tenants
			slow := b.Peer()
			for range 8 {
				s := wire.NewSocket(newGated(), wire.Config{Peer: slow, Server: true})
				for s.Send(wire.Normal, wire.Text, make([]byte, 4000)) == nil {
				}
				for s.Send(wire.Control, wire.Pong, make([]byte, 125)) == nil {
				}
				all = append(all, s)
			}
			require.LessOrEqual(t, slow.Used(wire.ContentBytes), 1<<18, "a quarter at most")
		}
		require.Greater(t, b.Usage().Content, 1<<19, "what is there is used")
		require.Less(t, b.Usage().Content, 1<<20)
		quiet := b.Peer()
		s, peer := pipe(t, wire.Config{Peer: quiet})
		require.NoError(t, s.Send(wire.Normal, wire.Text, make([]byte, 4000)))
		require.NoError(t, s.Send(wire.Control, wire.Pong, make([]byte, 125)))
		_, err := peer.Read(make([]byte, 1))
		require.NoError(t, err)
		for _, s := range append(all, s) {
			s.Close()
		}
		require.Equal(t, wire.Usage{}, b.Usage())
	})
}

// TestFreedBytesWakeAllThatFit has a large reservation wait in front of small
// ones.
func TestFreedBytesWakeAllThatFit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := wire.NewBudget(wire.BudgetConfig{Content: 4000})
		p := b.Peer() // 1000 at most
		s, g := stalled(t, wire.Config{Peer: p})
		require.NoError(t, s.Send(wire.Normal, wire.Text, make([]byte, 300)))
		other, _ := stalled(t, wire.Config{Peer: p})
		require.NoError(t, other.Send(wire.Normal, wire.Text, make([]byte, 600)))
		done := make(chan string, 3)
		offer := func(name string, size int) {
			go func() {
				f := wire.Frame{Lane: wire.Normal, Op: wire.Text, Payload: make([]byte, size)}
				if s.Offer(context.Background(), f) == nil {
					done <- name
				}
			}()
			synctest.Wait()
		}
		offer("large", 800)
		offer("small", 150)
		offer("small", 150)
		require.Equal(t, 3, b.Usage().Waiting)
		g.permit <- nil
		g.permit <- nil
		require.Equal(t, "small", <-done)
		require.Equal(t, "small", <-done)
		synctest.Wait()
		require.Equal(t, 1, b.Usage().Waiting, "the large one still waits")
		other.Close()
		g.permit <- nil
		require.Equal(t, "large", <-done)
		s.Close()
		require.Equal(t, wire.Usage{}, b.Usage())
	})
}

func TestBudgetWaitHasADeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c tally
		b := wire.NewBudget(wire.BudgetConfig{Content: 4000})
		s, _ := stalled(t, wire.Config{Peer: b.Peer(), SendTimeout: time.Minute, Hooks: c.hooks()})
		require.NoError(t, s.Send(wire.Normal, wire.Text, make([]byte, 900)))
		require.ErrorIs(t, s.Send(wire.Normal, wire.Text, make([]byte, 200)), wire.ErrBudget)
		require.ErrorIs(t, s.Send(wire.Normal, wire.Text, make([]byte, 1000)), wire.ErrTooLarge)
		start := time.Now()
		f := wire.Frame{Lane: wire.Normal, Op: wire.Text, Payload: make([]byte, 200)}
		require.ErrorIs(t, s.Offer(context.Background(), f), context.DeadlineExceeded)
		require.Equal(t, time.Minute, time.Since(start))
		f.By = time.Now().Add(time.Second)
		require.ErrorIs(t, s.Write(context.Background(), f), context.DeadlineExceeded)
		require.Equal(t, time.Minute+time.Second, time.Since(start))
		require.NoError(t, s.Err())
		s.Close()
		require.Equal(t, map[wire.Reason]int{
			wire.DropBudget: 1, wire.DropTooLarge: 1, wire.DropExpired: 2,
			wire.DropClosed: 1, wire.DropWrite: 1,
		}, c.dropped)
		require.Equal(t, wire.Usage{}, b.Usage())
	})
}

func TestEncodersAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := wire.NewBudget(wire.BudgetConfig{Encoders: 3})
		p := b.Peer()
		var now, most atomic.Int64
		f := wire.Frame{Lane: wire.Normal, Op: wire.Text, Append: func(b []byte) ([]byte, error) {
			most.Store(max(most.Load(), now.Add(1)))
			<-time.After(time.Second)
			now.Add(-1)
			return append(b, "encoded"...), nil
		}}
		s, peer := pipe(t, wire.Config{Peer: p})
		start, done := time.Now(), make(chan error, 20)
		for range 9 {
			go func() { done <- s.Offer(context.Background(), f) }()
		}
		synctest.Wait()
		require.ErrorIs(t, s.Try(f), wire.ErrBudget, "who may not wait gets no place")
		hurried := f
		hurried.By = time.Now().Add(time.Second / 2)
		require.ErrorIs(t, s.Offer(context.Background(), hurried), context.DeadlineExceeded)
		for range 9 {
			require.NoError(t, <-done)
		}
		require.EqualValues(t, 3, most.Load())
		require.Equal(t, 3*time.Second, time.Since(start))
		go func() { _, _ = peer.Read(make([]byte, 1)) }()
		s.Close()
		require.Equal(t, wire.Usage{}, b.Usage())
	})
}

// TestBlockedEncodersLeaveTheirPlaces has a tenant without room encode as often
// as there are places.
func TestBlockedEncodersLeaveTheirPlaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := wire.NewBudget(wire.BudgetConfig{Content: 4000, Encoders: 2})
		slow, _ := stalled(t, wire.Config{Peer: b.Peer()})
		require.NoError(t, slow.Send(wire.Normal, wire.Text, make([]byte, 900)))
		calls := 0
		f := wire.Frame{Lane: wire.Normal, Op: wire.Text, Append: func(b []byte) ([]byte, error) {
			calls++
			return append(b, make([]byte, 500)...), nil
		}}
		done := make(chan error, 4)
		for range 4 {
			go func() { done <- slow.Offer(context.Background(), f) }()
			synctest.Wait()
		}
		require.Equal(t, 4, b.Usage().Waiting)
		quick, peer := pipe(t, wire.Config{Peer: b.Peer()})
		require.NoError(t, quick.Try(f))
		_, err := peer.Read(make([]byte, 1))
		require.NoError(t, err)
		require.Equal(t, 5, calls)
		slow.Close()
		quick.Close()
		for range 4 {
			require.ErrorIs(t, <-done, wire.ErrClosed)
		}
		require.Equal(t, wire.Usage{}, b.Usage())
	})
}

// TestEncodesAgainWhenThereIsRoom has more come out than was announced.
func TestEncodesAgainWhenThereIsRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := wire.NewBudget(wire.BudgetConfig{Content: 4000})
		p := b.Peer()
		s, g := stalled(t, wire.Config{Peer: p})
		require.NoError(t, s.Send(wire.Normal, wire.Text, make([]byte, 700)))
		calls := 0
		f := wire.Frame{Lane: wire.Normal, Op: wire.Text, Size: 10}
		f.Append = func(b []byte) ([]byte, error) {
			calls++
			return append(b, make([]byte, 400)...), nil
		}
		done := make(chan error, 1)
		go func() { done <- s.Offer(context.Background(), f) }()
		synctest.Wait()
		g.permit <- nil
		g.permit <- nil
		require.NoError(t, <-done)
		require.Equal(t, 2, calls)
		synctest.Wait()
		require.Equal(t, 404, p.Used(wire.ContentBytes), "the exact size is held")
		s.Close()
		require.Zero(t, p.Used(wire.ContentBytes))
	})
}

func TestNilPeerRefusesNothing(t *testing.T) {
	var p *wire.Peer
	require.Zero(t, p.Used(wire.ContentBytes))
}
