package dingtalktest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/gorilla/websocket"
)

// ErrBusy means that the app has a blast running.
var ErrBusy = errors.New("a blast is running")

// BlastConfig sets up [App.Blast]. Without Count and Duration it goes on until
// its context ends.
type BlastConfig struct {
	Window        int           // most messages unanswered at a time; default: 256
	Size          int           // bytes of a frame, at least about 900; default: 1024
	Conversations int           // they take turns; default: 100
	Text          string        // repeated to fill the frame; default: "x"
	Rate          int           // messages a second; default: as fast as Window allows
	Count         int           // messages; default: no limit
	Duration      time.Duration // of pushing; default: no limit
	// Drain bounds the wait for the last answers. Default: 10 s.
	Drain time.Duration
}

func (c BlastConfig) withDefaults() BlastConfig {
	set(&c.Window, 256)
	set(&c.Size, 1024)
	set(&c.Conversations, 100)
	set(&c.Text, "x")
	set(&c.Drain, 10*time.Second)
	return c
}

func (c BlastConfig) validate() error {
	for _, f := range []struct {
		name     string
		n, limit int
	}{
		{"Window", c.Window, maxSlots},
		{"Size", c.Size, outLimit / 4},
		{"Conversations", c.Conversations, maxSlots},
		{"Rate", c.Rate, 1e9},
		{"Count", c.Count, 1e10},
		{"Duration", int(c.Duration), 1 << 62},
		{"Drain", int(c.Drain), 1 << 62},
	} {
		if f.n < 0 || f.n > f.limit {
			return fmt.Errorf("%s: must be between 0 and %d, is %d", f.name, f.limit, f.n)
		}
	}
	return nil
}

// BlastResult is what came of a blast.
type BlastResult struct {
	Pushed      int           // messages, each counted once
	Acked       int           // with code 200
	Refused     int           // answered with another code
	Redelivered int           // second pushes
	Duplicates  int           // answers beyond the first of a message
	Unanswered  int           // given up, or still open at the end
	Elapsed     time.Duration // first push to last answer
	// Latency from each message's last push to its answer.
	P50, P99, P999, Max time.Duration
}

// PerSecond is the rate of answered messages.
func (r BlastResult) PerSecond() float64 {
	if r.Elapsed <= 0 {
		return 0
	}
	return float64(r.Acked) / r.Elapsed.Seconds()
}

// Blast pushes small text messages to all sockets that take robot messages, as
// fast as they are answered, and blocks until it is done. The text of each is
// "#" and ten digits that count up over all conversations. It skips the records
// and the OnAck hook, knows one redelivery as Config says, and waits while there
// is no socket. One blast per app runs at a time, else ErrBusy; other pushes may
// go on beside it. When ctx ends, it returns what it has and the context's error.
func (a *App) Blast(ctx context.Context, cfg BlastConfig) (BlastResult, error) {
	if err := cfg.validate(); err != nil {
		return BlastResult{}, fmt.Errorf("blast: %w", err)
	}
	b, err := newBlast(a, cfg.withDefaults())
	if err != nil {
		return BlastResult{}, err
	}
	if !a.blast.CompareAndSwap(nil, b) {
		return BlastResult{}, ErrBusy
	}
	defer a.blast.Store(nil)
	err = b.run(ctx)
	return b.result(), err
}

// slot is one place in the window.
type slot struct {
	seq  int
	at   time.Time
	try  int
	busy bool
}

// blast is the state of one run. Its pusher is the goroutine that called Blast.
type blast struct {
	// immutable
	app    *App
	cfg    BlastConfig
	prefix []byte
	tpl    template
	wake   chan struct{} // room for one; never closed

	// owned by the pusher
	rng     *rand.Rand
	start   time.Time
	ready   []int      // slots to push now
	targets []*Session // where to

	mu    sync.Mutex // guards the following fields
	slots []slot
	free  []int
	next  int // seq of the next message
	last  time.Time
	hist  histogram
	res   BlastResult
}

func newBlast(a *App, cfg BlastConfig) (*blast, error) {
	run := int(a.gw.nextSerial() & 0xffff)
	tpl, err := newTemplate(a, run, cfg)
	if err != nil {
		return nil, fmt.Errorf("blast: %w", err)
	}
	b := &blast{
		app: a, cfg: cfg, prefix: blastPrefix(run), tpl: tpl,
		wake:  make(chan struct{}, 1),
		rng:   rand.New(rand.NewPCG(a.gw.cfg.Seed, uint64(run))),
		slots: make([]slot, cfg.Window),
		free:  make([]int, 0, cfg.Window),
	}
	for i := range b.slots {
		b.free = append(b.free, i)
	}
	return b, nil
}

