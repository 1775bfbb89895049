package main

import (
	"slices"
	"time"

	"github.com/penstock-io/penstock/integrations/dingtalk/dingtalktest"
	"github.com/penstock-io/penstock/test/bench/internal/line"
)

// slowHandler measures how long acknowledgements take while handlers sit. The bare
// loop has no handler, so it is the floor.
func slowHandler(b *bench, row string) error {
	clients := b.chosen(clientBare, clientPenstock, clientSDK)
	got := map[string]*samples{}
	for range b.opts.rounds {
		for _, c := range clients {
			if got[c] == nil {
				got[c] = &samples{}
			}
			if err := b.paced(c, got[c]); err != nil {
				got[c].note = err.Error()
			}
		}
	}
	for _, c := range clients {
		b.out.record(row, c, got[c])
	}
	b.out.atMost(row, "ack p99 ÷ bare loop",
		ratio(got[clientPenstock].get("p99"), got[clientBare].get("p99")), 1.5)
	return nil
}

func (b *bench) paced(client string, got *samples) error {
	var args []string
	if client != clientBare {
		args = []string{"-work", "2s"}
	}
	p, err := b.start(client, 1, args...)
	if err != nil {
		return err
	}
	defer p.end()
	before, err := cpu(p.client.PID())
	if err != nil {
		return err
	}
	var r dingtalktest.BlastResult
	err = p.gateway.Ask(wordBlast, dingtalktest.BlastConfig{
		Size: frameSize, Rate: 500, Window: 100_000, Duration: b.seconds(8),
	}, &r)
	if err != nil {
		return err
	}
	used, err := cpu(p.client.PID())
	if err != nil {
		return err
	}
	got.add("p50", ms(r.P50), "ms")
	got.add("p99", ms(r.P99), "ms")
	got.add(perMessage, float64(used-before)/1e3/float64(max(r.Acked, 1)), "µs")
	got.add("never answered", float64(r.Unanswered), "")
	return nil
}

// order pushes more than the handlers can take and looks at what they saw.
func order(b *bench, row string) error {
	got := &samples{}
	for range b.opts.rounds {
		if err := b.ordered(got); err != nil {
			return err
		}
	}
	b.out.record(row, clientPenstock, got)
	for _, what := range []string{"inversions", "overlaps", "lost", "duplicates"} {
		b.out.atMost(row, what, slices.Max(got.value[what]), 0)
	}
	return nil
}

func (b *bench) ordered(got *samples) error {
	p, err := b.start(clientPenstock, 1, "-ledger", "-jitter", "-work", "5ms")
	if err != nil {
		return err
	}
	defer p.end()
	var r dingtalktest.BlastResult
	err = p.gateway.Ask(wordBlast, dingtalktest.BlastConfig{
		Size: frameSize, Rate: 5000, Conversations: 20, Window: 4096, Count: 22_500,
	}, &r)
	if err != nil {
		return err
	}
	got.add(rate, r.PerSecond(), "")
	return p.addOrder(got, r)
}

// addOrder waits for the handlers and adds what they saw.
func (p *pair) addOrder(got *samples, r dingtalktest.BlastResult) error {
	late := p.settle(clientPenstock, int64(r.Pushed))
	f, err := p.figures()
	if err != nil {
		return err
	}
	got.add("messages", float64(r.Pushed), "")
	got.add("inversions", float64(f.Inversions), "")
	got.add("overlaps", float64(f.Overlaps), "")
	got.add("duplicates", float64(f.Duplicates), "")
	got.add("lost", float64(int64(r.Pushed)-(f.Handled-f.Duplicates)), "")
	if late != nil {
		got.note = late.Error()
	}
	return nil
}

// maxGap is the longest time without a message at a planned redial.
const maxGap = 50 * time.Millisecond

