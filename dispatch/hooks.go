package dispatch

import "runtime/debug"

// The functions of this file call the hooks. None may be called with the lock.

func (d *Dispatcher[K, J]) onQueued(t *Task[K, J]) {
	if f := d.cfg.Hooks.OnQueued; f != nil {
		defer d.contain()
		f(t)
	}
}

func (d *Dispatcher[K, J]) onStart(t *Task[K, J]) {
	if f := d.cfg.Hooks.OnStart; f != nil {
		defer d.contain()
		f(t)
	}
}

// onDone makes the terminal callback of a job that the caller has claimed; ran tells
// whether the run of t has begun.
func (d *Dispatcher[K, J]) onDone(t *Task[K, J], o Outcome, ran bool) {
	if f := d.cfg.Hooks.OnDone; f != nil {
		defer d.contain()
		f(t, t.result(o, ran, d.clock.now()))
	}
}

func (d *Dispatcher[K, J]) onRejected(key K, job J, err error) {
	if f := d.cfg.Hooks.OnRejected; f != nil {
		defer d.contain()
		f(key, job, err)
	}
}

func (d *Dispatcher[K, J]) onStuck(t *Task[K, J]) {
	if f := d.cfg.Hooks.OnStuck; f != nil {
		defer d.contain()
		f(t)
	}
}

func (d *Dispatcher[K, J]) onFreed(key K) {
	if f := d.cfg.Hooks.OnFreed; f != nil {
		defer d.contain()
		f(key)
	}
}

// contain is deferred around a hook.
func (d *Dispatcher[K, J]) contain() {
	if v := recover(); v != nil {
		d.countPanic()
	}
}

// panicked is the outcome of a job that panicked with v.
func (d *Dispatcher[K, J]) panicked(v any) Outcome {
	d.countPanic()
	return Failed(&PanicError{Value: v, Stack: debug.Stack()})
}

func (d *Dispatcher[K, J]) countPanic() {
	d.mu.Lock()
	d.total.panics++
	d.mu.Unlock()
}
