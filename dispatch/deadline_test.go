package dispatch_test

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/penstock-io/penstock/dispatch"
)

type ctxKey struct{}

func TestContextEndsAtTheDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLedger()
		begin := time.Now()
		d := make1(t, config{
			Timeout: time.Minute, Hooks: hooks{OnDone: l.done},
			Run: func(ctx context.Context, _ *task) outcome {
				at, ok := ctx.Deadline()
				if !ok || !at.Equal(begin.Add(time.Minute)) || ctx.Err() != nil {
					return dispatch.Done()
				}
				<-ctx.Done()
				return dispatch.Failed(ctx.Err())
			},
		})
		enqueue(t, d, "a", 1)
		shutdown(t, d)
		require.ErrorIs(t, l.only(t, 1).Err, context.DeadlineExceeded)
		require.Equal(t, time.Minute, l.only(t, 1).Took)
		require.Zero(t, d.Stats().Overruns)
	})
}

// Each run has its whole time, however the runs before it have set the alarm.
func TestEveryRunHasItsOwnDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLedger()
		d := make1(t, config{
			Timeout: time.Minute, Hooks: hooks{OnDone: l.done},
			Run: func(ctx context.Context, t *task) outcome {
				if t.Job == 1 {
					elapse(50 * time.Second)
					return dispatch.Done()
				}
				<-ctx.Done()
				return dispatch.Failed(ctx.Err())
			},
		})
		enqueue(t, d, "a", 1, 2)
		elapse(10 * time.Second)
		enqueue(t, d, "b", 3)
		shutdown(t, d)
		require.Equal(t, 50*time.Second, l.only(t, 1).Took)
		require.Equal(t, time.Minute, l.only(t, 2).Took)
		require.Equal(t, time.Minute, l.only(t, 3).Took)
	})
}

func TestNegativeTimeoutMeansNone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := make1(t, config{Timeout: -1, Run: func(ctx context.Context, _ *task) outcome {
			_, ok := ctx.Deadline()
			elapse(24 * time.Hour)
			if ok || ctx.Err() != nil {
				panic("the context ended")
			}
			return dispatch.Done()
		}})
		enqueue(t, d, "a", 1)
		shutdown(t, d)
		require.Equal(t, uint64(1), d.Stats().Done)
	})
}

// The contexts that package context derives must end with the run's.
func TestDerivedContexts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var valued, timed, called context.Context
		fired := 0
		d := make1(t, config{Timeout: time.Minute, Run: func(ctx context.Context, _ *task) outcome {
			valued = context.WithValue(ctx, ctxKey{}, "v")
			var cancel, cancelCalled context.CancelFunc
			timed, cancel = context.WithTimeout(valued, time.Hour)
			defer cancel()
			called, cancelCalled = context.WithCancel(ctx)
			defer cancelCalled()
			context.AfterFunc(ctx, func() { fired++ })
			stop := context.AfterFunc(timed, func() { fired += 100 })
			if !stop() || stop() {
				panic("stop came in time")
			}
			for range 3 {
				_, c := context.WithCancel(ctx)
				c()
			}
			<-timed.Done()
			<-called.Done()
			return dispatch.Done()
		}})
		enqueue(t, d, "a", 1)
		shutdown(t, d)
		synctest.Wait()
		require.Equal(t, "v", valued.Value(ctxKey{}))
		require.Nil(t, timed.Value(t))
		require.ErrorIs(t, valued.Err(), context.DeadlineExceeded)
		require.ErrorIs(t, timed.Err(), context.DeadlineExceeded)
		require.ErrorIs(t, called.Err(), context.DeadlineExceeded)
		require.ErrorIs(t, context.Cause(called), context.DeadlineExceeded)
		require.Equal(t, 1, fired)
		at, _ := timed.Deadline()
		require.True(t, at.Equal(time.Now()))
	})
}

// A context made of the run's needs no goroutine that watches it.
func TestDerivedContextNeedsNoGoroutine(t *testing.T) {
	const children = 100
	d := make1(t, config{Run: func(ctx context.Context, _ *task) outcome {
		before := runtime.NumGoroutine()
		for range children {
			_, cancel := context.WithTimeout(ctx, time.Hour)
			defer cancel()
		}
		if runtime.NumGoroutine() >= before+children {
			return dispatch.Failed(errors.New("goroutines were started"))
		}
		return dispatch.Done()
	}})
	enqueue(t, d, "a", 1)
	shutdown(t, d)
	require.Zero(t, d.Stats().Failed)
}

// Derived contexts that are released early leave nothing behind, in any order.
func TestAfterFuncListForgets(t *testing.T) {
	type afterFuncer interface{ AfterFunc(func()) func() bool }
	synctest.Test(t, func(t *testing.T) {
		var calls []int
		d := make1(t, config{Run: func(ctx context.Context, _ *task) outcome {
			a := ctx.(afterFuncer)
			var stops []func() bool
			for i := range 6 {
				stops = append(stops, a.AfterFunc(func() { calls = append(calls, i) }))
			}
			for _, i := range []int{2, 0, 5} { // middle, last, first of the list
				if !stops[i]() || stops[i]() {
					panic("a function is taken off once")
				}
			}
			return dispatch.Done()
		}})
		enqueue(t, d, "a", 1)
		shutdown(t, d)
		require.ElementsMatch(t, []int{1, 3, 4}, calls)
	})
}

