package dispatch_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/penstock-io/penstock/dispatch"
)

// turns is how often a race is tried.
const turns = 300

// A worker that finds nothing and ends, while a job comes: the job must not be left
// lying, and the key must not get a second queue.
func TestRaceWorkerExitAgainstEnqueue(t *testing.T) {
	var inside atomic.Int32
	handled := make(chan int)
	d := make1(t, config{Workers: 4, Run: func(_ context.Context, t *task) outcome {
		if inside.Add(1) != 1 {
			panic("two runs of one key")
		}
		defer inside.Add(-1)
		handled <- t.Job
		return dispatch.Done()
	}})
	for job := range turns {
		enqueue(t, d, "a", job) // the worker of the job before is about to end
		require.Equal(t, job, <-handled)
	}
	shutdown(t, d)
	require.Zero(t, d.Stats().Panics)
}

// What Enqueue takes while Shutdown begins is run before Shutdown returns, and
// nothing is taken after.
func TestRaceEnqueueAgainstShutdown(t *testing.T) {
	for range turns {
		var ran atomic.Uint64
		d := make1(t, config{Run: func(context.Context, *task) outcome {
			ran.Add(1)
			return dispatch.Done()
		}})
		var taken atomic.Uint64
		var producers sync.WaitGroup
		for _, key := range []string{"a", "b"} {
			producers.Go(func() {
				for job := 0; job < 50 && d.Enqueue(key, job) == nil; job++ {
					taken.Add(1)
				}
			})
		}
		require.NoError(t, d.Shutdown(t.Context()))
		atReturn := ran.Load()
		require.ErrorIs(t, d.Enqueue("c", 0), dispatch.ErrClosed)
		producers.Wait()
		require.Equal(t, taken.Load(), ran.Load())
		require.Equal(t, atReturn, ran.Load(), "a job ran after Shutdown had returned")
	}
}

// A worker that is started while somebody waits for the last one: the wait must see
// both or neither, for one that is missed runs on after the wait.
func TestRaceWorkerStartAgainstDrain(t *testing.T) {
	for range turns {
		d := make1(t, config{Run: instant})
		var waiters sync.WaitGroup
		for range 2 {
			waiters.Go(func() { _ = d.Drain(context.Background()) })
		}
		waiters.Go(func() { _ = d.Enqueue("a", 1) })
		waiters.Go(func() { _ = d.Enqueue("b", 1) })
		waiters.Wait()
		shutdown(t, d)
		require.Equal(t, uint64(2), d.Stats().Done)
	}
}

// Keys that are ready and wait for a slot must not be stranded by a kill, nor the
// worker that is on the way to them.
func TestRaceKillAgainstReadyKeys(t *testing.T) {
	for range turns {
		l := newLedger()
		d := make1(t, config{Workers: 2, Run: instant, Hooks: hooks{OnDone: l.done}})
		var taken atomic.Int32
		var producers sync.WaitGroup
		producers.Go(func() {
			for job := range 20 {
				if d.Enqueue(string(rune('a'+job)), job) == nil {
					taken.Add(1)
				}
			}
		})
		d.Kill()
		producers.Wait()
		shutdown(t, d)
		for job := range int(taken.Load()) {
			l.only(t, job)
		}
	}
}

// Every hook calls back into the dispatcher.
func TestRaceHooksThatReenter(t *testing.T) {
	var d *dispatcher
	again := func(key string, job int) {
		if job < 5 {
			_ = d.Enqueue(key, job+1)
		}
		_ = d.Stats()
		_ = d.Unfinished()
	}
	var done sync.WaitGroup
	done.Add(1)
	d = make1(t, config{PerKey: 2, Run: instant, Hooks: hooks{
		OnQueued:   func(t *task) { again("q"+t.Key[:1], t.Job) },
		OnStart:    func(t *task) { again("s"+t.Key[:1], t.Job) },
		OnRejected: func(string, int, error) { _ = d.Stats() },
		OnFreed:    func(string) { _ = d.Stats() },
		OnDone: func(t *task, _ result) {
			if t.Key == "last" {
				d.Close()
				d.Kill()
				done.Done()
				return
			}
			again("d"+t.Key[:1], t.Job)
		},
	}})
	enqueue(t, d, "a", 1)
	require.NoError(t, d.Drain(t.Context()))
	enqueue(t, d, "last", 9)
	done.Wait()
	require.NoError(t, d.Shutdown(t.Context()))
	s := d.Stats()
	require.Equal(t, s.Enqueued, s.Done+s.Abandoned)
	require.Greater(t, s.Done, uint64(2))
}

