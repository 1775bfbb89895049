package dispatch_test

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/penstock-io/penstock/dispatch"
)

// TestModel does the same at random to a dispatcher and to the model, in a bubble,
// where each step comes to rest before the two are compared.
func TestModel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		// Inside a struct, for rapid asks a *testing.T for its deadline, which a
		// bubble does not allow.
		rapid.Check(struct{ rapid.TB }{t}, func(rt *rapid.T) {
			m := newMachine(rt)
			rt.Repeat(map[string]func(*rapid.T){
				"":              m.check,
				"enqueue":       m.enqueue,
				"enqueueMany":   func(rt *rapid.T) { m.enqueue(rt); m.enqueue(rt); m.enqueue(rt) },
				"finish":        m.finish,
				"finishAgain":   m.finish,
				"complete":      m.complete,
				"elapse":        m.elapse,
				"close":         m.close,
				"kill":          m.kill,
				"drainAndClose": m.drainAndClose,
			})
			m.windUp(rt)
		})
	})
}

// machine drives a dispatcher and its model.
type machine struct {
	d       *dispatcher
	m       *model
	g       *gate
	l       *ledger
	freed   atomic.Int64
	panics  uint64
	nextJob int
	seen    []*modelRun
	tasks   map[*modelRun]*task
}

func newMachine(rt *rapid.T) *machine {
	m := &machine{g: newGate(), l: newLedger(), tasks: make(map[*modelRun]*task)}
	cfg := config{
		Run:     m.g.run,
		Workers: rapid.IntRange(1, 3).Draw(rt, "workers"),
		Spares:  rapid.SampledFrom([]int{-1, 1, 2}).Draw(rt, "spares"),
		PerKey:  rapid.IntRange(1, 5).Draw(rt, "perKey"),
		Pending: rapid.IntRange(1, 12).Draw(rt, "pending"),
		Timeout: 10 * time.Second,
		Hooks: hooks{
			OnDone:  m.l.done,
			OnFreed: func(string) { m.freed.Add(1) },
		},
	}
	m.m, m.d = newModel(cfg), make1(rt, cfg)
	return m
}

func (m *machine) enqueue(rt *rapid.T) {
	key := rapid.SampledFrom([]string{"a", "b", "c", "d"}).Draw(rt, "key")
	m.nextJob++
	require.Equal(rt, m.m.enqueue(key, m.nextJob), m.d.Enqueue(key, m.nextJob))
	m.rest()
}

// rest waits until nothing moves and notes the tasks of new runs.
func (m *machine) rest() {
	synctest.Wait()
	for _, r := range m.m.runs {
		if m.tasks[r] == nil {
			m.tasks[r] = m.g.task(r.job.id)
			m.seen = append(m.seen, r)
		}
	}
}

var errModel = errors.New("failed")

// draw chooses an outcome. Holds differ by nanoseconds, so that no two end at once,
// when their order is not given.
func (m *machine) draw(rt *rapid.T, kinds ...string) (modelEnd, outcome) {
	e := modelEnd{kind: rapid.SampledFrom(kinds).Draw(rt, "outcome")}
	switch e.kind {
	case "failed":
		return e, dispatch.Failed(errModel)
	case "detach":
		return e, dispatch.Detach()
	case "hold":
		m.nextJob++
		e.hold = time.Duration(rapid.IntRange(0, 15).Draw(rt, "seconds")) * time.Second
		if e.hold > 0 {
			e.hold += time.Duration(m.nextJob)
		}
		return e, dispatch.Hold(e.hold)
	default:
		return e, dispatch.Done()
	}
}

