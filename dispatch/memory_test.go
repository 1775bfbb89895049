package dispatch_test

import (
	"context"
	"runtime"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/penstock-io/penstock/dispatch"
)

// A finished job must be collectable while later jobs of its key still wait, also when
// somebody keeps the Task before it.
func TestFinishedJobIsUnreachable(t *testing.T) {
	type big [1 << 16]byte
	collected := make(chan struct{})
	var kept *dispatch.Task[string, *big]
	second, goOn := make(chan struct{}), make(chan struct{})
	d, err := dispatch.New(dispatch.Config[string, *big]{
		Workers: 1,
		Run: func(_ context.Context, t *dispatch.Task[string, *big]) outcome {
			switch {
			case t.Job != nil:
			case kept == nil:
				kept = t
			default:
				close(second)
				<-goOn
			}
			return dispatch.Done()
		},
	})
	require.NoError(t, err)
	require.NoError(t, d.Enqueue("a", nil))
	func() {
		job := &big{}
		runtime.AddCleanup(job, func(c chan struct{}) { close(c) }, collected)
		require.NoError(t, d.Enqueue("a", job))
	}()
	require.NoError(t, d.Enqueue("a", nil))
	<-second
	require.Eventually(t, func() bool {
		runtime.GC()
		select {
		case <-collected:
			return true
		default:
			return false
		}
	}, 10*time.Second, time.Millisecond)
	close(goOn)
	require.NoError(t, d.Shutdown(t.Context()))
	runtime.KeepAlive(kept)
}

// The memory of a burst of keys comes back after a lull, or at once with a stop.
func TestBurstGivesItsMemoryBack(t *testing.T) {
	const keys = 10_000
	for name, rest := range map[string]func(*testing.T, *dispatcher){
		"lull": func(*testing.T, *dispatcher) { elapse(2 * time.Second) },
		"stop": func(t *testing.T, d *dispatcher) { shutdown(t, d) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				goOn := make(chan struct{})
				d := make1(t, config{Pending: 4 * keys, Run: func(context.Context, *task) outcome {
					<-goOn
					return dispatch.Done()
				}})
				before := heap()
				for job := range keys {
					enqueue(t, d, strconv.Itoa(job), job)
				}
				close(goOn)
				require.NoError(t, d.Drain(t.Context()))
				rest(t, d)
				synctest.Wait()
				after := heap()
				require.Less(t, after, before+keys*8, "some map or list is kept")
				shutdown(t, d)
			})
		})
	}
}

func TestIdleDispatcherHasNoGoroutine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := make1(t, config{Run: instant})
		enqueue(t, d, "a", 1)
		synctest.Wait() // no shutdown: in a bubble a goroutine left over is a failure
		require.Zero(t, d.Stats().Workers)
	})
}

func TestOneAllocationForAJob(t *testing.T) {
	handled := make(chan struct{})
	d := make1(t, config{Run: func(context.Context, *task) outcome {
		handled <- struct{}{}
		return dispatch.Done()
	}})
	enqueue(t, d, "a", 0)
	<-handled
	allocs := testing.AllocsPerRun(1000, func() {
		_ = d.Enqueue("a", 1)
		<-handled
	})
	shutdown(t, d)
	require.LessOrEqual(t, allocs, 1.0)
}