func TestContextIsOverWhenRunHasReturned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		type afterFuncer interface{ AfterFunc(func()) func() bool }
		var kept context.Context
		d := make1(t, config{Run: func(ctx context.Context, _ *task) outcome {
			kept = ctx
			return dispatch.Done()
		}})
		enqueue(t, d, "a", 1)
		shutdown(t, d)
		require.ErrorIs(t, kept.Err(), context.Canceled)
		<-kept.Done()
		called := false
		stop := kept.(afterFuncer).AfterFunc(func() { called = true })
		synctest.Wait()
		require.True(t, called)
		require.False(t, stop())
		elapse(time.Hour)
		require.ErrorIs(t, kept.Err(), context.Canceled)
	})
}

// A run that is held and comes again has a new context; the old one stays over.
func TestContextOfAnEarlierRunStaysOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate()
		d := make1(t, config{Run: g.run})
		enqueue(t, d, "a", 1)
		synctest.Wait()
		first := g.ctx(1)
		g.end(1, dispatch.Hold(time.Second))
		elapse(2 * time.Second)
		require.ErrorIs(t, first.Err(), context.Canceled)
		require.NoError(t, g.ctx(1).Err())
		g.end(1, dispatch.Done())
		shutdown(t, d)
	})
}

func TestStuckRunIsReportedAndReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var stuck []int // guarded by mu
		begin := time.Now()
		wantStuck := func(want ...int) {
			mu.Lock()
			defer mu.Unlock()
			require.Equal(t, want, stuck)
		}
		l, g := newLedger(), newGate()
		d := make1(t, config{
			Run: g.run, Workers: 1, Spares: 1, Timeout: time.Minute,
			Hooks: hooks{OnDone: l.done, OnStuck: func(t *task) {
				mu.Lock()
				defer mu.Unlock()
				stuck = append(stuck, t.Job, int(time.Since(begin).Seconds()))
			}},
		})
		enqueue(t, d, "a", 1, 2)
		enqueue(t, d, "b", 11)
		enqueue(t, d, "c", 21)
		elapse(time.Minute)
		synctest.Wait()
		require.ErrorIs(t, g.ctx(1).Err(), context.DeadlineExceeded)
		require.Equal(t, []int{1}, g.startedJobs())
		require.Zero(t, d.Stats().Overruns)
		elapse(time.Second)
		synctest.Wait()
		wantStuck(1, 61)
		require.Equal(t, []int{1, 11}, g.startedJobs(), "the slot is replaced, the key is held")
		require.Equal(t, 2, d.Stats().Workers)
		elapse(2 * time.Minute) // the spare is stuck as well, and there is no second spare
		synctest.Wait()
		wantStuck(1, 61, 11, 122)
		require.Equal(t, []int{1, 11}, g.startedJobs())
		require.Equal(t, 2, d.Stats().Stuck)
		g.end(1, dispatch.Done()) // one comes back and the ready keys go on
		synctest.Wait()
		require.Equal(t, []int{1, 11, 21}, g.startedJobs())
		g.end(11, dispatch.Done())
		g.end(21, dispatch.Done())
		g.end(2, dispatch.Done())
		shutdown(t, d)
		require.Equal(t, uint64(2), d.Stats().Overruns)
		require.NoError(t, l.only(t, 1).Err)
	})
}

func TestStuckRunsWithoutSparesKeepTheirSlots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate()
		d := make1(t, config{Run: g.run, Workers: 1, Spares: -1, Timeout: time.Minute})
		enqueue(t, d, "a", 1)
		enqueue(t, d, "b", 11)
		elapse(time.Hour)
		synctest.Wait()
		require.Equal(t, []int{1}, g.startedJobs())
		require.Equal(t, 1, d.Stats().Stuck)
		g.end(1, dispatch.Done())
		g.end(11, dispatch.Done())
		shutdown(t, d)
	})
}

// When a stuck run comes back while its spare works, there is one worker too many.
func TestStuckRunThatReturnsGivesWayToItsSpare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate()
		d := make1(t, config{Run: g.run, Workers: 1, Timeout: time.Minute})
		enqueue(t, d, "a", 1)
		elapse(time.Hour)
		enqueue(t, d, "b", 11)
		enqueue(t, d, "c", 21)
		synctest.Wait()
		require.Equal(t, 2, d.Stats().Workers)
		g.end(1, dispatch.Done())
		synctest.Wait()
		require.Equal(t, 1, d.Stats().Workers)
		require.Equal(t, []int{1, 11}, g.startedJobs())
		g.end(11, dispatch.Done())
		g.end(21, dispatch.Done())
		shutdown(t, d)
	})
}

// A slow terminal callback after the deadline is not a stuck run.
func TestSlowCallbackIsNotStuck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := make1(t, config{
			Timeout: time.Second, Run: instant,
			Hooks: hooks{OnDone: func(*task, result) { elapse(time.Minute) }},
		})
		enqueue(t, d, "a", 1)
		shutdown(t, d)
		require.Zero(t, d.Stats().Overruns)
	})
}
