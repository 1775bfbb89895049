package dispatch

import (
	"context"
	"fmt"
)

// Close refuses new jobs from now on; those that were taken run. It does not wait.
func (d *Dispatcher[K, J]) Close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closeLocked()
}

func (d *Dispatcher[K, J]) closeLocked() {
	if d.closed {
		return
	}
	d.closed = true
	if d.shrinkAt != never {
		d.shrinkAt = never
		d.tidyLocked()
		d.rearmLocked()
	}
}

// Drain waits until every job has had its terminal callback and no run is going on,
// held and detached jobs included. Without a Close that is a passing moment. When ctx
// ends first it returns the context's error, wrapped, and changes nothing. A run or a
// hook must not call it.
func (d *Dispatcher[K, J]) Drain(ctx context.Context) error {
	quiet := d.whenQuiet()
	select {
	case <-quiet:
		return nil
	case <-ctx.Done():
	}
	select {
	case <-quiet: // both came at once, or ctx was over before
		return nil
	default:
		return fmt.Errorf("dispatch: drain: %w", ctx.Err())
	}
}

// Shutdown is Close and Drain.
func (d *Dispatcher[K, J]) Shutdown(ctx context.Context) error {
	d.Close()
	return d.Drain(ctx)
}

// Kill closes the dispatcher, ends the contexts of all runs, and abandons the jobs
// that are queued or held, whose callbacks are made before it returns. It does not
// wait for runs or detached jobs: they end as they end, except that a job that would
// run again is abandoned.
func (d *Dispatcher[K, J]) Kill() { d.kill(false) }

// DrainAndClose is Shutdown with an end: it returns true when everything has
// finished by the time ctx ends. Otherwise it ends the contexts of all runs, abandons
// every job that has not finished, and returns false without waiting for a run that
// goes on; what such a run or a late Complete says is ignored.
func (d *Dispatcher[K, J]) DrainAndClose(ctx context.Context) bool {
	if d.Shutdown(ctx) == nil {
		return true
	}
	d.kill(true)
	return false
}

// kill abandons the jobs that wait, and with all set those that are running or
// detached before them.
func (d *Dispatcher[K, J]) kill(all bool) {
	d.mu.Lock()
	d.closeLocked()
	d.killed = true
	cut, left := d.cutLocked()
	runs := append([]*Task[K, J](nil), d.runs...)
	d.rearmLocked()
	d.mu.Unlock()
	for _, t := range runs {
		t.ctx.finish(cancelled)
	}
	if all {
		for _, t := range left {
			d.abandon(t)
		}
	}
	d.abandonAll(cut)
}

// cutLocked takes the jobs that wait off their keys. It returns them as a list, and
// the jobs that do not wait.
func (d *Dispatcher[K, J]) cutLocked() (cut *Task[K, J], left []*Task[K, J]) {
	d.ready = laneList[K, J]{}
	d.holds = nil
	lanes := d.keys.lanes
	d.keys = keyMap[K, J]{lanes: make(map[K]*lane[K, J])}
	for key, l := range lanes {
		first := l.head
		if first.phase == queued || first.phase == held {
			l.tail.next, cut = cut, first
			continue
		}
		if first != l.tail {
			l.tail.next, cut = cut, first.next
		}
		first.next, l.tail, l.jobs = nil, first, 1
		d.keys.lanes[key] = l
		left = append(left, first)
	}
	return cut, left
}

// abandonAll settles a list of jobs that are off their keys.
func (d *Dispatcher[K, J]) abandonAll(list *Task[K, J]) {
	for t := list; t != nil; t = t.next {
		t.claim()
		d.onDone(t, abandoned, false)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for t := list; t != nil; {
		next := t.next
		d.forgetLocked(t, kindAbandon)
		t.lane, t.next = nil, nil
		t = next
	}
}

// abandon gives up a job that is running or detached, if it is not settled yet.
func (d *Dispatcher[K, J]) abandon(t *Task[K, J]) {
	if !t.claim() {
		return
	}
	d.onDone(t, abandoned, true)
	d.mu.Lock()
	d.releaseLocked(t, kindAbandon)
	d.rearmLocked()
	d.mu.Unlock()
}

// whenQuiet gives a channel that is closed at the next quiet moment.
func (d *Dispatcher[K, J]) whenQuiet() <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.quiet == nil {
		d.quiet = make(chan struct{})
	}
	quiet := d.quiet
	d.quietLocked()
	return quiet
}

// quietLocked tells the waiters if nothing is left to do and nobody is at work.
func (d *Dispatcher[K, J]) quietLocked() {
	if d.quiet != nil && d.pending == 0 && d.workers == 0 && d.alarms == 0 {
		close(d.quiet)
		d.quiet = nil
	}
}
