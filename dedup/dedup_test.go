package dedup_test

import (
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/penstock-io/penstock/dedup"
)

func open(t testing.TB, cfg dedup.Config) *dedup.Window[string] {
	t.Helper()
	w, err := dedup.New[string](cfg)
	require.NoError(t, err)
	return w
}

func TestConfig(t *testing.T) {
	for field, cfg := range map[string]dedup.Config{
		"Window":  {Window: -1},
		"Max":     {Max: -1},
		"Waiters": {Waiters: -1},
	} {
		_, err := dedup.New[string](cfg)
		require.ErrorContains(t, err, field)
	}
}

func TestClaimCommitRelease(t *testing.T) {
	w := open(t, dedup.Config{})
	require.Equal(t, dedup.Fresh, w.Claim("a"))
	require.Equal(t, dedup.InFlight, w.Claim("a"))
	w.Release("a")
	require.Equal(t, dedup.Fresh, w.Claim("a"), "a released id is fresh again")
	w.Commit("a")
	require.Equal(t, dedup.Seen, w.Claim("a"))
	w.Release("a")
	require.Equal(t, dedup.Seen, w.Claim("a"), "a commit cannot be released")
	require.Equal(t, 1, w.Len())
}

func TestEndingWhatNobodyOwns(t *testing.T) {
	w := open(t, dedup.Config{})
	w.Commit("a")
	w.Release("a")
	require.Equal(t, dedup.Stats{}, w.Stats())
	require.Equal(t, dedup.Fresh, w.Claim("a"))
}

func TestStateString(t *testing.T) {
	require.Equal(t, "seen", dedup.Seen.String())
	require.Equal(t, "state(9)", dedup.State(9).String())
}

func TestWindowIsExact(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := open(t, dedup.Config{Window: time.Hour})
		w.Claim("a")
		<-time.After(2 * time.Hour)
		require.Equal(t, dedup.InFlight, w.Claim("a"), "claims do not expire")
		w.Commit("a")
		<-time.After(time.Hour - 1)
		require.Equal(t, dedup.Seen, w.Claim("a"), "the window starts with the commit")
		<-time.After(1)
		require.Equal(t, dedup.Fresh, w.Claim("a"))
		w.Commit("a")
		<-time.After(time.Hour - 1)
		require.Equal(t, dedup.Seen, w.Claim("a"), "the first commit's end is not the second's")
	})
}

func TestExpiredIDsAreClearedInPassing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const many = 10_000
		w := open(t, dedup.Config{Window: time.Hour})
		for i := range many {
			w.Claim(strconv.Itoa(i))
			w.Commit(strconv.Itoa(i))
		}
		require.Equal(t, many, w.Len())
		<-time.After(time.Hour)
		for i := range many {
			w.Claim("late" + strconv.Itoa(i))
			w.Release("late" + strconv.Itoa(i))
		}
		require.Zero(t, w.Len())
		require.Zero(t, w.Stats().Evicted, "expired ids are not evicted")
	})
}

func TestMaxEvictsTheOldestCommit(t *testing.T) {
	w := open(t, dedup.Config{Max: 2})
	require.Equal(t, dedup.Fresh, w.Claim("claimed first"))
	for _, k := range []string{"a", "b", "c"} {
		w.Claim(k)
		w.Commit(k)
	}
	require.Equal(t, dedup.Stats{InFlight: 1, Held: 2, Evicted: 1}, w.Stats())
	require.Equal(t, dedup.InFlight, w.Claim("claimed first"))
	require.Equal(t, dedup.Seen, w.Claim("b"))
	require.Equal(t, dedup.Seen, w.Claim("c"))
	require.Equal(t, dedup.Fresh, w.Claim("a"))
}

