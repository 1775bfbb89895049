package dispatch

import "time"

// stuckGrace is how long a run may go on after its context ended at the deadline
// before it is reported as stuck.
const stuckGrace = time.Second

// lull is how long the map of keys stays large after a burst, so that a load that
// comes in waves does not make it anew for each.
const lull = time.Second

// armLocked sees to it that the alarm goes off at the given time or before.
func (d *Dispatcher[K, J]) armLocked(at int64) {
	if at >= d.armed {
		return
	}
	d.armed = at
	wait := ns(at - d.clock.now())
	if d.timer == nil {
		d.timer = time.AfterFunc(wait, d.alarm)
		return
	}
	d.timer.Reset(wait)
}

// rearmLocked sets the alarm to the next thing to come, or stops it.
func (d *Dispatcher[K, J]) rearmLocked() {
	at := d.shrinkAt
	if len(d.holds) > 0 {
		at = d.holds[0].at
	}
	for _, t := range d.runs {
		at = min(at, t.due)
	}
	if d.armed != never && at != d.armed {
		d.timer.Stop()
		d.armed = never
	}
	d.armLocked(at)
}

// alarm is the dispatcher's only timer callback: it readies the keys whose hold is
// over, ends the contexts of runs at their deadline, and reports stuck runs. A call
// too many does nothing.
func (d *Dispatcher[K, J]) alarm() {
	d.mu.Lock()
	d.alarms++
	d.armed = never
	now := d.clock.now()
	d.wakeLocked(now)
	d.shrinkLocked(now)
	late, stuck := d.overdueLocked(now)
	d.rearmLocked()
	d.spawnLocked()
	d.mu.Unlock()
	for _, t := range late {
		t.ctx.finish(expired)
	}
	for _, t := range stuck {
		d.onStuck(t)
	}
	d.mu.Lock()
	d.alarms--
	d.quietLocked()
	d.mu.Unlock()
}

// wakeLocked readies the keys whose hold is over.
func (d *Dispatcher[K, J]) wakeLocked(now int64) {
	for len(d.holds) > 0 && d.holds[0].at <= now {
		h := d.holds.pop()
		d.moveLocked(h.lane.head, queued)
		d.ready.push(h.lane)
	}
}

// Wake ends every hold now: the jobs that are held run again in their turn. It does
// not block, and may be called at any time by anyone.
func (d *Dispatcher[K, J]) Wake() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.wakeLocked(never)
	d.rearmLocked()
	d.spawnLocked()
}

// WakeSome ends the holds of up to n jobs that match, as Wake does, and gives how many.
// It looks at every hold; match is called with a lock held.
func (d *Dispatcher[K, J]) WakeSome(n int, match func(job J) bool) (woken int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	var rest holdHeap[K, J]
	for _, h := range d.holds {
		if woken < n && match(h.lane.head.Job) {
			woken++
			d.moveLocked(h.lane.head, queued)
			d.ready.push(h.lane)
		} else {
			rest.push(h)
		}
	}
	d.holds = rest
	if woken > 0 {
		d.rearmLocked()
		d.spawnLocked()
	}
	return woken
}

// tidyLocked has a map of keys that is too large made anew: after a lull, or at once
// when no key can come any more.
func (d *Dispatcher[K, J]) tidyLocked() {
	if d.closed {
		d.keys.shrink()
		return
	}
	d.shrinkAt = d.clock.after(d.clock.now(), lull)
	d.armLocked(d.shrinkAt)
}

// shrinkLocked gives the memory of a burst back.
func (d *Dispatcher[K, J]) shrinkLocked(now int64) {
	if d.shrinkAt > now {
		return
	}
	d.shrinkAt = never
	if d.keys.wasteful() {
		d.keys.shrink()
	}
}

// overdueLocked finds the runs whose context has to end, and those that went on too
// long after that.
func (d *Dispatcher[K, J]) overdueLocked(now int64) (late, stuck []*Task[K, J]) {
	for _, t := range d.runs {
		switch {
		case t.due > now:
		case !t.late:
			t.late = true
			t.due = d.clock.after(now, stuckGrace)
			late = append(late, t)
		default:
			t.due = never
			if !t.isOver() {
				t.stuck = true
				d.stuck++
				d.total.stuck++
				stuck = append(stuck, t)
			}
		}
	}
	return late, stuck
}
