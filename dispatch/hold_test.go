package dispatch_test

import (
	"context"
	"errors"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/penstock-io/penstock/dispatch"
)

func TestHoldKeepsTheKeyAndNoSlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		type run struct {
			job, runs int
			at        time.Duration
		}
		var runs []run
		begin := time.Now()
		l := newLedger()
		d := make1(t, config{
			Workers: 1, Hooks: hooks{OnDone: l.done},
			Run: func(_ context.Context, t *task) outcome {
				runs = append(runs, run{t.Job, t.Runs, time.Since(begin)})
				if t.Job == 1 && t.Runs < 3 {
					return dispatch.Hold(time.Duration(t.Runs) * time.Minute)
				}
				return dispatch.Done()
			},
		})
		enqueue(t, d, "a", 1, 2)
		enqueue(t, d, "b", 11)
		synctest.Wait()
		s := d.Stats()
		require.Equal(t, [4]int{1, 1, 0, 0}, [4]int{s.Queued, s.Held, s.Running, s.Workers})
		require.Empty(t, l.jobs("a"))
		shutdown(t, d) // a drain waits for held jobs
		require.Equal(t, []run{
			{1, 1, 0},
			{11, 1, 0},
			{1, 2, time.Minute},
			{1, 3, 3 * time.Minute},
			{2, 1, 3 * time.Minute},
		}, runs)
		require.Equal(t, []int{1, 2}, l.jobs("a"))
	})
}

func TestHoldsEndInTheOrderOfTheirTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var again []int
		d := make1(t, config{Run: func(_ context.Context, t *task) outcome {
			if t.Runs == 1 {
				return dispatch.Hold(time.Duration(t.Job) * time.Second)
			}
			again = append(again, t.Job)
			return dispatch.Done()
		}})
		for _, job := range []int{3, 1, 4, 5, 9, 2, 6} {
			enqueue(t, d, string(rune('a'+job)), job)
		}
		synctest.Wait()
		require.Equal(t, 7, d.Stats().Held)
		shutdown(t, d)
		require.Equal(t, []int{1, 2, 3, 4, 5, 6, 9}, again)
	})
}

// A hold of no time gives the slot back, so that other keys have their turn.
func TestHoldOfNoTimeTakesATurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var order []int
		goOn := make(chan struct{})
		d := make1(t, config{Workers: 1, Run: func(_ context.Context, t *task) outcome {
			<-goOn
			order = append(order, t.Job)
			if t.Job == 1 && t.Runs < 3 {
				return dispatch.Hold(-time.Second)
			}
			return dispatch.Done()
		}})
		enqueue(t, d, "a", 1)
		enqueue(t, d, "b", 11)
		close(goOn)
		synctest.Wait()
		require.Equal(t, []int{1, 11, 1, 1}, order)
		shutdown(t, d)
	})
}

func TestWakeEndsEveryHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ran []string
		d, err := dispatch.New(dispatch.Config[string, string]{
			Workers: 1,
			Run: func(_ context.Context, task *dispatch.Task[string, string]) dispatch.Outcome {
				ran = append(ran, task.Key)
				if task.Runs == 1 {
					return dispatch.Hold(time.Hour)
				}
				return dispatch.Done()
			},
		})
		require.NoError(t, err)
		for _, key := range []string{"a", "b", "c"} {
			require.NoError(t, d.Enqueue(key, key))
		}
		synctest.Wait()
		d.Wake()
		began := time.Now()
		require.NoError(t, d.Shutdown(t.Context()))
		require.Zero(t, time.Since(began))
		require.ElementsMatch(t, []string{"a", "b", "c"}, ran[3:], "ties are broken at random")
		d.Wake() // harmless
	})
}

func TestHoldForEverEndsWithTheStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLedger()
		d := make1(t, config{
			Hooks: hooks{OnDone: l.done},
			Run:   func(context.Context, *task) outcome { return dispatch.Hold(math.MaxInt64) },
		})
		enqueue(t, d, "a", 1)
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		require.ErrorIs(t, d.Shutdown(ctx), context.DeadlineExceeded)
		require.False(t, d.DrainAndClose(ctx))
		require.True(t, l.only(t, 1).Abandoned)
		shutdown(t, d)
	})
}

func TestDetachHoldsTheKeyAndNoSlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, g := newLedger(), newGate()
		d := make1(t, config{Run: g.run, Workers: 1, Hooks: hooks{OnDone: l.done}})
		enqueue(t, d, "a", 1, 2)
		enqueue(t, d, "b", 11)
		g.end(1, dispatch.Detach())
		g.end(11, dispatch.Done())
		synctest.Wait()
		s := d.Stats()
		require.Equal(t, [4]int{1, 1, 0, 0}, [4]int{s.Queued, s.Detached, s.Running, s.Workers})
		require.ErrorIs(t, g.ctx(1).Err(), context.Canceled)
		elapse(time.Hour) // no deadline any more
		errLate := errors.New("late")
		first := g.task(1)
		first.Complete(dispatch.Detach())
		require.Equal(t, 1, d.Stats().Detached)
		first.Complete(dispatch.Failed(errLate))
		first.Complete(dispatch.Done())
		g.end(2, dispatch.Done())
		shutdown(t, d)
		r := l.only(t, 1)
		require.Equal(t, errLate, r.Err)
		require.Equal(t, time.Hour, r.Took)
		require.Equal(t, []int{1, 2}, l.jobs("a"))
	})
}

func TestCompleteBeforeTheRunReturns(t *testing.T) {
	l := newLedger()
	errFirst := errors.New("first")
	d := make1(t, config{
		Hooks: hooks{OnDone: l.done},
		Run: func(_ context.Context, t *task) outcome {
			t.Complete(dispatch.Failed(errFirst))
			t.Complete(dispatch.Done())
			if t.Job == 1 {
				return dispatch.Detach()
			}
			return dispatch.Done() // what the run returns counts
		},
	})
	enqueue(t, d, "a", 1, 2)
	shutdown(t, d)
	require.Equal(t, errFirst, l.only(t, 1).Err)
	require.NoError(t, l.only(t, 2).Err)
}

// A Complete that comes twice must not settle the run that follows a hold.
func TestCompleteOfAnEarlierRunSettlesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, g := newLedger(), newGate()
		d := make1(t, config{Run: g.run, Hooks: hooks{OnDone: l.done}})
		enqueue(t, d, "a", 1)
		g.end(1, dispatch.Detach())
		synctest.Wait()
		first := g.task(1)
		first.Complete(dispatch.Hold(time.Second))
		require.Equal(t, 1, d.Stats().Held)
		elapse(2 * time.Second)
		g.end(1, dispatch.Detach())
		synctest.Wait()
		first.Complete(dispatch.Done())
		require.Equal(t, 1, d.Stats().Detached)
		second := g.task(1)
		require.Equal(t, 2, second.Runs)
		second.Complete(dispatch.Done())
		shutdown(t, d)
		require.NoError(t, l.only(t, 1).Err)
	})
}

func TestCompleteFromAHook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, l := newGate(), newLedger()
		d := make1(t, config{Run: g.run, Hooks: hooks{OnDone: func(t *task, r result) {
			l.done(t, r)
			if t.Job == 11 {
				g.task(1).Complete(dispatch.Done())
			}
		}}})
		enqueue(t, d, "a", 1)
		enqueue(t, d, "b", 11)
		g.end(1, dispatch.Detach())
		synctest.Wait()
		g.end(11, dispatch.Done())
		shutdown(t, d)
		l.only(t, 1)
		l.only(t, 11)
	})
}
