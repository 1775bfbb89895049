package dedup

import (
	"errors"
	"fmt"
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
	// about 3 times the size of its key.
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

// Window remembers ids of type K. Make one with New. It keeps the keys as they
// are: a string cut from a longer one keeps the longer one in memory, so clone
// it first.
type Window[K comparable] struct {
	cfg   Config    // immutable
	start time.Time // immutable; times are kept as distances from it

	mu sync.Mutex
	// guarded by mu:
	ids      map[K]int64           // inFlight, or when it was committed
	order    queue[record[K]]      // committed ids, oldest first
	waiters  map[K][]func(ok bool) // of claims that somebody joined
	inFlight int                   // how many of ids are claims
	peak     int                   // the most ids since the map was made
	evicted  uint64
	crowded  uint64
}

// inFlight is the commit time of a claim that has not ended.
const inFlight int64 = -1

// record is an id in the order of commits. It is out of date when the map has
// another time for the id.
type record[K comparable] struct {
	key K
	at  int64
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
		ids:     make(map[K]int64),
		waiters: make(map[K][]func(ok bool)),
	}, nil
}

// Claim asks for an id. After Fresh the caller owns it and must end the claim
// with Commit or Release; after InFlight and Seen nothing has changed.
func (w *Window[K]) Claim(k K) State {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.claimLocked(k)
}

// Join is Claim, and waits for the owner if there is one: after InFlight,
// and only then, ended is called exactly once. It is told true after Commit and
// false after Release, on the goroutine that made that call, and may call any
// method. If Config.Waiters others are waiting already, ended is told false before
// Join returns. Waiters of one claim are told in the order they joined.
func (w *Window[K]) Join(k K, ended func(committed bool)) State {
	state, crowded := w.join(k, ended)
	if crowded {
		ended(false)
	}
	return state
}

func (w *Window[K]) join(k K, ended func(bool)) (state State, crowded bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if state = w.claimLocked(k); state != InFlight {
		return state, false
	}
	if len(w.waiters[k]) >= w.cfg.Waiters {
		w.crowded++
		return state, true
	}
	w.waiters[k] = append(w.waiters[k], ended)
	return state, false
}

// Commit ends a claim: the id is Seen from now on. Waiters are told before it
// returns. It does nothing if the id is not in flight.
func (w *Window[K]) Commit(k K) { tell(w.commit(k), true) }

func (w *Window[K]) commit(k K) []func(bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if at, ok := w.ids[k]; !ok || at != inFlight {
		return nil
	}
	now := w.now()
	w.sweepLocked(now)
	w.ids[k] = now
	w.inFlight--
	w.order.push(record[K]{k, now})
	if w.order.len > w.cfg.Max && w.forgetLocked() > now-int64(w.cfg.Window) {
		w.evicted++
	}
	return w.waitersLocked(k)
}

// Release ends a claim as if it had not been made: the next one to ask for the id
// is told Fresh. Waiters are told before it returns. It does nothing if the id is
// not in flight.
func (w *Window[K]) Release(k K) { tell(w.release(k), false) }

func (w *Window[K]) release(k K) []func(bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if at, ok := w.ids[k]; !ok || at != inFlight {
		return nil
	}
	w.inFlight--
	w.dropLocked(k)
	return w.waitersLocked(k)
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

// now is the time since the window was made. It never goes backwards.
func (w *Window[K]) now() int64 { return int64(time.Since(w.start)) }

func (w *Window[K]) claimLocked(k K) State {
	now := w.now()
	w.sweepLocked(now)
	at, ok := w.ids[k]
	switch {
	case ok && at == inFlight:
		return InFlight
	case ok && now-at < int64(w.cfg.Window):
		return Seen
	}
	w.ids[k] = inFlight
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
	if at, ok := w.ids[oldest.key]; ok && at == oldest.at {
		w.dropLocked(oldest.key)
	}
	return oldest.at
}

// dropLocked takes an id out. A map keeps the room it once had, so an empty one
// that was large is given up.
func (w *Window[K]) dropLocked(k K) {
	const large = 4096
	delete(w.ids, k)
	if len(w.ids) == 0 && w.peak > large {
		w.ids, w.peak = make(map[K]int64), 0
	}
}

func (w *Window[K]) waitersLocked(k K) []func(bool) {
	if len(w.waiters) == 0 {
		return nil
	}
	fns := w.waiters[k]
	delete(w.waiters, k)
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