func TestJoinTellsEveryWaiterOnceInOrder(t *testing.T) {
	for _, committed := range []bool{true, false} {
		w := open(t, dedup.Config{})
		var told []string
		waiter := func(name string) func(bool) {
			return func(ok bool) { told = append(told, fmt.Sprint(name, ok)) }
		}
		require.Equal(t, dedup.Fresh, w.Join("a", waiter("owner")))
		require.Equal(t, dedup.InFlight, w.Join("a", waiter("x")))
		require.Equal(t, dedup.InFlight, w.Join("a", waiter("y")))
		require.Empty(t, told)
		if committed {
			w.Commit("a")
		} else {
			w.Release("a")
		}
		w.Commit("a")
		w.Release("a")
		require.Equal(t, []string{fmt.Sprint("x", committed), fmt.Sprint("y", committed)}, told)
	}
}

func TestJoinOfSeenCallsNobody(t *testing.T) {
	w := open(t, dedup.Config{})
	w.Claim("a")
	w.Commit("a")
	require.Equal(t, dedup.Seen, w.Join("a", func(bool) { t.Error("called") }))
}

func TestJoinIsBounded(t *testing.T) {
	w := open(t, dedup.Config{Waiters: 1})
	var first, second []bool
	w.Claim("a")
	w.Join("a", func(ok bool) { first = append(first, ok) })
	require.Equal(t, dedup.InFlight, w.Join("a", func(ok bool) { second = append(second, ok) }))
	require.Equal(t, []bool{false}, second, "told at once")
	w.Commit("a")
	require.Equal(t, []bool{true}, first)
	require.Equal(t, []bool{false}, second)
	require.Equal(t, uint64(1), w.Stats().Crowded)
}

func TestWaiterMayCallTheWindow(t *testing.T) {
	w := open(t, dedup.Config{})
	w.Claim("a")
	var state dedup.State
	w.Join("a", func(bool) { state = w.Claim("a") })
	w.Release("a")
	require.Equal(t, dedup.Fresh, state, "the waiter takes over")
	require.Equal(t, dedup.InFlight, w.Claim("a"))
}

func TestWaiterThatPanicsDoesNotSilenceTheOthers(t *testing.T) {
	w := open(t, dedup.Config{})
	w.Claim("a")
	told := false
	w.Join("a", func(bool) { panic("waiter") })
	w.Join("a", func(ok bool) { told = ok })
	require.PanicsWithValue(t, "waiter", func() { w.Commit("a") })
	require.True(t, told)
	require.Equal(t, dedup.Seen, w.Claim("a"))
}

// TestStress lets many goroutines fight for few ids: there is one owner at a
// time, and each waiter is told once.
func TestStress(t *testing.T) {
	const goroutines, rounds, keys = 8, 2_000, 16
	w := open(t, dedup.Config{Max: 8, Waiters: 4})
	var owners [keys]atomic.Int32
	var joined, told atomic.Int64
	var wg sync.WaitGroup
	for g := range goroutines {
		wg.Go(func() {
			for i := range rounds {
				n := (i*7 + g) % keys
				k := strconv.Itoa(n)
				switch w.Join(k, func(bool) { told.Add(1) }) {
				case dedup.InFlight:
					joined.Add(1)
				case dedup.Fresh:
					if owners[n].Add(1) != 1 {
						t.Error("two owners")
					}
					owners[n].Add(-1)
					if i%2 == 0 {
						w.Commit(k)
					} else {
						w.Release(k)
					}
				}
			}
		})
	}
	wg.Wait()
	require.Equal(t, joined.Load(), told.Load())
	require.Zero(t, w.Stats().InFlight)
	require.LessOrEqual(t, w.Len(), 8)
}

func TestSteadyUseAllocatesNothing(t *testing.T) {
	w, err := dedup.New[int](dedup.Config{Max: 1024})
	require.NoError(t, err)
	n := 0
	use := func() {
		n++
		w.Claim(n)
		w.Commit(n)
	}
	for range 10_000 {
		use()
	}
	require.Zero(t, testing.AllocsPerRun(2_000, use))
}
