package dispatch_test

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/penstock-io/penstock/dispatch"
)

func instant(context.Context, *task) outcome { return dispatch.Done() }

func TestJobsOfAKeyRunInOrderOneAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, g := newLedger(), newGate()
		d := make1(t, config{Run: g.run, Workers: 2, Hooks: hooks{OnDone: l.done}})
		enqueue(t, d, "a", 1, 2, 3)
		enqueue(t, d, "b", 11)
		synctest.Wait()
		require.ElementsMatch(t, []int{1, 11}, g.startedJobs())
		g.end(1, dispatch.Done())
		synctest.Wait()
		require.Equal(t, 2, g.startedJobs()[2])
		g.end(2, dispatch.Failed(errors.New("no")))
		g.end(3, dispatch.Done())
		g.end(11, dispatch.Done())
		shutdown(t, d)
		require.Equal(t, []int{1, 2, 3}, l.jobs("a"))
		require.Equal(t, []int{11}, l.jobs("b"))
	})
}

func TestKeysTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate()
		d := make1(t, config{Run: g.run, Workers: 1})
		enqueue(t, d, "busy", 1, 2, 3)
		enqueue(t, d, "quiet", 11)
		enqueue(t, d, "other", 21)
		for _, job := range []int{1, 11, 21, 2, 3} {
			g.end(job, dispatch.Done())
		}
		shutdown(t, d)
		require.Equal(t, []int{1, 11, 21, 2, 3}, g.startedJobs())
	})
}

func TestWorkersBoundTheGoroutines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate()
		d := make1(t, config{Run: g.run, Workers: 3})
		for job := range 10 {
			enqueue(t, d, string(rune('a'+job)), job)
		}
		synctest.Wait()
		s := d.Stats()
		require.Equal(t, 3, s.Workers)
		require.Equal(t, 3, s.Running)
		require.Equal(t, 7, s.Queued)
		require.Equal(t, 10, s.Keys)
		for job := range 10 {
			g.end(job, dispatch.Done())
		}
		shutdown(t, d)
	})
}

func TestEnqueueRefusesWithTheReason(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		type refusal struct {
			key string
			job int
			err error
		}
		var refused []refusal
		g := newGate()
		d := make1(t, config{
			Run: g.run, Workers: 1, PerKey: 2, Pending: 4,
			Hooks: hooks{OnRejected: func(key string, job int, err error) {
				refused = append(refused, refusal{key, job, err})
			}},
		})
		enqueue(t, d, "a", 1, 2)
		require.ErrorIs(t, d.Enqueue("a", 3), dispatch.ErrKeyFull)
		enqueue(t, d, "b", 11)
		enqueue(t, d, "c", 21)
		require.ErrorIs(t, d.Enqueue("d", 31), dispatch.ErrFull)
		d.Close()
		require.ErrorIs(t, d.Enqueue("e", 41), dispatch.ErrClosed)
		require.Equal(t, []refusal{
			{"a", 3, dispatch.ErrKeyFull},
			{"d", 31, dispatch.ErrFull},
			{"e", 41, dispatch.ErrClosed},
		}, refused)
		s := d.Stats()
		require.Equal(t, [3]uint64{1, 1, 1},
			[3]uint64{s.RejectedClosed, s.RejectedKeyFull, s.RejectedFull})
		for _, job := range []int{1, 11, 21, 2} {
			g.end(job, dispatch.Done())
		}
		shutdown(t, d)
	})
}

// A key above its share may not take the reserve; a quiet one may, up to the last
// place.
func TestBusyKeyIsRefusedBeforeQuietOnes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate()
		d := make1(t, config{Run: g.run, Workers: 1, PerKey: 100, Pending: 16})
		enqueue(t, d, "quiet", 100)
		synctest.Wait()
		job := 0
		for ; job < 13; job++ {
			enqueue(t, d, "busy", job)
		}
		require.ErrorIs(t, d.Enqueue("busy", 13), dispatch.ErrFull)
		enqueue(t, d, "new", 200)
		enqueue(t, d, "quiet", 101)
		require.ErrorIs(t, d.Enqueue("quiet", 102), dispatch.ErrFull)
		require.Equal(t, 16, d.Stats().Queued+d.Stats().Running)
		d.Kill()
		g.end(100, dispatch.Done())
		shutdown(t, d)
	})
}

func TestLoneKeyMayUseEverything(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate()
		d := make1(t, config{Run: g.run, PerKey: 100, Pending: 1})
		enqueue(t, d, "a", 1)
		require.ErrorIs(t, d.Enqueue("a", 2), dispatch.ErrFull)
		g.end(1, dispatch.Done())
		shutdown(t, d)
	})
}

