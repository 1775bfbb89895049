package wire

import (
	"bytes"
	"fmt"
	"sync"
)

// State is how far a tracked frame has come.
type State uint8

// States of a tracked frame.
const (
	Unknown State = iota // never sent, dropped unwritten, or long over
	Queued               // on its way to the connection, also when it is sent again
	Written              // handed to the connection; kept until the peer acknowledges it
	Acked                // the peer has acknowledged it
	Evicted              // written, but kept no longer, for want of room
)

// String is the state's name.
func (s State) String() string {
	return [...]string{"unknown", "queued", "written", "acked", "evicted"}[min(s, Evicted)]
}

// DuplicateError refuses a frame whose id is tracked already. The socket is as it
// was.
type DuplicateError struct {
	// State is what has become of the first frame of that id.
	State State
}

// Error implements error.
func (e *DuplicateError) Error() string {
	return fmt.Sprintf("frame of this id is %s already", e.State)
}

// Tracker keeps the frames of one socket that were sent with an id until the peer
// acknowledges them. It is bounded by count and bytes: the oldest gives way and is
// counted. What it keeps stays reserved in the peer's budget until then, or until
// the socket is closed; the states outlive the socket. All methods may be called
// from any number of goroutines.
type Tracker struct {
	// immutable
	maxFrames, maxBytes int
	peer                *Peer
	hooks               *Hooks

	mu sync.Mutex
	// guarded by mu
	entries       map[string]*entry // nil until there is one
	kept          chain             // written, the oldest first
	bytes         int               // in kept
	graves        []string          // ids that are acked or evicted, a ring
	grave         int               // the oldest of a full ring
	evictions     uint64
	closed        bool
	resent, acked uint64
}

// TrackerStats counts the frames of a tracker.
type TrackerStats struct {
	// Frames and Bytes are kept now.
	Frames, Bytes int
	// Acked, Resent and Evicted are totals.
	Acked, Resent, Evicted uint64
}

// entry is what is known of one id. The tracker's mutex guards it.
type entry struct {
	id         string
	state      State
	sent       bool // written at least once
	lane       Lane
	b          []byte // while kept
	held       int    // bytes reserved for b
	prev, next *entry // in the chain, while kept
}

// State tells what has become of the frame with this id.
func (t *Tracker) State(id string) State {
	t.mu.Lock()
	defer t.mu.Unlock()
	if e := t.entries[id]; e != nil {
		return e.state
	}
	return Unknown
}

// Stats is a snapshot of the counters.
func (t *Tracker) Stats() TrackerStats {
	t.mu.Lock()
	defer t.mu.Unlock()
	return TrackerStats{t.kept.n, t.bytes, t.acked, t.resent, t.evictions}
}

// Ack notes that the peer has the frame, or that nobody wants it any more, and
// gives back its bytes. It returns the state that it found; for Unknown and Acked
// nothing has changed. A frame may be acknowledged before its write is accounted
// for, since the peer can be faster than we are.
func (t *Tracker) Ack(id string) State {
	t.mu.Lock()
	e := t.entries[id]
	if e == nil || e.state == Acked {
		t.mu.Unlock()
		if e == nil {
			return Unknown
		}
		return Acked
	}
	found, freed := e.state, t.dropLocked(e)
	e.state = Acked
	t.acked++
	if found != Evicted { // it has its grave already
		t.buryLocked(id)
	}
	t.mu.Unlock()
	t.free(freed)
	return found
}

func (t *Tracker) free(n int) {
	t.peer.release([classes]int{ContentBytes: n})
}

// begin registers a frame, unless its id is known; then it returns the state.
func (t *Tracker) begin(id string, l Lane) (*entry, State) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if e := t.entries[id]; e != nil {
		return nil, e.state
	}
	if t.entries == nil {
		t.entries = make(map[string]*entry)
	}
	e := &entry{id: id, state: Queued, lane: l}
	t.entries[id] = e
	return e, Queued
}

