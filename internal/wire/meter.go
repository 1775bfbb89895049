package wire

import (
	"sync/atomic"
	"time"
)

// Meter adds up what becomes of the frames of any number of sockets. The zero value
// is ready. All methods may be called from any number of goroutines.
type Meter struct {
	sent, bytes     [lanes]atomic.Int64
	wait, queued    atomic.Int64 // in nanoseconds
	dropped         [len(allReasons)]atomic.Int64
	resent, evicted atomic.Int64
}

// Totals are what a [Meter] has seen. Every lane and every reason is there from the
// start.
type Totals struct {
	Sent, Bytes map[Lane]int64 // frames that were written and their bytes
	// Wait is the time from the call to the end of the write, Queued the part of it
	// until the write began, each for all frames together.
	Wait, Queued    time.Duration
	Dropped         map[Reason]int64 // frames that were not
	Resent, Evicted int64
}

// Hooks gives the hooks that count.
func (m *Meter) Hooks() Hooks {
	return Hooks{
		Sent:    m.noteSent,
		Dropped: m.noteDropped,
		Resent:  func(Lane) { m.resent.Add(1) },
		Evicted: func(n int) { m.evicted.Add(int64(n)) },
	}
}

func (m *Meter) noteSent(s Sent) {
	if s.Err != nil {
		return // it is reported as dropped too
	}
	m.sent[s.Lane].Add(1)
	m.bytes[s.Lane].Add(int64(s.Bytes))
	m.wait.Add(int64(s.Wait))
	m.queued.Add(int64(s.Queued))
}

func (m *Meter) noteDropped(_ Lane, why Reason) {
	for i, r := range allReasons {
		if r == why {
			m.dropped[i].Add(1)
		}
	}
}

// Totals is a snapshot.
func (m *Meter) Totals() Totals {
	t := Totals{
		Sent: map[Lane]int64{}, Bytes: map[Lane]int64{}, Dropped: map[Reason]int64{},
		Wait: time.Duration(m.wait.Load()), Queued: time.Duration(m.queued.Load()),
		Resent: m.resent.Load(), Evicted: m.evicted.Load(),
	}
	for l := range lanes {
		t.Sent[l], t.Bytes[l] = m.sent[l].Load(), m.bytes[l].Load()
	}
	for i, r := range allReasons {
		t.Dropped[r] = m.dropped[i].Load()
	}
	return t
}
