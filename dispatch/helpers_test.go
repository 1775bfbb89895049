package dispatch_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/penstock-io/penstock/dispatch"
)

type (
	config     = dispatch.Config[string, int]
	dispatcher = dispatch.Dispatcher[string, int]
	task       = dispatch.Task[string, int]
	hooks      = dispatch.Hooks[string, int]
	result     = dispatch.Result
	outcome    = dispatch.Outcome
)

// tester is what the tests of package testing and of rapid have in common.
type tester interface {
	require.TestingT
	Helper()
}

func make1(t tester, cfg config) *dispatcher {
	t.Helper()
	d, err := dispatch.New(cfg)
	require.NoError(t, err)
	return d
}

func enqueue(t tester, d *dispatcher, key string, jobs ...int) {
	t.Helper()
	for _, job := range jobs {
		require.NoError(t, d.Enqueue(key, job))
	}
}

func shutdown(t testing.TB, d *dispatcher) {
	t.Helper()
	require.NoError(t, d.Shutdown(t.Context()))
	checkBooks(t, d.Stats())
}

// checkBooks checks the identity that Stats promises, and that nothing is left.
func checkBooks(t tester, s dispatch.Stats) {
	t.Helper()
	require.Equal(t, s.Enqueued, s.Done+s.Failed+s.Abandoned)
	require.Zero(t, s.Queued+s.Running+s.Held+s.Detached+s.Keys+s.Workers+s.Stuck)
}

// ended is a context whose deadline has passed.
func ended() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

// elapse lets time pass in a bubble.
func elapse(d time.Duration) { <-time.After(d) }

// ledger records terminal callbacks.
type ledger struct {
	mu      sync.Mutex
	results map[int][]result // by job
	order   map[string][]int // jobs by key
}

func newLedger() *ledger {
	return &ledger{results: make(map[int][]result), order: make(map[string][]int)}
}

func (l *ledger) done(t *task, r result) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.results[t.Job] = append(l.results[t.Job], r)
	l.order[t.Key] = append(l.order[t.Key], t.Job)
}

// only gives the one result of a job.
func (l *ledger) only(t tester, job int) result {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	require.Len(t, l.results[job], 1, "terminal callbacks of job %d", job)
	return l.results[job][0]
}

func (l *ledger) jobs(key string) []int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]int(nil), l.order[key]...)
}

// gate is a Run whose runs wait for the test. Runs of the same job share a channel.
type gate struct {
	mu      sync.Mutex
	waiting map[int]chan func() outcome
	started []int
	tasks   map[int]*task
	ctxs    map[int]context.Context
}

func newGate() *gate {
	return &gate{
		waiting: make(map[int]chan func() outcome),
		tasks:   make(map[int]*task),
		ctxs:    make(map[int]context.Context),
	}
}

func (g *gate) channel(job int) chan func() outcome {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.waiting[job] == nil {
		g.waiting[job] = make(chan func() outcome)
	}
	return g.waiting[job]
}

// run ignores its context, as a stuck handler does.
func (g *gate) run(ctx context.Context, t *task) outcome {
	g.mu.Lock()
	g.started = append(g.started, t.Job)
	g.tasks[t.Job] = t
	g.ctxs[t.Job] = ctx
	g.mu.Unlock()
	return (<-g.channel(t.Job))()
}

// end lets the run of a job return.
func (g *gate) end(job int, o outcome) { g.channel(job) <- func() outcome { return o } }

func (g *gate) startedJobs() []int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return append([]int(nil), g.started...)
}

func (g *gate) task(job int) *task {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.tasks[job]
}

func (g *gate) ctx(job int) context.Context {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.ctxs[job]
}
