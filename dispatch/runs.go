package dispatch

import "time"

// Run is a run that has not returned.
type Run[K comparable, J any] struct {
	Task  *Task[K, J]
	Began time.Time
}

// Runs lists the runs that have not returned, in any order. A run may return as soon as
// it is listed.
func (d *Dispatcher[K, J]) Runs() []Run[K, J] {
	d.mu.Lock()
	defer d.mu.Unlock()
	list := make([]Run[K, J], 0, len(d.runs))
	for _, t := range d.runs {
		list = append(list, Run[K, J]{t, t.ctx.clock.epoch.Add(time.Duration(t.ctx.started))})
	}
	return list
}

// Cancel ends the context of a run that is under way, and does nothing to one that is
// not. The job goes on until its run returns, and is settled by what that says.
func (t *Task[K, J]) Cancel() {
	t.d.mu.Lock()
	on := t.phase == running
	t.d.mu.Unlock()
	if on {
		t.ctx.finish(cancelled)
	}
}
