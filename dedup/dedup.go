package dedup

import (
	"errors"
	"fmt"
	"hash/maphash"
	"sync"
	"time"
)

// State is what a window knows of an id.
type State uint8

// States of an id.
const (
	Fresh    State = iota // new: the caller owns it now and must commit or release it
	InFlight              // somebody owns it
	Seen                  // committed inside the window
)

var stateNames = [...]string{"fresh", "in flight", "seen"}

// String gives the word used in logs and metrics.
func (s State) String() string {
	if int(s) < len(stateNames) {
		return stateNames[s]
	}
	return fmt.Sprintf("state(%d)", uint8(s))
}

// Defaults of [Config].
const (
	DefaultWindow  = 24 * time.Hour
	DefaultMax     = 200_000
	DefaultWaiters = 64
)

// Config sets the bounds of a window. The zero value works.
type Config struct {
	// Window is how long a committed id is remembered. 0 means DefaultWindow.
	Window time.Duration
	// Max is how many committed ids are remembered. 0 means DefaultMax. One costs
	// about 60 bytes, whatever its size.
	Max int
	// Waiters is how many calls of Join may wait for one claim. 0 means
	// DefaultWaiters.
	Waiters int
}

func (c Config) withDefaults() Config {
	if c.Window == 0 {
		c.Window = DefaultWindow
	}
	if c.Max == 0 {
		c.Max = DefaultMax
	}
	if c.Waiters == 0 {
		c.Waiters = DefaultWaiters
	}
	return c
}

func (c Config) validate() error {
	switch {
	case c.Window < 0:
		return errors.New("dedup: Window must not be negative")
	case c.Max < 0:
		return errors.New("dedup: Max must not be negative")
	case c.Waiters < 0:
		return errors.New("dedup: Waiters must not be negative")
	}
	return nil
}

// Stats are the figures of a window at one moment.
type Stats struct {
	InFlight int // claims that nobody has ended
	Held     int // committed ids in memory; some may have expired
	// Evicted counts ids that were forgotten before their time, to keep to
	// Config.Max. A copy of one of them is taken for new.
	Evicted uint64
	// Crowded counts calls of Join that found Config.Waiters others waiting.
	Crowded uint64
}

// Window remembers ids of type K. Make one with New.
type Window[K comparable] struct {
	// immutable:
	cfg   Config
	start time.Time // times are kept as distances from it
	seeds [2]maphash.Seed

	mu sync.Mutex
	// guarded by mu:
	ids      map[fingerprint]int64           // inFlight, or when it was committed
	order    queue[record]                   // committed ids, oldest first
	waiters  map[fingerprint][]func(ok bool) // of claims that somebody joined
	inFlight int                             // how many of ids are claims
	peak     int                             // the most ids since the map was made
	evicted  uint64
	crowded  uint64
}

// inFlight is the commit time of a claim that has not ended.
const inFlight int64 = -1

// fingerprint stands for an id: two hashes under seeds that nobody can know. It
// has no pointers, so the collector skips the window, and it does not keep the
// message alive that the id was cut from. Two ids share one with a chance of
// 2^-128.
type fingerprint [2]uint64

// record is an id in the order of commits. It is out of date when the map has
// another time for the id.
type record struct {
	id fingerprint
	at int64
}

// New returns an empty window, or an error that names the wrong field.
func New[K comparable](cfg Config) (*Window[K], error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	return &Window[K]{
		cfg:     cfg,
		start:   time.Now(),
		seeds:   [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()},
		ids:     make(map[fingerprint]int64),
		waiters: make(map[fingerprint][]func(ok bool)),
	}, nil
}

// Claim asks for an id. After Fresh the caller owns it and must end the claim
// with Commit or Release; after InFlight and Seen nothing has changed.
func (w *Window[K]) Claim(k K) State {
	id := w.fingerprint(k)
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.claimLocked(id)
}

// Join is Claim, and waits for the owner if there is one: after InFlight,
// and only then, ended is called exactly once. It is told true after Commit and
// false after Release, on the goroutine that made that call, and may call any
// method. If Config.Waiters others are waiting already, ended is told false before
// Join returns. Waiters of one claim are told in the order they joined.
func (w *Window[K]) Join(k K, ended func(committed bool)) State {
	state, crowded := w.join(w.fingerprint(k), ended)
	if crowded {
		ended(false)
	}
	return state
}

