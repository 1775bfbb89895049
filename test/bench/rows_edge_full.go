package main

import (
	"fmt"
	"strconv"
	"time"

	"github.com/penstock-io/penstock/integrations/dingtalk/dingtalktest"
	"github.com/penstock-io/penstock/test/bench/internal/line"
)

// fullChats are enough for the edge to have hundreds of messages out.
const fullChats = 500

// edgeFull measures how much the edge can take: so many messages from the gateway to
// bare sockets behind Penstock, beside the same loop connected to the gateway and a
// Penstock whose handler does nothing.
func edgeFull(b *bench, row string) error {
	names := []string{
		clientBare, clientPenstock, "edge, 1 socket", "edge, 64 sockets",
	}
	got := map[string]*samples{}
	for _, n := range names {
		got[n] = &samples{}
	}
	for range b.opts.rounds {
		for _, client := range names[:2] {
			if err := b.saturate(client, plainText, fullChats, got[client]); err != nil {
				return err
			}
		}
		for i, sockets := range []int{1, 64} {
			if err := b.edgeFullOnce(sockets, got[names[2+i]]); err != nil {
				return err
			}
		}
	}
	for _, n := range names {
		b.out.record(row, n, got[n])
	}
	for _, n := range names[2:] {
		b.out.tell(row, n+": done/s ÷ bare", ratio(got[n].get(lives), got[clientBare].get(rate)))
	}
	return nil
}

func (b *bench) edgeFullOnce(sockets int, got *samples) error {
	if err := b.build(clientBare); err != nil {
		return err
	}
	c, err := b.startEdge(sockets, 2*fullChats)
	defer c.finish()
	if err != nil {
		return err
	}
	c.consumer, err = line.Start(b.log, b.binary(clientBare),
		"-url", c.edge, "-sockets", strconv.Itoa(sockets))
	if err != nil {
		return err
	}
	if err := c.consumers(sockets); err != nil {
		return err
	}
	n := 20_000 * int(b.seconds(6)/time.Second)
	if _, err := c.burst(n / 10); err != nil { // to warm up
		return err
	}
	return c.fullRate(n, got)
}

func (c *chain) fullRate(n int, got *samples) error {
	before, err := c.measureStart(clientPenstock)
	if err != nil {
		return err
	}
	theirs, err := cpu(c.consumer.PID())
	if err != nil {
		return err
	}
	took, err := c.burst(n)
	if err != nil {
		return err
	}
	used, err := cpu(c.client.PID())
	if err != nil {
		return err
	}
	used2, err := cpu(c.consumer.PID())
	if err != nil {
		return err
	}
	f, err := c.pair.figures()
	if err != nil {
		return err
	}
	each := float64(n)
	got.add(lives, each/took.Seconds(), "")
	got.add(perMessage, float64(used-before.cpu)/1e3/each, "µs")
	got.add("CPU of the consumer", float64(used2-theirs)/1e3/each, "µs")
	got.add("allocated per message", float64(f.AllocBytes-before.f.AllocBytes)/each, "B")
	got.add("allocations per message", float64(f.Allocs-before.f.Allocs)/each, "")
	if kib, err := rss(c.client.PID()); err == nil {
		got.add("RSS", float64(kib)/1024, "MiB")
	}
	return nil
}

// burst pushes n messages as fast as they are acknowledged, and gives the time until
// all are done.
func (c *chain) burst(n int) (time.Duration, error) {
	var f line.Figures
	if err := c.figures(&f); err != nil {
		return 0, err
	}
	done := f.Done + int64(n)
	began := time.Now()
	var r dingtalktest.BlastResult
	err := c.gateway.Ask(wordBlast, dingtalktest.BlastConfig{
		Size: frameSize, Window: 256, Conversations: fullChats, Count: n,
	}, &r)
	for err == nil && f.Done < done {
		if time.Since(began) > time.Minute {
			return 0, fmt.Errorf("%d of %d messages were done: %w", f.Done, done, errNotAll)
		}
		<-time.After(20 * time.Millisecond) // a scrape has its price
		err = c.figures(&f)
	}
	return time.Since(began), err
}
