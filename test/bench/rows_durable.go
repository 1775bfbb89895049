package main

import (
	"slices"
	"time"

	"github.com/penstock-io/penstock/integrations/dingtalk/dingtalktest"
)

// lives is the rate of messages that were acknowledged, handled and marked done.
const (
	lives          = "done/s"
	perMessageDisk = "written per message"
)

// durable pushes as fast as each client answers. Penstock's rates span the whole
// life of a message: until the last of them is stored as done. A conversation
// has one message at a time under way, so few conversations bound what is done.
func durable(chats int) func(*bench, string) error {
	return func(b *bench, row string) error {
		clients := b.chosen(clientLog, clientDurable, clientDecode, clientPenstock)
		got := map[string]*samples{}
		for range b.opts.rounds {
			for _, c := range clients {
				if got[c] == nil {
					got[c] = &samples{}
				}
				if err := b.saturate(c, plainText, chats, got[c]); err != nil {
					got[c].note = err.Error()
				}
			}
		}
		for _, c := range clients {
			b.out.record(row, c, got[c])
		}
		ours := got[clientDurable].get(lives)
		b.out.atLeast(row, "done/s ÷ decoding bare loop", ratio(ours, got[clientDecode].get(rate)), 1.5)
		b.out.atLeast(row, "done/s ÷ memory store", ratio(ours, got[clientPenstock].get(lives)), 0.5)
		b.out.tell(row, "done/s ÷ log with group flushes", ratio(ours, got[clientLog].get(rate)))
		b.out.tell(row, "acks/s ÷ decoding bare loop",
			ratio(got[clientDurable].get(rate), got[clientDecode].get(rate)))
		return nil
	}
}

// durablePaced measures what one message costs the disk at a moderate rate.
func durablePaced(b *bench, row string) error {
	got, err := b.besideLog(row, 5000)
	if err != nil {
		return err
	}
	b.out.atMost(row, "ack p99, ms", median(got.get("p99")), 20)
	b.out.atMost(row, "commits per message", median(got.get("commits per message")), 0.2)
	b.out.atMost(row, "KiB written per message", median(got.get(perMessageDisk)), 6)
	b.out.atMost(row, "longest commit, ms", slices.Max(got.get("longest commit")), 50)
	return nil
}

// durableSlow measures acknowledgements while handlers sit and messages pile up.
func durableSlow(b *bench, row string) error {
	got, err := b.besideLog(row, 500, "-work", "2s")
	if err != nil {
		return err
	}
	b.out.atMost(row, "ack p99, ms", median(got.get("p99")), 10)
	return nil
}

// besideLog runs Penstock at a pace, and the log with group flushes before it: what
// the disk itself takes just then.
func (b *bench) besideLog(row string, perSecond int, args ...string) (*samples, error) {
	floor, got := &samples{}, &samples{}
	for range b.opts.rounds {
		if err := b.durableOnce(clientLog, floor, perSecond); err != nil {
			return nil, err
		}
		if err := b.durableOnce(clientDurable, got, perSecond, args...); err != nil {
			return nil, err
		}
	}
	b.out.record(row, clientLog, floor)
	b.out.record(row, clientDurable, got)
	b.out.tell(row, "ack p99 ÷ log with group flushes", ratio(got.get("p99"), floor.get("p99")))
	return got, nil
}

func (b *bench) durableOnce(
	client string, got *samples, perSecond int, args ...string,
) error {
	p, err := b.start(client, 1, args...)
	if err != nil {
		return err
	}
	defer p.end()
	before, err := written(p.client.PID())
	if err != nil {
		return err
	}
	var r dingtalktest.BlastResult
	err = p.gateway.Ask(wordBlast, dingtalktest.BlastConfig{
		Size: frameSize, Rate: perSecond, Window: 100_000, Duration: b.seconds(10),
	}, &r)
	if err != nil {
		return err
	}
	got.add(rate, r.PerSecond(), "")
	got.add("p50", ms(r.P50), "ms")
	got.add("p99", ms(r.P99), "ms")
	got.add("p99.9", ms(r.P999), "ms")
	got.add("not acknowledged", float64(r.Pushed-r.Acked), "")
	if client == clientLog {
		return nil
	}
	if len(args) == 0 {
		if err := p.settle(client, int64(r.Pushed)); err != nil {
			return err
		}
	}
	return p.addDurable(got, r, before)
}

// addDurable adds what the disk had to do. The service is stopped first, so that all
// that it owes the disk is counted.
func (p *pair) addDurable(got *samples, r dingtalktest.BlastResult, before int) error {
	f, err := p.figures()
	if err != nil {
		return err
	}
	if err := p.client.Ask("stop", nil, nil); err != nil {
		return err
	}
	after, err := written(p.client.PID())
	if err != nil {
		return err
	}
	n := float64(max(r.Acked, 1))
	got.add("commits per message", float64(f.Commits)/n, "")
	got.add(perMessageDisk, float64(after-before)/1024/n, "KiB")
	got.add("longest commit", ms(f.LongestCommit), "ms")
	return nil
}

// settled is how long Penstock takes after the last acknowledgement to handle and
// store the rest.
func (p *pair) settled(client string, pushed int64) (time.Duration, error) {
	began := time.Now()
	err := p.settle(client, pushed)
	return time.Since(began), err
}
