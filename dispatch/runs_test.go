package dispatch_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/penstock-io/penstock/dispatch"
)

func TestOneRunMayBeCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ended := make(chan string, 10)
		d, err := dispatch.New(dispatch.Config[string, string]{
			Workers: 2,
			Run: func(ctx context.Context, task *dispatch.Task[string, string]) dispatch.Outcome {
				<-ctx.Done()
				ended <- task.Job
				return dispatch.Failed(ctx.Err())
			},
		})
		require.NoError(t, err)
		began := time.Now()
		for _, job := range []string{"a", "b", "c"} {
			require.NoError(t, d.Enqueue(job, job))
		}
		synctest.Wait()
		<-time.After(time.Second)
		runs := d.Runs()
		require.Len(t, runs, 2, "one has no worker")
		for _, r := range runs {
			require.True(t, r.Began.Equal(began))
			if r.Task.Job == "a" {
				r.Task.Cancel()
				r.Task.Cancel()
			}
		}
		synctest.Wait()
		require.Equal(t, "a", <-ended)
		require.Empty(t, ended)
		for _, u := range d.Unfinished() {
			require.NotEqual(t, "a", u.Job)
		}
		runs[0].Task.Cancel() // one of them is over
		runs[1].Task.Cancel()
		synctest.Wait()
		require.Equal(t, "b", <-ended)
		d.Kill()
		synctest.Wait()
		require.Equal(t, "c", <-ended)
		require.Empty(t, d.Runs())
	})
}

func TestSomeHoldsMayBeEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ran := make(chan int, 100)
		d, err := dispatch.New(dispatch.Config[int, int]{
			Workers: 1,
			Run: func(_ context.Context, task *dispatch.Task[int, int]) dispatch.Outcome {
				ran <- task.Job
				if task.Runs == 1 {
					return dispatch.Hold(time.Duration(20-task.Job) * time.Minute)
				}
				return dispatch.Done()
			},
		})
		require.NoError(t, err)
		for i := range 10 {
			require.NoError(t, d.Enqueue(i, i))
		}
		took := func(n int) (jobs []int) {
			synctest.Wait()
			require.Len(t, ran, n)
			for range n {
				jobs = append(jobs, <-ran)
			}
			return jobs
		}
		took(10)
		odd := func(n int) bool { return n%2 == 1 }
		require.Equal(t, 2, d.WakeSome(2, odd))
		woken := took(2)
		require.Equal(t, 3, d.WakeSome(100, odd))
		require.Zero(t, d.WakeSome(100, odd))
		require.ElementsMatch(t, []int{1, 3, 5, 7, 9}, append(woken, took(3)...))
		<-time.After(time.Hour)
		require.Equal(t, []int{8, 6, 4, 2, 0}, took(5), "the others keep their times")
		require.NoError(t, d.Shutdown(t.Context()))
	})
}
