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