func (m *machine) finish(rt *rapid.T) {
	if len(m.m.runs) == 0 {
		rt.Skip("nothing runs")
	}
	r := rapid.SampledFrom(m.m.runs).Draw(rt, "run")
	e, o := m.draw(rt, "done", "failed", "hold", "hold", "detach", "detach", "panic", "exit")
	how := func() outcome { return o }
	switch e.kind {
	case "panic":
		m.panics++
		e.kind, how = "failed", func() outcome { panic("on purpose") }
	case "exit":
		e.kind, how = "failed", func() outcome { runtime.Goexit(); return o }
	}
	m.g.channel(r.job.id) <- how
	m.m.leave(r, e)
	m.rest()
}

// complete speaks for any run there has been, also for one that is over.
func (m *machine) complete(rt *rapid.T) {
	if len(m.seen) == 0 {
		rt.Skip("nothing has run")
	}
	r := rapid.SampledFrom(m.seen).Draw(rt, "run")
	e, o := m.draw(rt, "done", "failed", "hold")
	m.tasks[r].Complete(o)
	m.m.complete(r, e)
	m.rest()
}

func (m *machine) elapse(rt *rapid.T) {
	d := time.Duration(rapid.IntRange(1, 12_000).Draw(rt, "milliseconds")) * time.Millisecond
	elapse(d)
	synctest.Wait()
	m.m.elapse(d)
	m.rest()
}

// Stops are rarer than the rest, or there would be little to stop.
func seldom(rt *rapid.T) {
	if rapid.IntRange(0, 5).Draw(rt, "seldom") > 0 {
		rt.Skip("not now")
	}
}

func (m *machine) close(rt *rapid.T) {
	seldom(rt)
	m.d.Close()
	m.m.closed = true
}

func (m *machine) kill(rt *rapid.T) {
	seldom(rt)
	m.d.Kill()
	m.m.kill(false)
	m.rest()
}

func (m *machine) drainAndClose(rt *rapid.T) {
	seldom(rt)
	quiet := len(m.m.keys) == 0 && len(m.m.runs) == 0
	require.Equal(rt, quiet, m.d.DrainAndClose(ended()))
	m.m.closed = true
	if !quiet {
		m.m.kill(true)
	}
	m.rest()
}

// check compares the two.
func (m *machine) check(rt *rapid.T) {
	want := m.m.stats()
	want.Panics = m.panics
	require.Equal(rt, want, m.d.Stats())
	require.Equal(rt, int64(m.m.freed), m.freed.Load())
	for _, r := range m.m.runs {
		require.Equal(rt, r.err, m.g.ctx(r.job.id).Err())
		require.Equal(rt, r.number, m.tasks[r].Runs)
	}
	m.checkUnfinished(rt)
	m.checkEnds(rt)
}

func (m *machine) checkUnfinished(rt *rapid.T) {
	got := make(map[string][]int)
	for _, u := range m.d.Unfinished() {
		got[u.Key] = append(got[u.Key], u.Job)
	}
	want := make(map[string][]int)
	for key, jobs := range m.m.keys {
		for _, j := range jobs {
			want[key] = append(want[key], j.id)
		}
	}
	require.Equal(rt, want, got)
}

func (m *machine) checkEnds(rt *rapid.T) {
	require.Len(rt, m.l.results, len(m.m.ends))
	for id, how := range m.m.ends {
		r := m.l.only(rt, id)
		require.Equal(rt, how == "abandoned", r.Abandoned)
		require.Equal(rt, how == "done", r.Err == nil)
	}
	for _, key := range []string{"a", "b", "c", "d"} {
		if m.m.killed {
			break // a run that a kill leaves alone ends after those behind it
		}
		require.True(rt, slices.IsSorted(m.l.jobs(key)), "the order of key %s", key)
	}
}

// windUp lets everything end.
func (m *machine) windUp(rt *rapid.T) {
	m.d.DrainAndClose(ended())
	m.m.kill(true)
	for _, r := range slices.Clone(m.m.runs) {
		m.g.end(r.job.id, dispatch.Done())
	}
	require.NoError(rt, m.d.Shutdown(context.Background()))
	checkBooks(rt, m.d.Stats())
}