func redial(b *bench, row string) error {
	p, err := b.start(clientPenstock, 1, "-ledger")
	if err != nil {
		return err
	}
	defer p.end()
	arg := redialArg{Times: 100, Rate: 200, Every: 300 * time.Millisecond}
	if b.opts.quick {
		arg.Times = 20
	}
	var r redialResult
	if err := p.gateway.Ask(wordRedial, arg, &r); err != nil {
		return err
	}
	got := &samples{}
	slices.Sort(r.Gaps)
	got.add("redials", float64(len(r.Gaps)), "")
	if n := len(r.Gaps); n > 0 {
		got.add("gap p50", ms(r.Gaps[n/2]), "ms")
		got.add("gap max", ms(r.Gaps[n-1]), "ms")
	}
	got.add("pushed again", float64(r.Blast.Redelivered), "")
	got.add("never answered", float64(r.Blast.Unanswered), "")
	if err := p.addOrder(got, r.Blast); err != nil {
		return err
	}
	b.out.record(row, clientPenstock, got)
	b.out.atLeast(row, "redials", float64(len(r.Gaps)), float64(arg.Times))
	b.out.atMost(row, "longest gap, ms", median(got.value["gap max"]), ms(maxGap))
	for _, what := range []string{"inversions", "overlaps", "lost", "duplicates"} {
		b.out.atMost(row, what, median(got.value[what]), 0)
	}
	return nil
}

func blackHole(b *bench, row string) error {
	got := &samples{}
	p, err := b.start(clientPenstock, 1)
	if err != nil {
		return err
	}
	defer p.end()
	var took time.Duration
	if err := p.gateway.Ask(wordHole, struct{}{}, &took); err != nil {
		return err
	}
	got.add("until the next socket", took.Seconds(), "s")
	b.out.record(row, clientPenstock, got)
	b.out.atMost(row, "seconds until the next socket", took.Seconds(), 90)
	return nil
}

// stop ends Penstock with 200 jobs of 100 ms on its hands and a second to do it in.
func stop(b *bench, row string) error {
	const jobs = 200
	got := &samples{}
	for range b.opts.rounds {
		f, err := b.stopOnce(jobs)
		if err != nil {
			return err
		}
		got.add("took", f.StopTook.Seconds(), "s")
		got.add("finished", float64(f.Handled), "")
		got.add("named as unfinished", float64(f.Unfinished), "")
		got.add("unaccounted", float64(jobs-f.Handled-int64(f.Unfinished)), "")
	}
	b.out.record(row, clientPenstock, got)
	b.out.atMost(row, "seconds", slices.Max(got.value["took"]), 1.1)
	b.out.atMost(row, "jobs neither finished nor named", slices.Max(got.value["unaccounted"]), 0)
	return nil
}

func (b *bench) stopOnce(jobs int) (f line.Figures, err error) {
	p, err := b.start(clientPenstock, 1, "-work", "100ms", "-stop-within", "1s")
	if err != nil {
		return f, err
	}
	defer p.end()
	err = p.gateway.Ask(wordBlast, dingtalktest.BlastConfig{
		Size: frameSize, Count: jobs, Window: jobs, Conversations: jobs,
	}, nil)
	if err != nil {
		return f, err
	}
	err = p.client.Ask("stop", nil, &f)
	return f, err
}

// idle measures what a connection without traffic costs.
func idle(b *bench, row string) error {
	many := maxApps
	if b.opts.quick {
		many = maxApps / 4
	}
	for _, c := range b.chosen(clientBare, clientSDK, clientPenstock) {
		got := &samples{}
		if err := b.idleClient(c, many, got); err != nil {
			got.note = err.Error()
		}
		b.out.record(row, c, got)
		if c == clientPenstock {
			b.out.atMost(row, "KiB per connection", median(got.value[perSocket]), 24)
			b.out.atMost(row, "goroutines per connection", median(got.value[goroutines]), 2)
		}
	}
	return nil
}

const (
	perSocket  = "RSS per connection"
	goroutines = "goroutines per connection"
)

func (b *bench) idleClient(client string, many int, got *samples) error {
	one, few, err := b.idleOnce(client, 1)
	if err != nil {
		return err
	}
	all, f, err := b.idleOnce(client, many)
	if err != nil {
		return err
	}
	got.add("connections", float64(many), "")
	got.add(perSocket, float64(all-one)/float64(many-1), "KiB")
	got.add(goroutines, float64(f.Goroutines-few.Goroutines)/float64(many-1), "")
	return nil
}

func (b *bench) idleOnce(client string, bots int) (kib int, f line.Figures, err error) {
	p, err := b.start(client, bots)
	if err != nil {
		return 0, f, err
	}
	defer p.end()
	<-time.After(3 * time.Second) // connecting leaves goroutines behind
	if err = p.client.Ask(line.Rest, nil, nil); err != nil {
		return 0, f, err
	}
	// Figures come after it, because they take memory: a scrape of the metrics.
	if kib, err = rss(p.client.PID()); err != nil {
		return 0, f, err
	}
	f, err = p.figures()
	return kib, f, err
}
