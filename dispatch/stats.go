package dispatch

// counters only grow. They are guarded by the dispatcher's mutex.
type counters struct {
	enqueued, done, failed, abandoned             uint64
	rejectedClosed, rejectedKeyFull, rejectedFull uint64
	panics, stuck                                 uint64
}

// Stats is a consistent view of a dispatcher. At every moment
//
//	Enqueued = Done + Failed + Abandoned + Queued + Running + Held + Detached
//
// A job counts as unfinished until its terminal callback has returned.
type Stats struct {
	Queued   int // waiting for their turn
	Running  int // in a run
	Held     int // waiting for the time that a Hold gave
	Detached int // waiting for Complete
	Stuck    int // runs that were reported as stuck and go on, abandoned ones included
	Keys     int // keys with jobs
	Workers  int // goroutines, those of stuck and of abandoned runs included

	Enqueued  uint64
	Done      uint64
	Failed    uint64
	Abandoned uint64
	Panics    uint64 // of jobs and of hooks
	Overruns  uint64 // runs that were ever reported as stuck

	RejectedClosed  uint64 // ErrClosed
	RejectedKeyFull uint64 // ErrKeyFull
	RejectedFull    uint64 // ErrFull
}

// Stats reads the counters.
func (d *Dispatcher[K, J]) Stats() Stats {
	d.mu.Lock()
	defer d.mu.Unlock()
	return Stats{
		Queued:   d.counts[queued],
		Running:  d.counts[running],
		Held:     d.counts[held],
		Detached: d.counts[detached],
		Stuck:    d.stuck,
		Keys:     len(d.keys.lanes),
		Workers:  d.workers,

		Enqueued:  d.total.enqueued,
		Done:      d.total.done,
		Failed:    d.total.failed,
		Abandoned: d.total.abandoned,
		Panics:    d.total.panics,
		Overruns:  d.total.stuck,

		RejectedClosed:  d.total.rejectedClosed,
		RejectedKeyFull: d.total.rejectedKeyFull,
		RejectedFull:    d.total.rejectedFull,
	}
}

// Unfinished lists the jobs that have had no terminal callback, for a report of what
// a stop leaves behind: the keys in any order, the jobs of a key in theirs. It takes
// time with their number while the dispatcher waits. Jobs that a kill is abandoning
// are not in it.
func (d *Dispatcher[K, J]) Unfinished() []*Task[K, J] {
	d.mu.Lock()
	defer d.mu.Unlock()
	list := make([]*Task[K, J], 0, d.pending)
	for _, l := range d.keys.lanes {
		for t := l.head; t != nil; t = t.next {
			list = append(list, t)
		}
	}
	return list
}
