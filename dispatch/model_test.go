package dispatch_test

import (
	"context"
	"math"
	"slices"
	"time"

	"github.com/penstock-io/penstock/dispatch"
)

// model is a dispatcher without goroutines, written as plainly as can be.
type model struct {
	cfg    config
	now    time.Duration
	keys   map[string][]*modelJob // unfinished jobs in order
	ready  []string
	runs   []*modelRun // that have not returned, those given up included
	closed bool
	killed bool
	want   dispatch.Stats
	freed  int
	ends   map[int]string // how each job ended
}

type modelJob struct {
	id    int
	key   string
	runs  int
	phase string // queued, running, held, detached
	until time.Duration
	run   *modelRun // the last one
	over  bool
}

type modelRun struct {
	job      *modelJob
	number   int
	started  time.Duration
	err      error // of its context
	stuck    bool
	returned bool
	settled  bool
	early    *modelEnd
}

// modelEnd is an outcome.
type modelEnd struct {
	kind string // done, failed, hold, detach
	hold time.Duration
}

func newModel(cfg config) *model {
	return &model{cfg: cfg, keys: make(map[string][]*modelJob), ends: make(map[int]string)}
}

func (m *model) pending() (n int) {
	for _, jobs := range m.keys {
		n += len(jobs)
	}
	return n
}

func (m *model) enqueue(key string, id int) error {
	jobs := len(m.keys[key])
	keys := len(m.keys)
	if jobs == 0 {
		keys++
	}
	reserve := max(m.cfg.Pending/8, 1)
	fits := m.pending() < m.cfg.Pending-reserve ||
		m.pending() < m.cfg.Pending && jobs+1 <= max(m.cfg.Pending/keys, 1)
	switch {
	case m.closed:
		m.want.RejectedClosed++
		return dispatch.ErrClosed
	case jobs == m.cfg.PerKey:
		m.want.RejectedKeyFull++
		return dispatch.ErrKeyFull
	case !fits:
		m.want.RejectedFull++
		return dispatch.ErrFull
	}
	m.want.Enqueued++
	m.keys[key] = append(m.keys[key], &modelJob{id: id, key: key, runs: 1, phase: "queued"})
	if jobs == 0 {
		m.ready = append(m.ready, key)
	}
	m.fill()
	return nil
}

func (m *model) stuck() (n int) {
	for _, r := range m.runs {
		if r.stuck {
			n++
		}
	}
	return n
}

// fill gives slots to ready keys.
func (m *model) fill() {
	for len(m.ready) > 0 && len(m.runs) < m.cfg.Workers+min(m.stuck(), max(m.cfg.Spares, 0)) {
		j := m.keys[m.ready[0]][0]
		m.ready = m.ready[1:]
		j.phase = "running"
		j.run = &modelRun{job: j, number: j.runs, started: m.now}
		m.runs = append(m.runs, j.run)
	}
}

// leave lets a run return with end.
func (m *model) leave(r *modelRun, end modelEnd) {
	m.runs = slices.DeleteFunc(m.runs, func(o *modelRun) bool { return o == r })
	r.returned = true
	if !r.settled {
		if end.kind == "detach" && r.early != nil {
			end = *r.early
		}
		m.settle(r, end)
	}
	m.fill()
}

func (m *model) complete(r *modelRun, end modelEnd) {
	switch {
	case r.settled:
	case !r.returned && r.early == nil:
		r.early = &end
	case r.returned:
		m.settle(r, end)
		m.fill()
	}
}

func (m *model) settle(r *modelRun, end modelEnd) {
	j := r.job
	switch {
	case end.kind == "detach":
		j.phase = "detached"
		return
	case end.kind == "hold" && m.killed:
		end.kind = "abandoned"
	case end.kind == "hold":
		r.settled = true
		j.runs++
		j.phase, j.until = "held", m.now+end.hold
		if end.hold <= 0 {
			m.wake(j)
		}
		return
	}
	r.settled = true
	m.end(j, end.kind)
	if !m.closed {
		m.freed++
	}
}

func (m *model) wake(j *modelJob) {
	j.phase = "queued"
	m.ready = append(m.ready, j.key)
}

// end takes a job, which is the head of its key, out.
func (m *model) end(j *modelJob, how string) {
	j.over = true
	m.ends[j.id] = how
	switch how {
	case "done":
		m.want.Done++
	case "failed":
		m.want.Failed++
	case "abandoned":
		m.want.Abandoned++
	}
	m.keys[j.key] = m.keys[j.key][1:]
	if len(m.keys[j.key]) == 0 {
		delete(m.keys, j.key)
	} else if !m.killed {
		m.ready = append(m.ready, j.key)
	}
}

// kill abandons what waits, and with all also what is running or detached.
func (m *model) kill(all bool) {
	m.closed, m.killed, m.ready = true, true, nil
	for _, r := range m.runs {
		if r.err == nil {
			r.err = context.Canceled
		}
	}
	for key, jobs := range m.keys {
		kept := jobs[:0:0]
		for _, j := range jobs {
			if !all && (j.phase == "running" || j.phase == "detached") {
				kept = append(kept, j)
				continue
			}
			j.over = true
			if j.run != nil {
				j.run.settled = true
			}
			m.ends[j.id] = "abandoned"
			m.want.Abandoned++
		}
		if m.keys[key] = kept; len(kept) == 0 {
			delete(m.keys, key)
		}
	}
}

// elapse plays what happens within d, moment by moment.
func (m *model) elapse(d time.Duration) {
	end := m.now + d
	for {
		at := m.nextEvent()
		if at > end {
			break
		}
		m.now = at
		m.happen()
	}
	m.now = end
}

func (m *model) nextEvent() time.Duration {
	at := time.Duration(math.MaxInt64)
	for _, jobs := range m.keys {
		if jobs[0].phase == "held" {
			at = min(at, jobs[0].until)
		}
	}
	for _, r := range m.runs {
		at = min(at, m.due(r))
	}
	return at
}

// due is when a run ends its context or gets stuck.
func (m *model) due(r *modelRun) time.Duration {
	switch {
	case r.settled || r.stuck:
		return math.MaxInt64
	case m.now < r.started+m.cfg.Timeout:
		return r.started + m.cfg.Timeout
	case r.err != nil:
		return r.started + m.cfg.Timeout + time.Second
	default:
		return r.started + m.cfg.Timeout
	}
}

func (m *model) happen() {
	for _, jobs := range m.keys {
		if j := jobs[0]; j.phase == "held" && j.until == m.now {
			m.wake(j)
		}
	}
	for _, r := range m.runs {
		switch m.now {
		case r.started + m.cfg.Timeout:
			if r.err == nil {
				r.err = context.DeadlineExceeded
			}
		case r.started + m.cfg.Timeout + time.Second:
			if !r.settled {
				r.stuck = true
				m.want.Overruns++
			}
		}
	}
	m.fill()
}

// stats is what the dispatcher should say.
func (m *model) stats() dispatch.Stats {
	s := m.want
	for _, jobs := range m.keys {
		for _, j := range jobs {
			switch j.phase {
			case "queued":
				s.Queued++
			case "running":
				s.Running++
			case "held":
				s.Held++
			case "detached":
				s.Detached++
			}
		}
	}
	s.Stuck, s.Keys, s.Workers = m.stuck(), len(m.keys), len(m.runs)
	return s
}
