package e2e_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/penstock-io/penstock/internal/app"
	"github.com/penstock-io/penstock/message"
	"github.com/penstock-io/penstock/router"
	"github.com/penstock-io/penstock/test/system"
)

// A stop lets the handler that runs end, and sends what it answered.
func TestStopInMidHandler(t *testing.T) {
	t.Parallel()
	g := gateway(t, "a")
	s := connected(t, g, configure(g, "a"), system.Options{})
	release := make(chan struct{})
	s.Record.Do(func(ctx context.Context, _ *message.Inbound) (router.Result, error) {
		select {
		case <-release:
			return router.Result{Replies: []message.Reply{{Text: "done"}}}, nil
		case <-ctx.Done():
			return router.Result{}, ctx.Err()
		}
	})
	push(t, g.App(""), "question")
	require.NoError(t, s.Record.AwaitRun(within(t), "question"))
	s.Signal()
	require.NoError(t, g.App("").AwaitSessions(within(t), 0), "sessions go first")
	close(release)
	require.NoError(t, s.Stop())
	sent := g.App("").Sent()
	require.Len(t, sent, 1)
	require.Equal(t, "done", sent[0].Text)
}

// A stop does not wait beyond its time for a handler that ignores it, and says what
// is lost.
func TestStopCutsOffWhoIgnoresIt(t *testing.T) {
	t.Parallel()
	g := gateway(t, "a")
	c := configure(g, "a")
	c.StopWithin = 200 * time.Millisecond
	s := connected(t, g, c, system.Options{})
	release, gone := make(chan struct{}), make(chan struct{})
	s.Record.Do(func(context.Context, *message.Inbound) (router.Result, error) {
		defer close(gone)
		<-release
		return router.Result{}, nil
	})
	push(t, g.App(""), "question")
	require.NoError(t, s.Record.AwaitRun(within(t), "question"))
	began := time.Now()
	require.ErrorIs(t, s.Stop(), app.ErrLost)
	require.Less(t, time.Since(began), 10*time.Second)
	close(release)
	<-gone
}

// What is taken in before a stop is acknowledged before its socket closes.
func TestStopPaysItsAcks(t *testing.T) {
	t.Parallel()
	g := gateway(t, "a")
	store := &system.Store{}
	s := connected(t, g, configure(g, "a"), system.Options{Store: store})
	release := store.Hold()
	p, err := g.App("").Push(text("owed"))
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		n, _ := s.Metric("penstock_deliveries_total")
		return n == 1
	}, 10*time.Second, 5*time.Millisecond)
	s.Signal()
	release()
	ack, err := p.Wait(within(t))
	require.NoError(t, err)
	require.Equal(t, 200, ack.Code)
	require.NoError(t, s.Stop())
	require.Len(t, s.Record.Runs(), 1)
}
