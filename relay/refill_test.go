package relay_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/penstock-io/penstock/message"
	"github.com/penstock-io/penstock/relay"
	"github.com/penstock-io/penstock/router"
	"github.com/penstock-io/penstock/store"
)

// loads counts what is read back.
type loads struct {
	store.Store
	calls, items atomic.Int64
}

func (s *loads) LoadInbox(ctx context.Context, seqs ...store.Seq) ([]store.Pending, error) {
	s.calls.Add(1)
	s.items.Add(int64(len(seqs)))
	return s.Store.LoadInbox(ctx, seqs...)
}

// What waits in the store comes back in order, many messages with one read, and few
// of them are read for nothing.
func TestRefillReadsManyAtOnce(t *testing.T) {
	for _, chats := range []int{1, 7, 300} {
		t.Run(fmt.Sprint(chats, " chats"), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const messages, pending = 6000, 200
				open := make(chan struct{})
				h := &recorder{handle: func(context.Context, *message.Inbound) (router.Result, error) {
					<-open
					return router.Result{}, nil
				}}
				s := &loads{Store: openMemory(t)}
				k := newKitOn(t, relay.Config{
					Handler: h, Inbound: relay.Queue{Pending: pending, PerKey: 100},
				}, s)
				for i := range messages {
					k.offer(fmt.Sprintf("%d/%d", i%chats, i/chats), fmt.Sprint(i%chats))
				}
				synctest.Wait()
				require.Greater(t, k.lane.Waiting(), int64(messages-pending-1))
				close(open)
				pass(time.Minute)
				got := h.got()
				require.Len(t, got, messages)
				next := make(map[int]int)
				for _, id := range got {
					var chat, n int
					_, err := fmt.Sscanf(id, "%d/%d", &chat, &n)
					require.NoError(t, err)
					require.Equal(t, next[chat], n, "in chat %d", chat)
					next[chat]++
				}
				require.Zero(t, k.lane.Waiting())
				require.Less(t, s.calls.Load(), int64(messages/20), "reads")
				require.Less(t, s.items.Load(), int64(messages*3/2), "items read")
				k.stop(time.Second)
			})
		})
	}
}
