package dispatch

// phase is where a job is.
type phase uint8

const (
	queued phase = iota
	running
	held
	detached
	over // for this Task; the job may go on in another
	phases
)

// Task is one run of a job, from the time it is queued. A job that is held is run
// again as a new Task, so that nothing said late about the old one reaches the new.
type Task[K comparable, J any] struct {
	// Immutable.
	Key  K
	Job  J
	Runs int // the number of this run of the job, from 1; set before it begins
	d    *Dispatcher[K, J]

	// Guarded by d.mu.
	lane   *lane[K, J] // nil when the job is out of it
	next   *Task[K, J] // the next job of the key
	queued int64       // when it became ready to run
	due    int64       // when the alarm has to look at the run next
	at     int32       // index in d.runs while the run goes on
	phase  phase
	late   bool // the context has ended at the deadline
	stuck  bool

	// Guarded by ctx.mu.
	early    *Outcome // given by Complete before the run returned
	returned bool     // the run has returned
	settled  bool     // somebody has taken it on to settle the job

	ctx runContext
}

// Complete settles a job whose run returned Detach, with any outcome but Detach. The
// first call counts and later ones do nothing; before the run has returned, it is
// kept until then, and counts only if the run returns Detach. Any goroutine may call
// it, also from a hook. It does not block, but OnDone and OnFreed are called before
// it returns. After a kill it settles the job still; after a DrainAndClose that gave
// up the job it does nothing.
func (t *Task[K, J]) Complete(o Outcome) {
	if o.kind == kindDetach || !t.claimDetached(o) {
		return
	}
	freed := t.d.settle(t, o)
	t.d.spawnLocked()
	t.d.mu.Unlock()
	if freed {
		t.d.onFreed(t.Key)
	}
}

// claimDetached tells whether the caller has to settle the job with o now.
func (t *Task[K, J]) claimDetached(o Outcome) bool {
	t.ctx.mu.Lock()
	defer t.ctx.mu.Unlock()
	if t.settled {
		return false
	}
	if !t.returned {
		if t.early == nil {
			early := o // a variable of its own, so that only this case needs memory
			t.early = &early
		}
		return false
	}
	t.settled = true
	return true
}

// claim takes the job for a stop that gives it up; false if it is settled already.
func (t *Task[K, J]) claim() bool {
	t.ctx.mu.Lock()
	defer t.ctx.mu.Unlock()
	was := t.settled
	t.settled = true
	return !was
}

// endRun is called once, when the run has returned o. It ends the run's context and
// gives the outcome that counts. It returns false when the job is settled already.
func (t *Task[K, J]) endRun(o Outcome) (Outcome, bool) {
	t.ctx.mu.Lock()
	after := t.ctx.endLocked(cancelled)
	ours := !t.settled
	t.returned = true
	if o.kind == kindDetach && t.early != nil {
		o = *t.early
	}
	t.settled = t.settled || o.kind != kindDetach
	t.ctx.mu.Unlock()
	after.run()
	return o, ours
}

// isOver tells whether the run has returned or the job is settled.
func (t *Task[K, J]) isOver() bool {
	t.ctx.mu.Lock()
	defer t.ctx.mu.Unlock()
	return t.returned || t.settled
}

// again makes the Task of the next run of the job.
func (t *Task[K, J]) again() *Task[K, J] {
	n := t.d.task(t.Key, t.Job)
	n.Runs = t.Runs + 1
	return n
}

// result tells how the job ends with o at the time now; ran is false if no run of
// this Task has begun.
func (t *Task[K, J]) result(o Outcome, ran bool, now int64) Result {
	r := Result{Err: o.err, Abandoned: o.kind == kindAbandon}
	begun := now
	if ran {
		begun = t.ctx.started
		r.Took = ns(now - begun)
	}
	r.Wait = ns(begun - t.queued)
	return r
}
