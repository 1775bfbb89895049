package main

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/penstock-io/penstock/test/bench/internal/line"
)

// Of a run with a socket that stalls.
const (
	stallSockets = 64
	stallChats   = 2000
	stallRate    = 500                    // messages a second, far below what the machine can take
	stallWarm    = 10                     // seconds, before the windows that are compared
	stallWindow  = 20                     // seconds before and after; what follows the cut fits
	stallPoll    = 500 * time.Millisecond // a scrape takes a while of its own
	// cutWithin is the time-out of a write and two seconds, in which the edge looks
	// after each connection once or twice.
	cutWithin = 12
)

// Figures of these runs.
const (
	p99Before = "p99 of the others before"
	p99After  = "p99 of the others after"
	p99Change = "p99 after ÷ before"
	lastNew   = "last new frame after"
	cutAfter  = "cut off after"
)

// edgeStalled compares what the others notice of a socket that stops reading with
// what they notice when none does, in runs that take turns.
func edgeStalled(b *bench, row string) error {
	none, one := &samples{}, &samples{}
	for range b.opts.rounds {
		if err := b.stalledOnce(false, none); err != nil {
			return err
		}
		if err := b.stalledOnce(true, one); err != nil {
			return err
		}
	}
	b.out.record(row, "none stalls", none)
	b.out.record(row, "one of 64 stalls", one)
	b.out.tell(row, "p99 after ÷ p99 after when none stalls",
		median(one.get(p99After))/max(median(none.get(p99After)), 1e-3))
	b.out.atMost(row, p99Change, median(one.get(p99Change)), 1.1)
	b.out.atMost(row, cutAfter+", s", slices.Max(one.get(cutAfter)), cutWithin)
	for _, what := range []string{"lost", "inversions"} {
		b.out.atMost(row, what, slices.Max(append(one.get(what), none.get(what)...)), 0)
	}
	return nil
}

// stallRun is one run.
type stallRun struct {
	b   *bench
	c   chain
	all *crowd
	st  *stalling // nil: none stalls
	at  time.Time // when it did, or would have
	cut time.Time // zero: it was not seen to be cut
}

func (b *bench) stalledOnce(stall bool, got *samples) (err error) {
	r := stallRun{b: b}
	r.c, err = b.startEdge(stallSockets, 1024)
	defer r.c.finish()
	if err != nil {
		return err
	}
	r.all = newCrowd(r.c.edge, stallChats)
	defer r.all.leave()
	sockets := stallSockets
	if stall {
		r.st = r.all.joinStalling()
		sockets--
	}
	for range sockets {
		r.all.join(0)
	}
	if err := r.c.consumers(stallSockets); err != nil {
		return err
	}
	return r.measure(got)
}

func (r *stallRun) measure(got *samples) error {
	warm, window := r.b.seconds(stallWarm), stallWindow*time.Second
	var pushed int
	paced := make(chan error, 1)
	go func() {
		paced <- r.c.gateway.Ask(wordPace, paceArg{
			Rate: stallRate, Conversations: stallChats, Duration: warm + 2*window + time.Second,
		}, &pushed)
	}()
	err := r.watch(warm + window)
	if err == nil {
		err = r.stall()
	}
	if err == nil {
		err = r.watch(window)
	}
	if err := errors.Join(err, <-paced); err != nil {
		return err
	}
	late := r.c.handled(pushed, 2*time.Minute)
	return errors.Join(late, r.tell(pushed, got))
}

// stall has the socket stop, if there is one for it.
func (r *stallRun) stall() error {
	r.at = time.Now()
	if r.st == nil {
		return nil
	}
	close(r.st.now)
	select {
	case <-r.st.stopped:
		r.at = r.st.at
		return nil
	case <-r.st.ended:
		return fmt.Errorf("the socket ended before it stalled")
	}
}

// watch looks at the metrics for a while, as often when there is nothing to be seen.
func (r *stallRun) watch(during time.Duration) error {
	tick := time.NewTicker(stallPoll)
	defer tick.Stop()
	for began := time.Now(); time.Since(began) < during; <-tick.C {
		var f line.Figures
		if err := r.c.figures(&f); err != nil {
			return err
		}
		if r.st != nil && !r.at.IsZero() && r.cut.IsZero() && f.Slow > 0 {
			r.cut = time.Now()
			close(r.st.cut)
		}
	}
	return nil
}

// tell adds what was seen of a run. Conversations with a message that the stalled
// socket held are left out of the others' delays.
func (r *stallRun) tell(pushed int, got *samples) error {
	held := map[int]bool{}
	if r.st != nil {
		if r.cut.IsZero() {
			return fmt.Errorf("the stalled socket was not cut off within %d s", stallWindow)
		}
		<-r.st.ended
		for n := range r.st.rest {
			held[n%stallChats] = true
		}
		got.add(lastNew, r.st.last().Seconds(), "s")
		got.add(cutAfter, r.cut.Sub(r.at).Seconds(), "s")
		got.add("messages that it held", float64(len(r.st.rest)), "")
	}
	const window = stallWindow * time.Second
	others := func(chat int) bool { return !held[chat] }
	before := r.all.waits(r.at.Add(-window), r.at, others)
	after := r.all.waits(r.at, r.at.Add(window), others)
	got.add("p50 of the others before", ms(at(before, 50)), "ms")
	got.add("p50 of the others after", ms(at(after, 50)), "ms")
	got.add(p99Before, ms(at(before, 99)), "ms")
	got.add(p99After, ms(at(after, 99)), "ms")
	got.add(p99Change, float64(at(after, 99))/float64(max(at(before, 99), 1)), "")
	got.add("longest of the others after", ms(at(after, 100)), "ms")
	if r.st != nil {
		late := r.all.waits(r.at, r.at.Add(window), func(chat int) bool { return held[chat] })
		got.add("longest of those it held", at(late, 100).Seconds(), "s")
	}
	r.all.told(pushed, got)
	return nil
}

// at is a percentile of what is sorted.
func at(all []time.Duration, percent int) time.Duration {
	if len(all) == 0 {
		return 0
	}
	return all[min(len(all)*percent/100, len(all)-1)]
}
