package dispatch_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/penstock-io/penstock/dispatch"
)

func TestShutdownRunsWhatIsQueued(t *testing.T) {
	l := newLedger()
	d := make1(t, config{Run: instant, Hooks: hooks{OnDone: l.done}})
	enqueue(t, d, "a", 1, 2, 3)
	shutdown(t, d)
	require.Equal(t, []int{1, 2, 3}, l.jobs("a"))
	require.ErrorIs(t, d.Enqueue("a", 4), dispatch.ErrClosed)
}

func TestDrainEndsWithItsContextAndChangesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate()
		d := make1(t, config{Run: g.run})
		require.NoError(t, d.Drain(ended()), "nothing to wait for")
		enqueue(t, d, "a", 1)
		require.ErrorIs(t, d.Drain(ended()), context.Canceled)
		enqueue(t, d, "a", 2)
		g.end(1, dispatch.Done())
		g.end(2, dispatch.Done())
		require.NoError(t, d.Drain(t.Context()))
		enqueue(t, d, "a", 3)
		g.end(3, dispatch.Done())
		shutdown(t, d)
		require.Equal(t, uint64(3), d.Stats().Done)
	})
}

func TestKillAbandonsWhatWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, g := newLedger(), newGate()
		d := make1(t, config{Run: g.run, Workers: 2, Hooks: hooks{OnDone: l.done}})
		enqueue(t, d, "held", 1, 2)
		g.end(1, dispatch.Hold(time.Hour))
		enqueue(t, d, "parted", 11, 12)
		g.end(11, dispatch.Detach())
		enqueue(t, d, "running", 21, 22, 23)
		enqueue(t, d, "again", 31)
		synctest.Wait()
		enqueue(t, d, "queued", 41, 42)
		elapse(time.Second)
		d.Kill()
		for _, job := range []int{1, 2, 12, 22, 23, 41, 42} {
			require.True(t, l.only(t, job).Abandoned)
			require.ErrorIs(t, l.only(t, job).Err, dispatch.ErrAbandoned)
		}
		require.Equal(t, result{Err: dispatch.ErrAbandoned, Abandoned: true, Wait: time.Second},
			l.only(t, 41))
		require.ErrorIs(t, g.ctx(21).Err(), context.Canceled)
		require.Len(t, d.Unfinished(), 3)
		d.Kill()
		g.end(21, dispatch.Done())
		g.end(31, dispatch.Hold(time.Second))
		g.task(11).Complete(dispatch.Failed(context.Canceled))
		shutdown(t, d)
		require.NoError(t, l.only(t, 21).Err)
		require.True(t, l.only(t, 31).Abandoned, "it would have run again")
		require.ErrorIs(t, l.only(t, 11).Err, context.Canceled)
		require.Equal(t, []int{41, 42}, l.jobs("queued"))
	})
}

func TestDrainAndCloseGivesUpAtItsDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, g := newLedger(), newGate()
		d := make1(t, config{Run: g.run, Workers: 2, Hooks: hooks{OnDone: l.done}})
		enqueue(t, d, "parted", 11)
		g.end(11, dispatch.Detach())
		enqueue(t, d, "deaf", 1, 2)
		enqueue(t, d, "holding", 21)
		synctest.Wait()
		begin := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 15*time.Second)
		defer cancel()
		require.False(t, d.DrainAndClose(ctx))
		require.Equal(t, 15*time.Second, time.Since(begin))
		for _, job := range []int{1, 2, 11, 21} {
			require.True(t, l.only(t, job).Abandoned)
		}
		require.Equal(t, 15*time.Second, l.only(t, 1).Took)
		require.Empty(t, d.Unfinished())
		require.Zero(t, d.Stats().Keys)
		require.ErrorIs(t, d.Drain(ended()), context.Canceled, "two runs go on")
		require.ErrorIs(t, d.Enqueue("deaf", 3), dispatch.ErrClosed)
		g.end(1, dispatch.Done()) // what comes late is ignored
		g.end(21, dispatch.Hold(time.Second))
		g.task(11).Complete(dispatch.Done())
		shutdown(t, d)
		for _, job := range []int{1, 2, 11, 21} {
			l.only(t, job)
		}
		require.Equal(t, uint64(4), d.Stats().Abandoned)
	})
}

func TestDrainAndCloseIsTrueWhenDrained(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := make1(t, config{Run: func(context.Context, *task) outcome {
			elapse(time.Second)
			return dispatch.Done()
		}})
		enqueue(t, d, "a", 1, 2)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		require.True(t, d.DrainAndClose(ctx))
		require.True(t, d.DrainAndClose(ended()))
		shutdown(t, d)
	})
}

// A run that heeds its context may settle itself, when it is killed and waited for.
func TestKillThenDrainLetsRunsEnd(t *testing.T) {
	l := newLedger()
	begun := make(chan struct{})
	d := make1(t, config{
		Hooks: hooks{OnDone: l.done},
		Run: func(ctx context.Context, _ *task) outcome {
			close(begun)
			<-ctx.Done()
			return dispatch.Failed(ctx.Err())
		},
	})
	enqueue(t, d, "a", 1)
	<-begun
	d.Kill()
	shutdown(t, d)
	require.Equal(t, result{Err: context.Canceled}.Err, l.only(t, 1).Err)
	require.False(t, l.only(t, 1).Abandoned)
}

// Every order of two stops, before and during work, with callers at once.
func TestStopsInAnyOrderByAnyNumber(t *testing.T) {
	stops := map[string]func(*dispatcher, context.Context){
		"Close":         func(d *dispatcher, _ context.Context) { d.Close() },
		"Drain":         func(d *dispatcher, ctx context.Context) { _ = d.Drain(ctx) },
		"Shutdown":      func(d *dispatcher, ctx context.Context) { _ = d.Shutdown(ctx) },
		"Kill":          func(d *dispatcher, _ context.Context) { d.Kill() },
		"DrainAndClose": func(d *dispatcher, ctx context.Context) { d.DrainAndClose(ctx) },
	}
	for first, stopFirst := range stops {
		for second, stopSecond := range stops {
			t.Run(first+" "+second, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					stopTwice(t, stopFirst, stopSecond)
				})
			})
		}
	}
}

func stopTwice(t *testing.T, first, second func(*dispatcher, context.Context)) {
	for _, jobs := range []int{0, 5} {
		l := newLedger()
		d := make1(t, config{
			Workers: 2, Hooks: hooks{OnDone: l.done},
			Run: func(context.Context, *task) outcome {
				elapse(time.Second)
				return dispatch.Done()
			},
		})
		for job := range jobs {
			enqueue(t, d, "a", job)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 2500*time.Millisecond)
		var callers sync.WaitGroup
		for range 3 {
			callers.Go(func() { first(d, ctx) })
			callers.Go(func() { second(d, ctx) })
		}
		callers.Wait()
		cancel()
		shutdown(t, d)
		require.Equal(t, uint64(jobs), d.Stats().Enqueued)
		for job := range jobs {
			l.only(t, job)
		}
	}
}

func TestUnfinishedListsTheJobsOfAKeyInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate()
		d := make1(t, config{Run: g.run, Workers: 1})
		enqueue(t, d, "a", 1, 2, 3)
		synctest.Wait()
		var jobs []int
		for _, u := range d.Unfinished() {
			require.Equal(t, "a", u.Key)
			jobs = append(jobs, u.Job)
		}
		require.Equal(t, []int{1, 2, 3}, jobs)
		d.Kill()
		g.end(1, dispatch.Done())
		shutdown(t, d)
		require.Empty(t, d.Unfinished())
	})
}