// run pushes and waits until the blast is over.
func (b *blast) run(ctx context.Context) error {
	every := min(b.app.gw.cfg.RobotTimeout/4+1, 100*time.Millisecond)
	if b.cfg.Rate > 0 {
		every = time.Millisecond
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	b.start = time.Now()
	for {
		changed := b.aim()
		now := time.Now()
		b.fill(now)
		b.fire(now)
		if b.over(now) {
			return nil
		}
		select {
		case <-b.wake:
		case <-changed:
		case <-tick.C:
			b.retry(time.Now())
		case <-b.app.gw.done:
			return ErrClosed
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// aim finds the sockets to push to, and a channel that tells when they may be
// others.
func (b *blast) aim() <-chan struct{} {
	f := frame{typ: TypeCallback, topic: TopicRobot}
	b.app.mu.Lock()
	defer b.app.mu.Unlock()
	b.targets = b.targets[:0]
	for _, s := range b.app.sessions {
		if s.chosenLocked(&f) {
			b.targets = append(b.targets, s)
		}
	}
	return b.app.changed
}

// quota tells how many messages may have been pushed in all by now.
func (b *blast) quota(now time.Time) int {
	quota := int(1e10)
	elapsed := now.Sub(b.start)
	if b.cfg.Duration > 0 && elapsed >= b.cfg.Duration {
		return 0
	}
	if b.cfg.Rate > 0 {
		quota = int(elapsed.Seconds()*float64(b.cfg.Rate)) + 1
	}
	if b.cfg.Count > 0 {
		quota = min(quota, b.cfg.Count)
	}
	return quota
}

// fill gives free slots to new messages.
func (b *blast) fill(now time.Time) {
	if len(b.targets) == 0 {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	n := min(len(b.free), b.quota(now)-b.next)
	for ; n > 0; n-- {
		i := b.free[len(b.free)-1]
		b.free = b.free[:len(b.free)-1]
		b.slots[i] = slot{seq: b.next, at: now, busy: true}
		b.next++
		b.ready = append(b.ready, i)
	}
}

// fire pushes what is ready, each to a socket chosen at random.
func (b *blast) fire(now time.Time) {
	if len(b.targets) == 0 {
		return
	}
	for _, i := range b.ready {
		s := b.targets[b.rng.IntN(len(b.targets))]
		s.pushed.Add(1)
		b.mu.Lock()
		v := b.slots[i]
		b.mu.Unlock()
		b.write(s, patch{
			seq: v.seq, slot: i, try: v.try, at: now,
			conversation: v.seq % b.cfg.Conversations,
		})
	}
	if len(b.ready) > 0 {
		for _, s := range b.targets {
			s.sock.kick()
		}
	}
	b.ready = b.ready[:0]
}

// write puts a message into the socket's buffer; its writer is woken once for all
// that are ready. What a zombie, a black hole or a dead socket swallows is found
// by retry.
func (b *blast) write(s *Session, p patch) {
	if s.gagged.Load() {
		return
	}
	s.sock.put(websocket.TextMessage, len(b.tpl.bytes), func(dst []byte) []byte {
		return b.tpl.render(dst, p)
	})
}

// retry pushes again, or gives up, what has not been answered in time.
func (b *blast) retry(now time.Time) {
	if len(b.targets) == 0 {
		return
	}
	cfg := b.app.gw.cfg
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := range b.slots {
		v := &b.slots[i]
		if !v.busy || now.Sub(v.at) < cfg.RobotTimeout {
			continue
		}
		if v.try > 0 || cfg.Redelivery == RedeliverNever {
			b.res.Unanswered++
			b.releaseLocked(i)
			continue
		}
		v.try, v.at = v.try+1, now
		b.res.Redelivered++
		b.ready = append(b.ready, i)
	}
}

// releaseLocked makes a slot free for the next message.
func (b *blast) releaseLocked(i int) {
	b.slots[i].busy = false
	b.free = append(b.free, i)
}

// over tells whether nothing is left to push and to wait for, or the wait has
// been long enough.
func (b *blast) over(now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	timeUp := b.cfg.Duration > 0 && now.Sub(b.start) >= b.cfg.Duration
	allOut := b.cfg.Count > 0 && b.next >= b.cfg.Count
	if !timeUp && !allOut {
		return false
	}
	if len(b.free) == len(b.slots) {
		return true
	}
	last := b.start
	for i := range b.slots {
		if b.slots[i].at.After(last) {
			last = b.slots[i].at
		}
	}
	return now.Sub(last) >= b.cfg.Drain
}

// result sums up.
func (b *blast) result() BlastResult {
	b.mu.Lock()
	defer b.mu.Unlock()
	r := b.res
	r.Pushed = b.next
	r.Unanswered += len(b.slots) - len(b.free)
	if b.last.After(b.start) {
		r.Elapsed = b.last.Sub(b.start)
	}
	r.P50, r.P99 = b.hist.quantile(0.50), b.hist.quantile(0.99)
	r.P999, r.Max = b.hist.quantile(0.999), b.hist.quantile(1)
	return r
}

// answered takes an answer from a socket; it is false if it is not one of this
// blast's.
func (b *blast) answered(raw []byte, now time.Time) bool {
	id := scanID(raw)
	if !bytes.HasPrefix(id, b.prefix) || len(id) != frameIDSize {
		return false
	}
	seq, ok1 := number(id[seqAt : seqAt+seqSize])
	i, ok2 := number(id[slotAt : slotAt+slotSize])
	if !ok1 || !ok2 || i >= len(b.slots) {
		return false
	}
	ok := bytes.Contains(raw, codeOK) || scanCode(raw) == 200
	b.mu.Lock()
	v := &b.slots[i]
	switch {
	case !v.busy || v.seq != seq:
		b.res.Duplicates++
	case ok:
		b.res.Acked++
		b.settleLocked(i, now)
	default:
		b.res.Refused++
		b.settleLocked(i, now)
	}
	b.mu.Unlock()
	select {
	case b.wake <- struct{}{}:
	default:
	}
	return true
}

// settleLocked closes a message with its answer.
func (b *blast) settleLocked(i int, now time.Time) {
	b.hist.add(now.Sub(b.slots[i].at))
	b.last = now
	b.releaseLocked(i)
}
