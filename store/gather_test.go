package store_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/penstock-io/penstock/store"
)

const (
	gather = time.Millisecond
	flush  = 300 * time.Microsecond
)

// disk is a store whose commits take the time of a flush.
func disk() *fake {
	return &fake{commit: func(context.Context, []store.Op) error {
		<-time.After(flush)
		return nil
	}}
}

func TestGatherSharesCommitsOfASteadyStream(t *testing.T) {
	commits := func(gather time.Duration) (n uint64) {
		synctest.Test(t, func(t *testing.T) {
			r := start(t, disk(), store.WriterConfig{Gather: gather})
			for i := range 1000 {
				require.NoError(t, r.Submit(finish(i), nil))
				<-time.After(100 * time.Microsecond)
			}
			require.NoError(t, r.stop())
			require.Equal(t, uint64(1000), r.Stats().Ops)
			n = r.Stats().Commits
		})
		return n
	}
	require.InDelta(t, 100, commits(gather), 10, "one in a millisecond")
	require.InDelta(t, 333, commits(0), 10, "one after the other")
}

func TestGatherDoesNotDelayWhatComesAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := disk()
		r := start(t, f, store.WriterConfig{Gather: gather})
		took := func(ops int) time.Duration {
			began := time.Now()
			done := make(chan time.Duration, ops)
			for i := range ops {
				require.NoError(t, r.Submit(finish(i), &told{then: func(store.Op, error) {
					done <- time.Since(began)
				}}))
			}
			for range ops - 1 {
				<-done
			}
			return <-done
		}
		for range 10 { // each begins when the last commit began less than gather ago
			require.Equal(t, flush, took(1))
		}
		<-time.After(gather)
		require.LessOrEqual(t, took(3), 2*flush, "after a pause nothing waits")
		require.NoError(t, r.stop())
	})
}

// Those who submit wait for what is in the queue, so that waiting for more is in vain.
func TestGatherGivesUpWhenNothingMoreComes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const rounds = 2000
		r := start(t, disk(), store.WriterConfig{Gather: gather})
		began := time.Now()
		for n := range 4 {
			c := &told{}
			c.then = func(op store.Op, _ error) {
				if len(c.ops) < rounds {
					_ = r.Submit(op, c)
				}
			}
			require.NoError(t, r.Submit(finish(n), c))
		}
		<-time.After(2 * rounds * flush)
		synctest.Wait()
		require.Equal(t, uint64(4*rounds), r.Stats().Ops)
		require.NoError(t, r.stop())
		require.Less(t, time.Since(began), 2*rounds*flush+gather)
		require.Less(t, r.Stats().Commits, uint64(rounds+10), "those of a round come together")
	})
}

func TestStopEndsGathering(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t, disk(), store.WriterConfig{Gather: time.Hour})
		for i := range 5 {
			require.NoError(t, r.Submit(finish(i), nil))
			synctest.Wait()
		}
		<-time.After(time.Minute)
		began := time.Now()
		require.NoError(t, r.stop())
		require.Equal(t, flush, time.Since(began))
		require.Equal(t, uint64(5), r.Stats().Ops)
	})
}
