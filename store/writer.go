package store

import (
	"errors"
	"fmt"
	"sync"
	"time"
)

// Defaults of [WriterConfig].
const (
	DefaultMaxGroup       = 512
	DefaultMaxAppends     = 65_536
	DefaultMaxAppendBytes = 256 << 20
	DefaultFlushWithin    = 5 * time.Second
)

// WriterConfig sets the bounds of a writer. The zero value works.
type WriterConfig struct {
	// MaxGroup is the most ops in one commit. 0 means DefaultMaxGroup.
	MaxGroup int
	// MaxAppends is how many appends may wait or be under way. 0 means
	// DefaultMaxAppends. Other ops are not refused: each of them ends the work on
	// an item that is already counted somewhere.
	MaxAppends int
	// MaxAppendBytes is how many bytes of Message.Raw those appends may hold; a
	// message larger than that is never taken. 0 means DefaultMaxAppendBytes.
	MaxAppendBytes int64
	// Gather is the least time between the beginnings of two commits while ops come
	// in a steady stream, so that each commit holds several of them. An op that
	// comes alone never waits. 0 means that no op ever waits.
	Gather time.Duration
	// FlushWithin is how long the commits of a stopping writer may take. 0 means
	// DefaultFlushWithin.
	FlushWithin time.Duration
	// Observe, if set, is told of each commit on the writer's goroutine, after the
	// completers. It must not block.
	Observe func(Group)
}

func (c WriterConfig) withDefaults() WriterConfig {
	if c.MaxGroup == 0 {
		c.MaxGroup = DefaultMaxGroup
	}
	if c.MaxAppends == 0 {
		c.MaxAppends = DefaultMaxAppends
	}
	if c.MaxAppendBytes == 0 {
		c.MaxAppendBytes = DefaultMaxAppendBytes
	}
	if c.FlushWithin == 0 {
		c.FlushWithin = DefaultFlushWithin
	}
	return c
}

func (c WriterConfig) validate() error {
	switch {
	case c.MaxGroup < 0:
		return errors.New("store: MaxGroup must not be negative")
	case c.MaxAppends < 0:
		return errors.New("store: MaxAppends must not be negative")
	case c.MaxAppendBytes < 0:
		return errors.New("store: MaxAppendBytes must not be negative")
	case c.Gather < 0:
		return errors.New("store: Gather must not be negative")
	case c.FlushWithin < 0:
		return errors.New("store: FlushWithin must not be negative")
	}
	return nil
}

// Group is one commit as Observe sees it.
type Group struct {
	Ops  int
	Took time.Duration
	Err  error // nil, or why nothing of the group holds
}

// Completer is told what became of an op.
type Completer interface {
	// Committed is called once for each op submitted, after its commit, in the
	// order of submission, on the writer's goroutine: it must not block. err is
	// the group's error (then nothing of the group holds, and the op may be
	// submitted again), or the op's own Result. It may call Submit.
	Committed(op Op, err error)
}

// PanicError is what a panic of a store or a completer becomes.
type PanicError struct {
	Value any
	Stack []byte
}

// Error tells the value that was panicked with.
func (e *PanicError) Error() string { return fmt.Sprintf("panic: %v", e.Value) }

// WriterStats are the figures of a writer. Numbers without another word count
// since it was made.
type WriterStats struct {
	Commits, Failed uint64 // groups that hold, and groups that do not
	Ops             uint64 // in the groups that hold
	Refused         uint64 // appends over the bound
	Panics          uint64 // of the store and of completers

	Waiting            int   // ops submitted and not yet told, now
	WaitingAppends     int   // the appends among them
	WaitingAppendBytes int64 // what those hold

	LastGroup, LargestGroup   int // ops in a group that holds
	LastCommit, LongestCommit time.Duration
	LastError                 error       // of the last failed group
	LastPanic                 *PanicError // of the store or a completer
}

// Writer commits the ops of any number of goroutines to a store, all that are
// waiting at once in one group. It waits for more to come only as WriterConfig.Gather
// says. Make one with NewWriter and call Run once. Ops are committed, and their completers told, in
// the order in which Submit took them.
type Writer struct {
	// immutable:
	store Store
	cfg   WriterConfig
	wake  chan struct{} // one token at most: sent when asleep turns false; never closed

	// owned by Run:
	spare     []entry // the queue's other buffer
	ops       []Op    // the group being committed
	gathering gathering

	mu sync.Mutex
	// guarded by mu:
	queue  []entry
	asleep bool // Run waits for wake
	ran    bool // Run has been called
	closed bool // Run has ended
	stats  WriterStats
}

type entry struct {
	op Op
	c  Completer
}

// NewWriter returns a writer that is not running, or an error that names the
// wrong field. The store is the caller's to close, after Run has returned.
func NewWriter(s Store, cfg WriterConfig) (*Writer, error) {
	if s == nil {
		return nil, errors.New("store: writer without a store")
	}
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	return &Writer{store: s, cfg: cfg, wake: make(chan struct{}, 1)}, nil
}

// Submit hands over an op and returns at once; c, which may be nil, is told what
// became of it. The op is the writer's until then. It fails with ErrFull, for an
// Append only, when too many wait, and with ErrClosed after Run has ended; then c
// is not told. Before Run, ops are kept. Any number of goroutines may call it.
func (w *Writer) Submit(op Op, c Completer) error {
	wake, err := w.enqueue(op, c)
	if wake {
		w.wake <- struct{}{}
	}
	return err
}

func (w *Writer) enqueue(op Op, c Completer) (wake bool, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return false, ErrClosed
	}
	if a, ok := op.(*Append); ok && !w.reserveLocked(a) {
		return false, ErrFull
	}
	w.queue = append(w.queue, entry{op, c})
	w.stats.Waiting++
	wake, w.asleep = w.asleep, false
	return wake, nil
}

// reserveLocked makes room for an append, if there is any.
func (w *Writer) reserveLocked(a *Append) bool {
	s, size := &w.stats, appendSize(a)
	if s.WaitingAppends >= w.cfg.MaxAppends || s.WaitingAppendBytes+size > w.cfg.MaxAppendBytes {
		s.Refused++
		return false
	}
	s.WaitingAppends++
	s.WaitingAppendBytes += size
	return true
}

func appendSize(a *Append) int64 {
	if a.Message == nil {
		return 0
	}
	return int64(len(a.Message.Raw))
}

// Stats gives the writer's figures. Any number of goroutines may call it.
func (w *Writer) Stats() WriterStats {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.stats
}
