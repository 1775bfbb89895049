package dispatch_test

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/penstock-io/penstock/dispatch"
)

// outstanding bounds the jobs in flight, so that no dispatcher of the comparison
// refuses any.
const outstanding = 1000

type payload int

var keyCounts = []int{1, 1_000, 100_000}

func keyNames(n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("conversation-%08d", i)
	}
	return names
}

// BenchmarkEnqueueHandled is the time from Enqueue to a handled job, deadline
// included, in steady flow, without hooks and with those of a caller that counts and
// refills.
func BenchmarkEnqueueHandled(b *testing.B) {
	type hooks = dispatch.Hooks[string, *payload]
	for _, n := range keyCounts {
		b.Run(fmt.Sprintf("keys=%d", n), func(b *testing.B) { enqueueHandled(b, n, hooks{}) })
		b.Run(fmt.Sprintf("hooks/keys=%d", n), func(b *testing.B) {
			enqueueHandled(b, n, hooks{
				OnDone:  func(*dispatch.Task[string, *payload], dispatch.Result) {},
				OnFreed: func(string) {},
			})
		})
	}
}

func enqueueHandled(b *testing.B, keys int, hooks dispatch.Hooks[string, *payload]) {
	tokens := make(chan struct{}, outstanding)
	d, err := dispatch.New(dispatch.Config[string, *payload]{
		PerKey: 2 * outstanding, Pending: 4 * outstanding, Hooks: hooks,
		Run: func(context.Context, *dispatch.Task[string, *payload]) dispatch.Outcome {
			<-tokens
			return dispatch.Done()
		},
	})
	require.NoError(b, err)
	flow(b, keyNames(keys), func(key string, job *payload) error {
		tokens <- struct{}{}
		return d.Enqueue(key, job)
	})
	require.NoError(b, d.Shutdown(context.Background()))
	require.Equal(b, uint64(b.N), d.Stats().Done)
}

// BenchmarkPeer is the same flow through the dispatcher that one writes first: a map
// of slices, a goroutine for each key that has work, a context with a timer for each
// job.
func BenchmarkPeer(b *testing.B) {
	for _, n := range keyCounts {
		b.Run(fmt.Sprintf("keys=%d", n), func(b *testing.B) {
			tokens := make(chan struct{}, outstanding)
			p := &peer{
				queues: make(map[string][]*payload),
				slots:  make(chan struct{}, dispatch.DefaultWorkers),
				run:    func(context.Context, *payload) { <-tokens },
			}
			flow(b, keyNames(n), func(key string, job *payload) error {
				tokens <- struct{}{}
				p.enqueue(key, job)
				return nil
			})
			p.running.Wait()
		})
	}
}

func flow(b *testing.B, keys []string, enqueue func(string, *payload) error) {
	job := new(payload)
	b.ReportAllocs()
	b.ResetTimer()
	for i := range b.N {
		if err := enqueue(keys[i%len(keys)], job); err != nil {
			b.Fatal(err)
		}
	}
}

type peer struct {
	mu      sync.Mutex
	queues  map[string][]*payload
	slots   chan struct{}
	running sync.WaitGroup
	run     func(context.Context, *payload)
}

func (p *peer) enqueue(key string, job *payload) {
	p.mu.Lock()
	defer p.mu.Unlock()
	q, busy := p.queues[key]
	p.queues[key] = append(q, job)
	if !busy {
		p.running.Go(func() { p.work(key) })
	}
}

func (p *peer) work(key string) {
	p.slots <- struct{}{}
	defer func() { <-p.slots }()
	for {
		p.mu.Lock()
		q := p.queues[key]
		if len(q) == 0 {
			delete(p.queues, key)
			p.mu.Unlock()
			return
		}
		p.queues[key] = q[1:]
		p.mu.Unlock()
		ctx, cancel := context.WithTimeout(context.Background(), dispatch.DefaultTimeout)
		p.run(ctx, q[0])
		cancel()
	}
}

// BenchmarkMillionKeys reports the memory of a million keys that each have one job
// waiting, and the goroutines meanwhile.
func BenchmarkMillionKeys(b *testing.B) {
	const million = 1_000_000
	keys := keyNames(million)
	for b.Loop() {
		gate := make(chan struct{})
		d, err := dispatch.New(dispatch.Config[string, *payload]{
			Pending: 2 * million,
			Run: func(context.Context, *dispatch.Task[string, *payload]) dispatch.Outcome {
				<-gate
				return dispatch.Done()
			},
		})
		require.NoError(b, err)
		job := new(payload)
		before, goroutines := heap(), runtime.NumGoroutine()
		for _, key := range keys {
			require.NoError(b, d.Enqueue(key, job))
		}
		held := heap()
		b.ReportMetric(float64(held-before)/million, "B/key")
		b.ReportMetric(float64(runtime.NumGoroutine()-goroutines), "goroutines")
		close(gate)
		require.NoError(b, d.Shutdown(context.Background()))
		after := heap()
		b.ReportMetric(float64(int64(after)-int64(before))/million, "B/key-after")
		runtime.KeepAlive(d)
	}
}

func heap() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// BenchmarkIdleDispatcher reports what a dispatcher without work costs.
func BenchmarkIdleDispatcher(b *testing.B) {
	cfg := dispatch.Config[string, *payload]{
		Timeout: time.Minute,
		Run: func(context.Context, *dispatch.Task[string, *payload]) dispatch.Outcome {
			return dispatch.Done()
		},
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := dispatch.New(cfg); err != nil {
			b.Fatal(err)
		}
	}
}