func TestFailureAndPanicEndTheirJobOnly(t *testing.T) {
	l := newLedger()
	errJob := errors.New("job failed")
	d := make1(t, config{
		Hooks: hooks{OnDone: l.done},
		Run: func(_ context.Context, t *task) outcome {
			switch t.Job {
			case 1:
				return dispatch.Failed(errJob)
			case 2:
				panic(errJob)
			case 3:
				runtime.Goexit()
			case 4:
				return dispatch.Failed(nil)
			}
			return dispatch.Done()
		},
	})
	enqueue(t, d, "a", 1, 2, 3, 4, 5)
	shutdown(t, d)
	require.Equal(t, errJob, l.only(t, 1).Err)
	var p *dispatch.PanicError
	require.ErrorAs(t, l.only(t, 2).Err, &p)
	require.ErrorIs(t, p, errJob)
	require.Contains(t, string(p.Stack), "dispatch_test.go")
	require.Equal(t, "dispatch: job panicked: job failed", p.Error())
	require.NoError(t, (&dispatch.PanicError{Value: "text"}).Unwrap())
	require.ErrorIs(t, l.only(t, 3).Err, dispatch.ErrExited)
	require.NoError(t, l.only(t, 4).Err)
	require.NoError(t, l.only(t, 5).Err)
	require.Equal(t, []int{1, 2, 3, 4, 5}, l.jobs("a"))
	s := d.Stats()
	require.Equal(t, [3]uint64{2, 3, 1}, [3]uint64{s.Done, s.Failed, s.Panics})
}

func TestPanicInHookIsContained(t *testing.T) {
	d := make1(t, config{Run: instant, PerKey: 1, Hooks: hooks{
		OnQueued:   func(*task) { panic("queued") },
		OnStart:    func(*task) { panic("start") },
		OnDone:     func(*task, result) { panic("done") },
		OnFreed:    func(string) { panic("freed") },
		OnRejected: func(string, int, error) { panic("rejected") },
	}})
	enqueue(t, d, "a", 1)
	require.NoError(t, d.Drain(t.Context()))
	shutdown(t, d)
	require.ErrorIs(t, d.Enqueue("a", 2), dispatch.ErrClosed)
	require.Equal(t, uint64(5), d.Stats().Panics)
	require.Equal(t, uint64(1), d.Stats().Done)
}

func TestHooksInTheirOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var seen []string
		note := func(s string) { seen = append(seen, s) }
		d := make1(t, config{
			Workers: 1,
			Run: func(context.Context, *task) outcome {
				note("run")
				return dispatch.Done()
			},
			Hooks: hooks{
				OnStart: func(*task) { note("start") },
				OnDone:  func(*task, result) { note("done") },
				OnFreed: func(key string) { note("freed " + key) },
			},
		})
		enqueue(t, d, "a", 1, 2)
		synctest.Wait()
		require.Equal(t, []string{
			"start", "run", "done", "freed a", "start", "run", "done", "freed a",
		}, seen)
		shutdown(t, d)
	})
}

// OnFreed is where a caller refills from its store, so the place has to be there.
func TestOnFreedMayUseThePlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, backlog := newLedger(), []int{2, 3, 4}
		var d *dispatcher
		d = make1(t, config{Run: instant, Workers: 1, PerKey: 1, Pending: 1, Hooks: hooks{
			OnDone: l.done,
			OnFreed: func(key string) {
				if len(backlog) > 0 && d.Enqueue(key, backlog[0]) == nil {
					backlog = backlog[1:]
				}
			},
		}})
		enqueue(t, d, "a", 1)
		synctest.Wait()
		shutdown(t, d)
		require.Equal(t, []int{1, 2, 3, 4}, l.jobs("a"))
		require.Zero(t, d.Stats().RejectedFull+d.Stats().RejectedKeyFull)
	})
}

func TestResultTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLedger()
		d := make1(t, config{
			Workers: 1, Hooks: hooks{OnDone: l.done},
			Run: func(_ context.Context, t *task) outcome {
				elapse(time.Second)
				if t.Job == 3 && t.Runs == 1 {
					return dispatch.Hold(time.Hour)
				}
				return dispatch.Done()
			},
		})
		enqueue(t, d, "a", 1, 2)
		enqueue(t, d, "b", 3)
		shutdown(t, d)
		require.Equal(t, result{Took: time.Second}, l.only(t, 1))
		require.Equal(t, result{Wait: 2 * time.Second, Took: time.Second}, l.only(t, 2))
		require.Equal(t, result{Took: time.Second}, l.only(t, 3))
	})
}

func TestUnhashableKeyLeavesTheDispatcherUsable(t *testing.T) {
	d, err := dispatch.New(dispatch.Config[any, int]{
		Run: func(context.Context, *dispatch.Task[any, int]) outcome { return dispatch.Done() },
	})
	require.NoError(t, err)
	require.Panics(t, func() { _ = d.Enqueue([]int{1}, 1) })
	require.NoError(t, d.Enqueue("a", 2))
	require.NoError(t, d.Shutdown(t.Context()))
	require.Equal(t, uint64(1), d.Stats().Done)
}
