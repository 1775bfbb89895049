package dispatch

import (
	"context"
	"fmt"
	"time"
)

// Defaults of a Config.
const (
	DefaultWorkers = 8
	DefaultPerKey  = 256
	DefaultPending = 2048
	DefaultTimeout = 120 * time.Second
)

// Func runs a job. It is called from many goroutines, never from two for one key.
// ctx ends at the deadline, on a kill, and when Func has returned; it carries no
// values. A panic counts as Failed with a *PanicError.
type Func[K comparable, J any] func(ctx context.Context, t *Task[K, J]) Outcome

// Config is the shape of a dispatcher. The zero value of every field but Run works.
type Config[K comparable, J any] struct {
	// Run is called for every job. Required.
	Run Func[K, J]
	// Workers is how many jobs run at once. Default 8.
	Workers int
	// PerKey is how many jobs one key may hold, the one that runs, is held or is
	// detached included. Default 256.
	PerKey int
	// Pending is how many jobs there may be in all: queued, running, held and
	// detached. The last eighth of it, at least one place, is a reserve for keys
	// that hold less than their share, Pending divided by the number of keys that
	// hold jobs. Default 2048.
	Pending int
	// Timeout is how long a run may take. Negative: for ever. Default 120 s.
	Timeout time.Duration
	// Spares is how many stuck runs may have their slot replaced at one time.
	// Negative: none. Default: as many as Workers.
	Spares int
	// Hooks are told what happens. Default: nobody is.
	Hooks Hooks[K, J]
}

// Hooks are called outside all locks, so they may call Enqueue, Complete, Close and
// Kill; they may not wait for the dispatcher to drain. They run on the goroutine of
// what they report and hold it up, so they have to be brief. Any of them may be nil.
// A panic in one is counted and goes no further; runtime.Goexit in one is not allowed,
// for it would take the job's key with it.
type Hooks[K comparable, J any] struct {
	// OnQueued: Enqueue took the job. It is called before Enqueue returns, perhaps
	// after the run has begun.
	OnQueued func(t *Task[K, J])
	// OnStart: a run is about to begin, on this goroutine.
	OnStart func(t *Task[K, J])
	// OnDone is the terminal callback, exactly one for each job. The key is still
	// held and the job still counts, so callbacks of one key come one after another,
	// in order; only those that a kill makes for what waits may come beside and
	// before the one of the job that runs.
	OnDone func(t *Task[K, J], r Result)
	// OnRejected: Enqueue is about to return err.
	OnRejected func(key K, job J, err error)
	// OnStuck: the run goes on a second after its context ended at the deadline. It
	// is called once for a run.
	OnStuck func(t *Task[K, J])
	// OnFreed: after a terminal callback, the place of the job can be used again. The
	// next job of the key may have begun. It is not called once the dispatcher is
	// closed.
	OnFreed func(key K)
}

// Result is how a job ended.
type Result struct {
	// Err is nil when the job ran well, and ErrAbandoned when it was abandoned.
	Err error
	// Abandoned tells that a stop gave the job up. Its run may still be going on.
	Abandoned bool
	// Wait is from Enqueue, or from the end of the last hold, to the start of the
	// last run, or to the end if there was none.
	Wait time.Duration
	// Took is from the start of the last run to the end of the job.
	Took time.Duration
}

func (c Config[K, J]) withDefaults() Config[K, J] {
	if c.Workers == 0 {
		c.Workers = DefaultWorkers
	}
	if c.PerKey == 0 {
		c.PerKey = DefaultPerKey
	}
	if c.Pending == 0 {
		c.Pending = DefaultPending
	}
	if c.Timeout == 0 {
		c.Timeout = DefaultTimeout
	}
	if c.Spares == 0 {
		c.Spares = c.Workers
	}
	c.Spares = max(c.Spares, 0)
	return c
}

func (c Config[K, J]) validate() error {
	if c.Run == nil {
		return fmt.Errorf("%w: Run: is required", ErrConfig)
	}
	for _, f := range []struct {
		name  string
		value int
	}{{"Workers", c.Workers}, {"PerKey", c.PerKey}, {"Pending", c.Pending}} {
		if f.value < 0 {
			return fmt.Errorf("%w: %s: is %d, must not be negative", ErrConfig, f.name, f.value)
		}
	}
	return nil
}