// A detached job is completed while a stop gives it up: one of them settles it.
func TestRaceCompleteAgainstStops(t *testing.T) {
	stops := []func(*dispatcher){
		func(d *dispatcher) { d.Kill() },
		func(d *dispatcher) { d.DrainAndClose(ended()) },
	}
	outcomes := []outcome{dispatch.Done(), dispatch.Hold(0), dispatch.Hold(time.Hour)}
	for i := range turns {
		l := newLedger()
		parted := make(chan *task, 3)
		d := make1(t, config{
			Hooks: hooks{OnDone: l.done},
			Run: func(_ context.Context, t *task) outcome {
				parted <- t
				return dispatch.Detach()
			},
		})
		enqueue(t, d, "a", 1, 2)
		first := <-parted
		var callers sync.WaitGroup
		callers.Go(func() { first.Complete(outcomes[i%3]) })
		callers.Go(func() { first.Complete(outcomes[i%3]) })
		callers.Go(func() { stops[i%2](d) })
		callers.Wait()
		d.DrainAndClose(ended()) // a second run, after a hold, has detached itself
		shutdown(t, d)
		l.only(t, 1)
		l.only(t, 2)
	}
}

// The job is settled after its run has returned Detach and before the worker has
// noted it. A function that the end of the context calls stands in that gap.
func TestRaceSettledBetweenDetachAndItsNote(t *testing.T) {
	type afterFuncer interface{ AfterFunc(func()) func() bool }
	for name, settle := range map[string]func(*dispatcher, *task){
		"complete": func(_ *dispatcher, t *task) { t.Complete(dispatch.Done()) },
		"hold":     func(_ *dispatcher, t *task) { t.Complete(dispatch.Hold(time.Second)) },
		"kill":     func(d *dispatcher, _ *task) { d.Kill() },
		"give up":  func(d *dispatcher, _ *task) { d.DrainAndClose(ended()) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var d *dispatcher
				l := newLedger()
				goOn := make(chan struct{})
				d = make1(t, config{
					Hooks: hooks{OnDone: l.done},
					Run: func(ctx context.Context, t *task) outcome {
						<-goOn
						if t.Runs > 1 || t.Job > 1 {
							return dispatch.Done()
						}
						ctx.(afterFuncer).AfterFunc(func() { settle(d, t) })
						return dispatch.Detach()
					},
				})
				enqueue(t, d, "a", 1, 2)
				close(goOn)
				synctest.Wait()
				if name == "kill" {
					require.Equal(t, 1, d.Stats().Detached)
					d.Unfinished()[0].Complete(dispatch.Done())
				}
				shutdown(t, d)
				l.only(t, 1)
				l.only(t, 2)
			})
		})
	}
}

// The run returns at the moment at which it is given up.
func TestRaceReturnAgainstDrainAndClose(t *testing.T) {
	outcomes := []outcome{
		dispatch.Done(), dispatch.Hold(0), dispatch.Hold(time.Hour), dispatch.Detach(),
	}
	for i := range turns {
		l := newLedger()
		begun, goOn := make(chan struct{}), make(chan struct{})
		d := make1(t, config{
			Hooks: hooks{OnDone: l.done},
			Run: func(context.Context, *task) outcome {
				close(begun)
				<-goOn
				return outcomes[i%len(outcomes)]
			},
		})
		enqueue(t, d, "a", 1, 2)
		<-begun
		var callers sync.WaitGroup
		callers.Go(func() { close(goOn) })
		callers.Go(func() { d.DrainAndClose(ended()) })
		callers.Wait()
		d.DrainAndClose(ended())
		shutdown(t, d)
		l.only(t, 1)
		l.only(t, 2)
	}
}

// A slot that is replaced while its run returns: never more workers than slots, and
// no ready key forgotten.
func TestRaceStuckReturnAgainstReplacement(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := make1(t, config{
			Workers: 2, Spares: 1, Timeout: time.Second,
			Run: func(_ context.Context, t *task) outcome {
				elapse(time.Duration(t.Job%4) * time.Second) // 2 s is when it gets stuck
				return dispatch.Done()
			},
		})
		for job := range 64 {
			enqueue(t, d, string(rune('a'+job%8)), job)
		}
		watch := time.NewTicker(100 * time.Millisecond)
		defer watch.Stop()
		for d.Stats().Done < 64 {
			<-watch.C
			synctest.Wait()
			s := d.Stats()
			limit := 2 + min(s.Stuck, 1)
			require.LessOrEqual(t, s.Workers, limit)
			ready := s.Keys - s.Running
			require.True(t, ready == 0 || s.Workers == limit, "a ready key is forgotten: %+v", s)
		}
		shutdown(t, d)
		require.NotZero(t, d.Stats().Overruns)
	})
}

// Panics and ended goroutines, from many keys at once, cost no slot.
func TestRacePanicsKeepTheSlots(t *testing.T) {
	d := make1(t, config{Workers: 2, PerKey: 1000, Run: func(_ context.Context, t *task) outcome {
		if t.Job%2 == 0 {
			panic(t.Job)
		}
		return dispatch.Done()
	}})
	for job := range turns {
		enqueue(t, d, string(rune('a'+job%7)), job)
	}
	shutdown(t, d)
	require.Equal(t, uint64(turns/2), d.Stats().Failed)
	require.Equal(t, uint64(turns/2), d.Stats().Done)
}