// lift moves a written frame out of tracking into o, to be sent again. It returns
// the state: Written if o has it now.
func (t *Tracker) lift(id string) (*op, State) {
	t.mu.Lock()
	defer t.mu.Unlock()
	e := t.entries[id]
	if e == nil {
		return nil, Unknown
	}
	if e.state != Written || e.b == nil {
		return nil, e.state
	}
	o := newOp(e.lane)
	o.b, o.held, o.entry = e.b, e.held, e
	e.held = 0
	t.dropLocked(e)
	e.state = Queued
	return o, Written
}

// settle takes over the bytes of a frame that was written, now or before a resend
// that failed. What nobody needs stays with o, to be released by the caller.
func (t *Tracker) settle(o *op, err error) {
	e := o.entry
	o.entry = nil
	t.mu.Lock()
	freed, evicted := 0, 0
	switch {
	case e.state != Queued: // acknowledged meanwhile
	case err != nil && !e.sent:
		delete(t.entries, e.id)
	default:
		t.keepLocked(e, o)
		freed, evicted = t.evictLocked()
	}
	t.mu.Unlock()
	t.free(freed)
	t.hooks.evicted(evicted)
}

func (t *Tracker) keepLocked(e *entry, o *op) {
	e.state, e.sent = Written, true
	if t.closed {
		return
	}
	e.b, e.held = o.b, o.held
	o.held = 0
	if len(e.b) <= keptFrame {
		// The buffer may be far larger than the frame, and serves the next one.
		e.b = bytes.Clone(e.b)
	} else {
		o.b = nil
	}
	t.kept.push(e)
	t.bytes += len(e.b)
}

// evictLocked drops the oldest until the rest fits, and returns the bytes that
// were reserved for them and their number.
func (t *Tracker) evictLocked() (freed, n int) {
	for t.kept.n > t.maxFrames || t.bytes > t.maxBytes {
		e := t.kept.head
		freed += t.dropLocked(e)
		e.state = Evicted
		t.buryLocked(e.id)
		n++
	}
	t.evictions += uint64(n)
	return freed, n
}

// dropLocked takes the bytes of a frame out and returns how many are reserved.
func (t *Tracker) dropLocked(e *entry) int {
	if e.b == nil {
		return 0
	}
	t.kept.remove(e)
	t.bytes -= len(e.b)
	freed := e.held
	e.b, e.held = nil, 0
	return freed
}

// maxGraves bounds the ids that are remembered after their frames are over.
const maxGraves = 1024

// buryLocked remembers an id that is over, in place of the oldest such.
func (t *Tracker) buryLocked(id string) {
	if len(t.graves) < min(t.maxFrames, maxGraves) {
		t.graves = append(t.graves, id)
		return
	}
	delete(t.entries, t.graves[t.grave])
	t.graves[t.grave] = id
	t.grave = (t.grave + 1) % len(t.graves)
}

// close gives every byte back. The states stay.
func (t *Tracker) close() {
	t.mu.Lock()
	t.closed = true
	freed := 0
	for t.kept.n > 0 {
		freed += t.dropLocked(t.kept.head)
	}
	t.mu.Unlock()
	t.free(freed)
}

func (t *Tracker) noteResent() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.resent++
}

// chain is a queue out of the middle of which entries can be taken.
type chain struct {
	head, tail *entry
	n          int
}

func (c *chain) push(e *entry) {
	e.prev, e.next = c.tail, nil
	if c.tail == nil {
		c.head = e
	} else {
		c.tail.next = e
	}
	c.tail = e
	c.n++
}

func (c *chain) remove(e *entry) {
	if e.prev == nil {
		c.head = e.next
	} else {
		e.prev.next = e.next
	}
	if e.next == nil {
		c.tail = e.prev
	} else {
		e.next.prev = e.prev
	}
	e.prev, e.next = nil, nil
	c.n--
}
