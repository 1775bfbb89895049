package main

import (
	"fmt"
	"os/exec"
	"slices"
	"strconv"
	"time"

	"github.com/penstock-io/penstock/integrations/dingtalk/dingtalktest"
	"github.com/penstock-io/penstock/test/bench/internal/line"
)

const (
	backlogSize = 1_000_000
	outboxSize  = 100_000
)

// startWithBacklog opens a store with a million messages in it, after a clean stop
// and then after a kill, while the gateway pushes one more.
func startWithBacklog(b *bench, row string) error {
	path, err := b.fresh()
	if err != nil {
		return err
	}
	if err := b.ask(nil, "-store", path, "-fill", strconv.Itoa(backlogSize)); err != nil {
		return err
	}
	for _, after := range []string{"after a stop", "after a kill"} {
		got := &samples{}
		if err := b.startOn(path, got); err != nil {
			return fmt.Errorf("%s: %w", after, err)
		}
		b.out.record(row+" "+after, clientDurable, got)
		for _, g := range []struct {
			what  string
			bound float64
		}{{readyToAck, 1}, {firstJob, 1}, {allKnown, 8}, {memoryPeak, 250}} {
			b.out.atMost(row+" "+after, g.what, median(got.get(g.what)), g.bound)
		}
	}
	return nil
}

const (
	readyToAck = "seconds to the first ack"
	firstJob   = "seconds to the first job"
	allKnown   = "seconds until all are known"
	memoryPeak = "peak RSS, MiB"
)

// startOn times a start from the process's own beginning. Jobs sit, so that what is
// waiting stays so.
func (b *bench) startOn(path string, got *samples) error {
	uncache(path)
	p, err := b.start(clientPenstock, 1, "-store", path, "-work", "1h")
	if err != nil {
		return err
	}
	defer p.end() // kills: the store is not closed
	var r dingtalktest.BlastResult
	// The message is pushed as soon as there is a socket.
	err = p.gateway.Ask(wordBlast, dingtalktest.BlastConfig{Size: frameSize, Count: 1}, &r)
	if err != nil {
		return err
	}
	f, known, err := p.untilKnown(backlogSize)
	if err != nil {
		return err
	}
	got.add(readyToAck, f.FirstAck.Seconds(), "")
	got.add(firstJob, f.FirstJob.Seconds(), "")
	got.add(allKnown, known.Seconds(), "")
	peak, err := peakRSS(p.client.PID())
	if err != nil {
		return err
	}
	got.add(memoryPeak, float64(peak)/1024, "")
	return nil
}

// untilKnown waits until the metrics name so many waiting messages.
func (p *pair) untilKnown(items int64) (f line.Figures, after time.Duration, err error) {
	for range 3000 {
		if f, err = p.figures(); err != nil {
			return f, 0, err
		}
		if f.Waiting >= items {
			return f, f.Up, nil
		}
		<-time.After(10 * time.Millisecond)
	}
	return f, 0, fmt.Errorf("%d of %d messages are known", f.Waiting, items)
}

// uncache takes a file out of the page cache, where there is a dd that can.
func uncache(path string) {
	_ = exec.Command("dd", "of="+path, "oflag=nocache", "conv=notrunc,fdatasync", "count=0").Run()
}

// ask has penstockbench do one thing and end.
func (b *bench) ask(result any, args ...string) error {
	if err := b.build(clientDurable); err != nil {
		return err
	}
	c, err := line.Start(b.log, b.binary(clientDurable), args...)
	if err != nil {
		return err
	}
	defer func() { _ = c.End() }() // it has answered
	return c.Ask("do", nil, result)
}

// outbox lets a relay send what an earlier run left in the outbox.
func outbox(b *bench, row string) error {
	got := &samples{}
	for range b.opts.rounds {
		path, err := b.fresh()
		if err != nil {
			return err
		}
		var res line.Sending
		if err := b.ask(&res, "-store", path, "-send", strconv.Itoa(outboxSize)); err != nil {
			return err
		}
		got.add("sent/s", float64(res.Sent)/res.Took.Seconds(), "")
		got.add("sent", float64(res.Sent), "")
		got.add("inversions", float64(res.Inversions), "")
		got.add("commits", float64(res.Commits), "")
	}
	b.out.record(row, clientDurable, got)
	b.out.atLeast(row, "sent/s", median(got.get("sent/s")), 15_000)
	b.out.atMost(row, "inversions", slices.Max(got.get("inversions")), 0)
	return nil
}
