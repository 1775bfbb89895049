package crash_test

import (
	"hash/fnv"
	"math/rand/v2"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/penstock-io/penstock/message"
)

// conversations is how many TestKills pushes to.
const conversations = 100

// The moments of a kill: one in four daemons dies while it starts, the others
// within a while of their first work.
const (
	early   = 300 * time.Millisecond
	later   = 600 * time.Millisecond
	working = 10 * time.Second // that a daemon may take until its first work
)

// TestKills kills the daemon at random moments under load, again and again, and
// compares the books.
func TestKills(t *testing.T) {
	if testing.Short() {
		t.Skip("takes half a minute")
	}
	if *seed == 0 {
		*seed = rand.Uint64()
	}
	t.Logf("-seed %d", *seed)
	rng := rand.New(rand.NewPCG(*seed, 0))
	h := newHarness(t, time.Second)
	h.more = "outbound: {installation_rate: 0, waits: [50ms]}"
	h.answer = func(id message.ID, before int) int {
		if before == 0 && hash(id)%50 == 0 {
			return http.StatusServiceUnavailable
		}
		return http.StatusOK
	}
	began := time.Now()
	d := h.start(penstock)
	stop := h.load(rand.New(rand.NewPCG(*seed, 1)))
	for n := range *kills {
		h.moment(rng, d)
		h.kill(d)
		d = h.start(penstock)
		if (n+1)%100 == 0 {
			t.Logf("%d kills after %v", n+1, time.Since(began).Round(time.Second))
		}
	}
	stop()
	h.await("end", 2*patience, h.book.settled)
	h.stop(d)

	tally, wrong := h.book.compare(h.inDoubt())
	t.Logf("%d kills in %v: %+v", *kills, time.Since(began).Round(time.Second), tally)
	require.Empty(t, wrong)
	require.Greater(t, tally.acked, tally.pushed/2, "too little was tried")
	left := h.left()
	require.Zero(t, left.Inbox+left.Outbox+left.DeadInbox+left.DeadOutbox, "left in the store: %+v", left)
}

// moment waits for the moment at which a daemon is to die.
func (h *harness) moment(rng *rand.Rand, d *daemon) {
	h.t.Helper()
	within := early
	if rng.IntN(4) > 0 {
		within = later
		life := h.life
		h.await("work", working, func() bool { return h.book.hasWorked(life) })
	}
	select {
	case <-time.After(time.Duration(rng.Int64N(int64(within)))):
	case <-d.done:
		h.t.Fatalf("the daemon ended by itself: %v", d.err)
	}
}

// load pushes messages until it is told to stop.
func (h *harness) load(rng *rand.Rand) (stop func()) {
	end, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		began, pushed := time.Now(), 0
		for {
			for pushed < int(time.Since(began).Seconds()*float64(*rate)) {
				h.push(rng.IntN(conversations))
				pushed++
			}
			select {
			case <-tick.C:
			case <-end:
				return
			}
		}
	}()
	return func() {
		close(end)
		<-ended
	}
}

func hash(id message.ID) uint32 {
	f := fnv.New32a()
	_, _ = f.Write([]byte(id)) // never fails
	return f.Sum32()
}
