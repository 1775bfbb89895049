package relay_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/penstock-io/penstock/message"
	"github.com/penstock-io/penstock/relay"
	"github.com/penstock-io/penstock/router"
	"github.com/penstock-io/penstock/store"
	"github.com/penstock-io/penstock/store/memory"
)

// crowd is a relay whose handler gives up every message, and operators at work.
type crowd struct {
	relay *relay.Relay
	store *memory.Store

	mu sync.Mutex // guards the following fields
	// purged has the dead letters that are gone for good.
	purged map[message.ID]bool
	raised []message.ID // handled although they were purged
}

// Handle implements router.Handler.
func (c *crowd) Handle(_ context.Context, m *message.Inbound) (router.Result, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.purged[m.ID] {
		c.raised = append(c.raised, m.ID)
	}
	return router.Result{}, permanent("again and again")
}

// TestOperatorsRaceWithRuns has operators requeue and purge while messages are
// handled and queues are full: a purged letter never comes back, and everything is
// accounted for.
func TestOperatorsRaceWithRuns(t *testing.T) {
	const messages, operators, changes = 100, 4, 60
	c := &crowd{store: openMemory(t), purged: map[message.ID]bool{}}
	var err error
	c.relay, err = relay.New(relay.Config{
		Handler: c, Store: c.store, Inbound: relay.Queue{Pending: 16, PerKey: 4},
	})
	require.NoError(t, err)
	lane, err := c.relay.Attach(installation, &sender{})
	require.NoError(t, err)
	done := make(chan error, 1)
	go func() { done <- c.relay.Run(context.Background()) }()
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := range messages {
			m := text(fmt.Sprintf("m%d", i), fmt.Sprintf("c%d", i%5))
			if err := lane.Accept(context.Background(), message.Delivery{Message: m, Ack: &ack{}}); err != nil {
				t.Error(err)
			}
		}
	})
	for n := range operators {
		wg.Go(func() {
			if err := c.operate(n, changes); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	require.Eventually(t, func() bool {
		st := c.relay.Stats()
		return st.Accepted == messages && st.Accepted+st.Requeued == st.Dead["permanent"]+st.Purged
	}, 10*time.Second, time.Millisecond, "everything ends")

	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	require.True(t, c.relay.Shutdown(ctx).Drained)
	require.NoError(t, <-done)
	st := c.relay.Stats()
	require.Empty(t, c.raised)
	require.Equal(t, int64(operators*changes), st.Requeued+st.Purged+st.PurgedDead)
	require.Len(t, seqs(t, c.store, store.BoxDeadIn), int(st.Dead["permanent"]-st.Requeued-st.PurgedDead))
	require.Empty(t, seqs(t, c.store, store.BoxInbox))
}

// purges is how many items each operator removes: few enough that there is always
// something left to requeue.
const purges = 10

// operate makes so many changes to what it finds: it purges pending messages and
// dead letters in turn, and requeues between.
func (c *crowd) operate(n, changes int) error {
	ctx := context.Background()
	for round, made, purged := n, 0, 0; made < changes; round++ {
		purge := purged < purges && round%5 == 0
		box := store.BoxDeadIn
		if purge && purged%2 == 0 {
			box = store.BoxInbox
		}
		entries, err := c.store.List(ctx, store.Query{Box: box, Limit: 4})
		if err != nil {
			return err
		}
		if len(entries) == 0 {
			runtime.Gosched()
			continue
		}
		err = c.change(ctx, &entries[round%len(entries)], purge)
		switch {
		case err == nil:
			made++
			if purge {
				purged++
			}
		case !errors.Is(err, store.ErrNotFound):
			return err
		}
	}
	return nil
}

func (c *crowd) change(ctx context.Context, e *store.Entry, purge bool) error {
	if !purge {
		_, err := c.relay.Requeue(ctx, e.Box, e.Seq)
		return err
	}
	err := c.relay.Purge(ctx, e.Box, e.Seq)
	if err == nil && e.Box == store.BoxDeadIn {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.purged[e.ID] = true
	}
	return err
}
