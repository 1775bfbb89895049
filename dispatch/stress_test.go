package dispatch_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/penstock-io/penstock/dispatch"
)

// Producers, every outcome, completions from elsewhere, and a stop in the middle: no
// job is lost or ended twice, none overtakes another of its key, and no key has two
// runs at once.
func TestStress(t *testing.T) {
	const producers, each, keys = 4, 400, 16
	l := newLedger()
	var completions sync.WaitGroup
	var inside [keys]atomic.Int32
	d, err := dispatch.New(dispatch.Config[string, int]{
		Workers: 4, PerKey: producers * each, Pending: producers * each * 2,
		Hooks: hooks{OnDone: l.done},
		Run: func(_ context.Context, t *task) outcome {
			k := int(t.Key[0] - 'a')
			if inside[k].Add(1) != 1 {
				panic("two runs of one key")
			}
			defer inside[k].Add(-1)
			switch rand.IntN(8) {
			case 0:
				return dispatch.Failed(errors.New("no"))
			case 1:
				return dispatch.Hold(time.Duration(rand.IntN(100)) * time.Microsecond)
			case 2:
				completions.Go(func() { t.Complete(dispatch.Done()) })
				return dispatch.Detach()
			default:
				return dispatch.Done()
			}
		},
	})
	require.NoError(t, err)
	var taken [producers]int
	var wg sync.WaitGroup
	for p := range producers {
		wg.Go(func() {
			for i := range each {
				job := p*each + i
				if d.Enqueue(string(rune('a'+job%keys)), job) != nil {
					return
				}
				taken[p]++
				if p == 0 && i == each*3/4 {
					wg.Go(d.Kill)
				}
			}
		})
	}
	wg.Wait()
	shutdown(t, d)
	completions.Wait()
	require.Zero(t, d.Stats().Panics)
	for p := range producers {
		for i := range taken[p] {
			l.only(t, p*each+i)
		}
	}
	for k := range keys {
		ran := slices.DeleteFunc(l.jobs(string(rune('a'+k))), func(job int) bool {
			return l.only(t, job).Abandoned
		})
		requireOrderWithin(t, ran, each)
	}
}

// requireOrderWithin checks that the jobs of each producer, which has block numbers,
// ended in their order.
func requireOrderWithin(t *testing.T, jobs []int, block int) {
	t.Helper()
	last := make(map[int]int)
	for _, job := range jobs {
		p := job / block
		if before, ok := last[p]; ok {
			require.Greater(t, job, before)
		}
		last[p] = job
	}
}
