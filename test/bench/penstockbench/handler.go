package main

import (
	"context"
	"math/rand/v2"
	"runtime"
	"runtime/metrics"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/penstock-io/penstock/message"
	"github.com/penstock-io/penstock/router"
	"github.com/penstock-io/penstock/test/bench/internal/line"
)

// handler counts what it is given, works a while, and answers nothing.
type handler struct {
	// immutable
	work   time.Duration
	jitter bool
	ledger *ledger // nil: the order is not checked

	handled  atomic.Int64
	firstJob atomic.Int64 // ns since the process began
	firstAck atomic.Int64
}

// note keeps the time of what happens first.
func note(at *atomic.Int64) {
	if at.Load() == 0 {
		at.CompareAndSwap(0, int64(time.Since(began)))
	}
}

// Handle implements router.Handler.
func (h *handler) Handle(ctx context.Context, m *message.Inbound) (router.Result, error) {
	note(&h.firstJob)
	if h.ledger != nil {
		h.ledger.begin(m)
		defer h.ledger.end(m)
	}
	if h.work > 0 {
		if err := h.toil(ctx); err != nil {
			return router.Result{}, err
		}
	}
	h.handled.Add(1)
	return router.Result{}, nil
}

func (h *handler) toil(ctx context.Context) error {
	d := h.work
	if h.jitter {
		d = rand.N(d)
	}
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (h *handler) figures() line.Figures {
	f := line.Figures{
		Handled: h.handled.Load(), Goroutines: runtime.NumGoroutine(),
		Up:       time.Since(began),
		FirstJob: time.Duration(h.firstJob.Load()), FirstAck: time.Duration(h.firstAck.Load()),
	}
	samples := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}, {Name: "/gc/heap/allocs:objects"}}
	metrics.Read(samples)
	f.AllocBytes, f.Allocs = samples[0].Value.Uint64(), samples[1].Value.Uint64()
	if h.ledger != nil {
		h.ledger.report(&f)
	}
	return f
}

// ledger checks order by the number at the start of each text of a blast.
type ledger struct {
	mu sync.Mutex
	// guarded by mu
	seen                             map[int]bool
	last                             map[message.ConversationID]int
	running                          map[message.ConversationID]bool
	duplicates, inversions, overlaps int64
}

func newLedger() *ledger {
	return &ledger{
		seen:    make(map[int]bool),
		last:    make(map[message.ConversationID]int),
		running: make(map[message.ConversationID]bool),
	}
}

// numberLen is the length of "#" and ten digits.
const numberLen = 11

func (l *ledger) begin(m *message.Inbound) {
	n := -1
	if len(m.Text) >= numberLen {
		n, _ = strconv.Atoi(m.Text[1:numberLen]) // a wrong one shows as a duplicate
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.seen[n] {
		l.duplicates++
	}
	l.seen[n] = true
	k := m.Conversation.ID
	if last, ok := l.last[k]; ok && n < last {
		l.inversions++
	}
	l.last[k] = n
	if l.running[k] {
		l.overlaps++
	}
	l.running[k] = true
}

func (l *ledger) end(m *message.Inbound) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.running[m.Conversation.ID] = false
}

func (l *ledger) report(f *line.Figures) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f.Duplicates, f.Inversions, f.Overlaps = l.duplicates, l.inversions, l.overlaps
}