func (w *Window[K]) join(id fingerprint, ended func(bool)) (state State, crowded bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if state = w.claimLocked(id); state != InFlight {
		return state, false
	}
	if len(w.waiters[id]) >= w.cfg.Waiters {
		w.crowded++
		return state, true
	}
	w.waiters[id] = append(w.waiters[id], ended)
	return state, false
}

// Commit ends a claim: the id is Seen from now on. Waiters are told before it
// returns. It does nothing if the id is not in flight.
func (w *Window[K]) Commit(k K) { tell(w.commit(w.fingerprint(k)), true) }

func (w *Window[K]) commit(id fingerprint) []func(bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if at, ok := w.ids[id]; !ok || at != inFlight {
		return nil
	}
	now := w.now()
	w.sweepLocked(now)
	w.ids[id] = now
	w.inFlight--
	w.order.push(record{id, now})
	if w.order.len > w.cfg.Max && w.forgetLocked() > now-int64(w.cfg.Window) {
		w.evicted++
	}
	return w.waitersLocked(id)
}

// Release ends a claim as if it had not been made: the next one to ask for the id
// is told Fresh. Waiters are told before it returns. It does nothing if the id is
// not in flight.
func (w *Window[K]) Release(k K) { tell(w.release(w.fingerprint(k)), false) }

func (w *Window[K]) release(id fingerprint) []func(bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if at, ok := w.ids[id]; !ok || at != inFlight {
		return nil
	}
	w.inFlight--
	w.dropLocked(id)
	return w.waitersLocked(id)
}

// Len is how many ids the window holds, in flight and committed. Some of the
// latter may have expired.
func (w *Window[K]) Len() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.ids)
}

// Stats gives the window's figures.
func (w *Window[K]) Stats() Stats {
	w.mu.Lock()
	defer w.mu.Unlock()
	return Stats{
		InFlight: w.inFlight,
		Held:     len(w.ids) - w.inFlight,
		Evicted:  w.evicted,
		Crowded:  w.crowded,
	}
}

func (w *Window[K]) fingerprint(k K) fingerprint {
	return fingerprint{
		maphash.Comparable(w.seeds[0], k),
		maphash.Comparable(w.seeds[1], k),
	}
}

// now is the time since the window was made. It never goes backwards.
func (w *Window[K]) now() int64 { return int64(time.Since(w.start)) }

func (w *Window[K]) claimLocked(id fingerprint) State {
	now := w.now()
	w.sweepLocked(now)
	at, ok := w.ids[id]
	switch {
	case ok && at == inFlight:
		return InFlight
	case ok && now-at < int64(w.cfg.Window):
		return Seen
	}
	w.ids[id] = inFlight
	w.inFlight++
	w.peak = max(w.peak, len(w.ids))
	return Fresh
}

// sweepLocked clears up to two expired ids. A commit adds only one, so what has
// expired shrinks while the window is in use.
func (w *Window[K]) sweepLocked(now int64) {
	for range 2 {
		oldest, ok := w.order.first()
		if !ok || now-oldest.at < int64(w.cfg.Window) {
			return
		}
		w.forgetLocked()
	}
}

// forgetLocked drops the oldest record, and its id unless that has been claimed
// again meanwhile. It returns when the record was made.
func (w *Window[K]) forgetLocked() int64 {
	oldest := w.order.pop()
	if at, ok := w.ids[oldest.id]; ok && at == oldest.at {
		w.dropLocked(oldest.id)
	}
	return oldest.at
}

// dropLocked takes an id out. A map keeps the room it once had, so an empty one
// that was large is given up.
func (w *Window[K]) dropLocked(id fingerprint) {
	const large = 4096
	delete(w.ids, id)
	if len(w.ids) == 0 && w.peak > large {
		w.ids, w.peak = make(map[fingerprint]int64), 0
	}
}

func (w *Window[K]) waitersLocked(id fingerprint) []func(bool) {
	if len(w.waiters) == 0 {
		return nil
	}
	fns := w.waiters[id]
	delete(w.waiters, id)
	return fns
}

// tell calls the waiters in order. One that panics does not take the others'
// call away.
func tell(waiters []func(bool), committed bool) {
	if len(waiters) == 0 {
		return
	}
	defer tell(waiters[1:], committed)
	waiters[0](committed)
}
