package dispatch

import (
	"sync"
	"time"
)

// Dispatcher runs jobs in order for each key. All its methods may be called from any
// number of goroutines. Keys must be equal to themselves, which rules out NaN.
type Dispatcher[K comparable, J any] struct {
	// Immutable.
	cfg     Config[K, J]
	clock   clock
	reserve int // the part of Pending that is for quiet keys

	mu sync.Mutex
	// Guarded by mu.
	keys    keyMap[K, J]
	ready   laneList[K, J] // keys with a job to run and no slot
	holds   holdHeap[K, J] // keys that wait for a time
	runs    []*Task[K, J]  // runs that have not returned
	counts  [phases]int    // unfinished jobs by phase
	pending int            // unfinished jobs
	total   counters

	workers   int // goroutines, stuck ones included
	searching int // workers that hold no job but are about to take one: 0 or 1
	stuck     int // runs that are stuck
	alarms    int // alarm callbacks going on
	timer     *time.Timer
	armed     int64 // when the timer goes off, or never
	shrinkAt  int64 // when to look whether the map of keys can shrink, or never

	closed bool
	killed bool
	quiet  chan struct{} // made by waiters, closed when quietLocked
}

// New makes a dispatcher. It starts nothing and costs little: goroutines and timers
// exist only while there is work. An error wraps ErrConfig and names the field.
func New[K comparable, J any](cfg Config[K, J]) (*Dispatcher[K, J], error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	cfg = cfg.withDefaults()
	return &Dispatcher[K, J]{
		cfg:     cfg,
		clock:   clock{epoch: time.Now(), timeout: max(cfg.Timeout, 0)},
		reserve: max(cfg.Pending/8, 1),
		armed:   never, shrinkAt: never,
	}, nil
}

func (d *Dispatcher[K, J]) task(key K, job J) *Task[K, J] {
	return &Task[K, J]{
		Key: key, Job: job, Runs: 1, d: d, due: never,
		ctx: runContext{clock: &d.clock},
	}
}

// Enqueue adds a job at the end of its key's queue. It never blocks. The error is
// ErrClosed, ErrKeyFull or ErrFull, and then the job has not been taken and gets no
// callback but OnRejected.
func (d *Dispatcher[K, J]) Enqueue(key K, job J) error {
	t := d.task(key, job)
	if err := d.add(t); err != nil {
		d.onRejected(key, job, err)
		return err
	}
	d.onQueued(t)
	return nil
}

func (d *Dispatcher[K, J]) add(t *Task[K, J]) error {
	t.queued = d.clock.now()
	d.mu.Lock()
	defer d.mu.Unlock() // deferred, because looking up an unhashable key panics
	l := d.keys.lanes[t.Key]
	if err := d.admitLocked(l); err != nil {
		return err
	}
	if l == nil {
		l = d.keys.add(t.Key)
	}
	l.push(t)
	d.counts[queued]++
	d.pending++
	d.total.enqueued++
	if l.head == t {
		d.ready.push(l)
		d.spawnLocked()
	}
	return nil
}

// admitLocked tells whether a job may join l, which is nil for a key without jobs.
func (d *Dispatcher[K, J]) admitLocked(l *lane[K, J]) error {
	jobs, keys := 0, len(d.keys.lanes)
	if l == nil {
		keys++
	} else {
		jobs = l.jobs
	}
	switch {
	case d.closed:
		d.total.rejectedClosed++
		return ErrClosed
	case jobs >= d.cfg.PerKey:
		d.total.rejectedKeyFull++
		return ErrKeyFull
	case d.pending < d.cfg.Pending-d.reserve:
		return nil
	case d.pending < d.cfg.Pending && jobs < max(d.cfg.Pending/keys, 1):
		return nil
	default:
		d.total.rejectedFull++
		return ErrFull
	}
}

// settle applies the outcome of a job that the caller has claimed, or that its run
// has detached. It is called without the lock and returns with it; true tells that
// a place is free and that OnFreed is due.
func (d *Dispatcher[K, J]) settle(t *Task[K, J], o Outcome) (freed bool) {
	switch o.kind {
	case kindDetach:
		d.mu.Lock()
		d.moveLocked(t, detached)
		return false
	case kindHold:
		d.mu.Lock()
		if !d.killed {
			d.holdLocked(t, o.after)
			return false
		}
		d.mu.Unlock()
		o = abandoned
	}
	d.onDone(t, o, true)
	d.mu.Lock()
	d.releaseLocked(t, o.kind)
	return !d.closed && d.cfg.Hooks.OnFreed != nil
}

// abandoned is the outcome that a stop gives.
var abandoned = Outcome{kind: kindAbandon, err: ErrAbandoned}

// moveLocked puts an unfinished job into another phase. A job that has been settled
// in the meantime stays so.
func (d *Dispatcher[K, J]) moveLocked(t *Task[K, J], to phase) {
	if t.phase == over {
		return
	}
	d.counts[t.phase]--
	d.counts[to]++
	t.phase = to
}

// releaseLocked takes a job that has ended out of its key and readies the next.
func (d *Dispatcher[K, J]) releaseLocked(t *Task[K, J], how kind) {
	l := t.lane
	d.forgetLocked(t, how)
	if l.pop() {
		d.ready.push(l)
		return
	}
	d.keys.remove(t.Key, l)
	if d.shrinkAt == never && d.keys.wasteful() {
		d.tidyLocked()
	}
}

// forgetLocked counts the end of a job.
func (d *Dispatcher[K, J]) forgetLocked(t *Task[K, J], how kind) {
	d.counts[t.phase]--
	t.phase = over
	t.due = never
	d.pending--
	switch how {
	case kindDone:
		d.total.done++
	case kindFailed:
		d.total.failed++
	default:
		d.total.abandoned++
	}
	d.quietLocked()
}

// holdLocked keeps the job of t at the head of its key until its time comes.
func (d *Dispatcher[K, J]) holdLocked(t *Task[K, J], after time.Duration) {
	n := t.again()
	n.queued = d.clock.after(d.clock.now(), max(after, 0))
	l := t.lane
	l.replaceHead(n)
	d.counts[t.phase]--
	t.phase, t.due = over, never
	if after <= 0 {
		d.counts[queued]++
		d.ready.push(l)
		return
	}
	n.phase = held
	d.counts[held]++
	d.holds.push(hold[K, J]{at: n.queued, lane: l})
	d.armLocked(n.queued)
}
