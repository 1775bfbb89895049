package dispatch

import "runtime"

// spins is how often a worker without work looks again before it ends. Starting a
// goroutine costs more than looking.
const spins = 8

// limitLocked is how many workers there may be: a stuck run does not count, up to
// the number of spares.
func (d *Dispatcher[K, J]) limitLocked() int {
	return d.cfg.Workers + min(d.stuck, d.cfg.Spares)
}

// spawnLocked starts a worker if a key is ready and nobody is on the way to it. A
// worker that takes a job calls it again, so that workers become as many as there
// are ready keys without a crowd at the lock.
func (d *Dispatcher[K, J]) spawnLocked() {
	if d.ready.head == nil || d.searching > 0 || d.workers >= d.limitLocked() {
		return
	}
	d.workers++
	d.searching++
	go d.work()
}

// work is a worker: it runs ready jobs until there is none. Whoever waits for the
// dispatcher to drain waits for it.
func (d *Dispatcher[K, J]) work() {
	d.mu.Lock()
	d.searching--
	t := d.takeOrQuitLocked()
	d.mu.Unlock()
	defer func() {
		if t != nil {
			d.survive(t)
		}
	}()
	for t != nil {
		done, o := t, d.call(t)
		t = nil // from here on survive must not settle it again
		t = d.next(done, o)
	}
}

// call runs a job and turns a panic into its failure.
func (d *Dispatcher[K, J]) call(t *Task[K, J]) (o Outcome) {
	d.onStart(t)
	defer func() {
		if v := recover(); v != nil {
			o = d.panicked(v)
		}
	}()
	return d.cfg.Run(&t.ctx, t)
}

// survive settles the job whose run ended this goroutine and starts another worker
// in its stead.
func (d *Dispatcher[K, J]) survive(t *Task[K, J]) {
	freed := d.finish(t, Failed(ErrExited))
	d.quitLocked()
	d.spawnLocked()
	d.mu.Unlock()
	if freed {
		d.onFreed(t.Key)
	}
}

// next settles the run of t, which returned o, and takes another job. Without one it
// returns nil, and the worker has to end.
func (d *Dispatcher[K, J]) next(t *Task[K, J], o Outcome) *Task[K, J] {
	freed := d.finish(t, o)
	defer d.mu.Unlock()
	if !freed {
		return d.takeOrQuitLocked()
	}
	// The next job is taken before the callback and not after, so that this costs
	// no further turn at the lock.
	n := d.takeLocked()
	d.mu.Unlock()
	d.onFreed(t.Key)
	d.mu.Lock()
	if n == nil {
		n = d.takeOrQuitLocked()
	}
	return n
}

// finish settles a run that is over and leaves its slot. It returns with the lock;
// true tells that OnFreed is due.
func (d *Dispatcher[K, J]) finish(t *Task[K, J], o Outcome) (freed bool) {
	o, ours := t.endRun(o)
	if ours {
		freed = d.settle(t, o)
	} else {
		d.mu.Lock()
	}
	d.leaveLocked(t)
	return freed
}

// takeOrQuitLocked gives the next job to run, or ends the worker. It may let go of
// the lock meanwhile.
func (d *Dispatcher[K, J]) takeOrQuitLocked() *Task[K, J] {
	t := d.takeLocked()
	if t == nil {
		t = d.lingerLocked()
	}
	if t == nil {
		d.quitLocked()
	}
	return t
}

// lingerLocked looks for work a few times more. One worker does at a time; the
// others are not needed.
func (d *Dispatcher[K, J]) lingerLocked() (t *Task[K, J]) {
	if d.searching > 0 || d.workers > d.limitLocked() {
		return nil
	}
	d.searching++
	for range spins {
		d.mu.Unlock()
		runtime.Gosched()
		d.mu.Lock()
		if d.ready.head != nil {
			break
		}
	}
	d.searching--
	return d.takeLocked()
}

// takeLocked gives the job of the first ready key a slot.
func (d *Dispatcher[K, J]) takeLocked() *Task[K, J] {
	if d.workers > d.limitLocked() {
		return nil // a stuck run came back, and its spare goes on
	}
	l := d.ready.pop()
	if l == nil {
		return nil
	}
	t := l.head
	t.ctx.started = d.clock.now()
	d.moveLocked(t, running)
	t.at = int32(len(d.runs))
	d.runs = append(d.runs, t)
	if d.clock.timeout > 0 {
		t.due = d.clock.after(t.ctx.started, d.clock.timeout)
		d.armLocked(t.due)
	}
	d.spawnLocked()
	return t
}

// leaveLocked takes a run that has returned off the list.
func (d *Dispatcher[K, J]) leaveLocked(t *Task[K, J]) {
	last := len(d.runs) - 1
	d.runs[t.at] = d.runs[last]
	d.runs[t.at].at = t.at
	d.runs[last] = nil
	d.runs = d.runs[:last]
	if t.stuck {
		d.stuck--
	}
}

// quitLocked counts the end of a worker. The last one puts the alarm right.
func (d *Dispatcher[K, J]) quitLocked() {
	d.workers--
	if d.workers == 0 {
		d.rearmLocked()
	}
	d.quietLocked()
}
