package dispatch

import (
	"context"
	"math"
	"sync"
	"time"
)

// never is a time on the dispatcher's clock that does not come.
const never = math.MaxInt64

// clock counts nanoseconds from the making of a dispatcher. Immutable.
type clock struct {
	epoch   time.Time
	timeout time.Duration // of a run; 0: none
}

func (c *clock) now() int64 { return int64(time.Since(c.epoch)) }

// after gives the time d later than from, or never.
func (c *clock) after(from int64, d time.Duration) int64 {
	if int64(d) > never-from {
		return never
	}
	return from + int64(d)
}

// ending tells why a context is over.
type ending uint8

const (
	alive ending = iota
	cancelled
	expired
)

// runContext is the context of one run. It lives inside the Task, so a run needs no
// memory for it until somebody asks for the channel. It has no timer: the
// dispatcher's alarm ends it.
type runContext struct {
	// Immutable once the run has begun.
	clock   *clock
	started int64

	mu sync.Mutex
	// Guarded by mu.
	done  chan struct{} // made when asked for, closed by endLocked
	after *afterFunc    // what to call at the end
	end   ending
}

// afterFunc is a link in the list of functions that a context calls at its end.
type afterFunc struct {
	call       func()
	prev, next *afterFunc
}

var _ context.Context = (*runContext)(nil)

// Deadline implements context.Context.
func (c *runContext) Deadline() (time.Time, bool) {
	if c.clock.timeout == 0 {
		return time.Time{}, false
	}
	at := c.clock.after(c.started, c.clock.timeout)
	return c.clock.epoch.Add(time.Duration(at)), true
}

// Done implements context.Context.
func (c *runContext) Done() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.done == nil {
		c.done = make(chan struct{})
		if c.end != alive {
			close(c.done)
		}
	}
	return c.done
}

// Err implements context.Context.
func (c *runContext) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch c.end {
	case cancelled:
		return context.Canceled
	case expired:
		return context.DeadlineExceeded
	default:
		return nil
	}
}

// Value implements context.Context. A run's context carries no values.
func (c *runContext) Value(any) any { return nil }

// AfterFunc has f called when the context ends, unless the returned function is
// called before; that function tells whether it came in time. Package context looks
// for this method, so that a direct child needs no goroutine to watch this one. f
// is called on the goroutine that ends the context and has to be brief. On a context
// that is over it is called on a goroutine of its own, for which nobody waits: the
// caller may hold a lock that f takes, as package context does.
func (c *runContext) AfterFunc(f func()) (stop func() bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.end != alive {
		go f()
		return func() bool { return false }
	}
	a := &afterFunc{call: f, next: c.after}
	if a.next != nil {
		a.next.prev = a
	}
	c.after = a
	return func() bool { return c.forget(a) }
}

// forget takes a out of the list and tells whether it was still there.
func (c *runContext) forget(a *afterFunc) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if a.call == nil || c.end != alive {
		return false
	}
	if a.prev == nil {
		c.after = a.next
	} else {
		a.prev.next = a.next
	}
	if a.next != nil {
		a.next.prev = a.prev
	}
	*a = afterFunc{}
	return true
}

// finish ends the context if it has not ended.
func (c *runContext) finish(why ending) {
	c.mu.Lock()
	after := c.endLocked(why)
	c.mu.Unlock()
	after.run()
}

// endLocked ends the context if it has not ended and gives the functions that the
// caller has to run after letting go of the lock.
func (c *runContext) endLocked(why ending) *afterFunc {
	if c.end != alive {
		return nil
	}
	c.end = why
	if c.done != nil {
		close(c.done)
	}
	after := c.after
	c.after = nil
	return after
}

func (a *afterFunc) run() {
	for ; a != nil; a = a.next {
		a.call()
	}
}
