package relay_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/penstock-io/penstock/message"
	"github.com/penstock-io/penstock/relay"
	"github.com/penstock-io/penstock/router"
	"github.com/penstock-io/penstock/store"
	"github.com/penstock-io/penstock/store/memory"
)

// leftBehind is a store as a process leaves it that was killed.
func leftBehind(t *testing.T, messages ...*message.Inbound) *memory.Store {
	t.Helper()
	mem := openMemory(t)
	for _, m := range messages {
		m.Installation, m.Attempt = installation, 1
		require.NoError(t, mem.Commit(t.Context(), []store.Op{&store.Append{Message: m}}))
	}
	return mem
}

// What a killed process may have begun is no first try; what stood behind it is.
func TestATryThatAKillEndedIsCounted(t *testing.T) {
	for _, killed := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			mem := leftBehind(t, text("a1", "a"), text("a2", "a"), text("b1", "b"),
				card("card", "b"), text("waits", "c"))
			require.NoError(t, mem.Commit(t.Context(), []store.Op{&store.Postpone{
				Seq: 5, Attempts: 3, At: time.Now().Add(time.Second),
			}}))
			h := &recorder{}
			k := newKitOn(t, relay.Config{
				Handler: h, Inbound: relay.Queue{Workers: 1},
				Interrupted: func() bool { return killed },
			}, mem)
			k.offer("a3", "a")
			pass(time.Second)
			got := map[string]int{}
			for i, id := range h.got() {
				got[id] = h.attempts[i]
			}
			want := map[string]int{"a1": 1, "a2": 1, "a3": 1, "b1": 1, "card": 1, "waits": 4}
			if killed {
				want["a1"], want["b1"], want["card"] = 2, 2, 2
			}
			require.Equal(t, want, got)
			k.stop(time.Second)
		})
	}
}

// A try that a stop cut off is counted by the next start.
func TestATryThatAStopCutOffIsCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem := openMemory(t)
		h := &recorder{handle: func(ctx context.Context, _ *message.Inbound) (router.Result, error) {
			<-ctx.Done()
			return router.Result{}, ctx.Err()
		}}
		k := newKitOn(t, relay.Config{Handler: h, Durable: true}, mem)
		k.offer("cut", "a")
		k.offer("behind", "a")
		pass(10 * time.Millisecond) // what was gathered is committed
		k.stop(time.Second)
		require.Equal(t, []string{"cut"}, h.got())

		h = &recorder{}
		k = newKitOn(t, relay.Config{Handler: h, Durable: true}, mem)
		pass(10 * time.Millisecond) // what was gathered is committed
		require.Equal(t, []string{"cut", "behind"}, h.got())
		require.Equal(t, []int{2, 1}, h.attempts)
		k.stop(time.Second)
	})
}
