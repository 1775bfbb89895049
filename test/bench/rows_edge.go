package main

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/penstock-io/penstock/integrations/dingtalk/dingtalktest"
	"github.com/penstock-io/penstock/test/bench/internal/line"
)

// edgeRows measure the gateway for consumers.
var edgeRows = []row{
	{"edge, pass-through", false, passThrough},
	{"edge, full rate", false, edgeFull},
	{"edge, stalled", false, edgeStalled},
	{"edge, kills", false, edgeKills},
	{"edge, idle", false, edgeIdle},
}

// behind is the vendor's client behind Penstock.
const behind = "sdk behind penstock"

// chain is a gateway, Penstock with its edge, and what connects to that.
type chain struct {
	pair
	edge     string      // its URL
	consumer *line.Child // nil if the benchmark itself connects
}

// startEdge starts a gateway and a Penstock that leaves messages to up to so many
// sockets of one consumer.
func (b *bench) startEdge(sockets, workers int) (c chain, err error) {
	args := []string{"-edge", strconv.Itoa(sockets), "-workers", strconv.Itoa(workers)}
	if c.pair, err = b.start(clientPenstock, 1, args...); err != nil {
		return c, err
	}
	for range 500 {
		if err = c.client.Ask("edge", nil, &c.edge); err != nil || c.edge != "" {
			return c, err
		}
		<-time.After(10 * time.Millisecond)
	}
	return c, fmt.Errorf("the edge does not listen")
}

// finish ends what was started.
func (c *chain) finish() {
	if c.consumer != nil {
		_ = c.consumer.End() // one that crashed is told by its missing figures
	}
	c.end()
}

// consumers waits until the edge has so many sockets.
func (c *chain) consumers(n int) error {
	var f line.Figures
	for began := time.Now(); time.Since(began) < startFor; {
		if err := c.figures(&f); err != nil || f.Consumers == int64(n) {
			return err
		}
		<-time.After(20 * time.Millisecond)
	}
	return fmt.Errorf("the edge has %d sockets in place of %d", f.Consumers, n)
}

// handled waits a while until so many messages are done.
func (c *chain) handled(n int, within time.Duration) error {
	var f line.Figures
	for began := time.Now(); time.Since(began) < within; {
		if err := c.figures(&f); err != nil || f.Done >= int64(n) {
			return err
		}
		<-time.After(5 * time.Millisecond)
	}
	return fmt.Errorf("%d of %d messages were done within %v: %w", f.Done, n, within, errNotAll)
}

func (c *chain) figures(f *line.Figures) error { return c.client.Ask("stats", nil, f) }

var errNotAll = errors.New("messages are left")

// passThrough compares the vendor's client behind Penstock with the same one
// connected to the gateway. One message is out to it at a time, and its handler
// takes sdkWork: the client writes answers without a lock and loses one when two
// meet, which happens within a second when the next message follows at once. A run
// in which it has lost one is made again.
func passThrough(b *bench, row string) error {
	direct, through := &samples{}, &samples{}
	n := int(b.seconds(3) / (2 * sdkWork))
	for range b.opts.rounds {
		for _, c := range []struct {
			measure func(int, *samples) error
			got     *samples
		}{{b.direct, direct}, {b.through, through}} {
			if err := again(n, c.got, c.measure); err != nil {
				return err
			}
		}
	}
	b.out.record(row, clientSDK, direct)
	b.out.record(row, behind, through)
	b.out.atLeast(row, "messages/s ÷ connected directly",
		ratio(through.get(rate), direct.get(rate)), 0.8)
	for _, what := range []string{ackP50, delayP50} {
		b.out.atMost(row, what+" added, ms",
			median(through.get(what))-median(direct.get(what)), 2)
	}
	return nil
}

const (
	sdkWork = 2 * time.Millisecond
	tries   = 8
)

// again measures until the client has not lost an answer.
func again(n int, got *samples, measure func(int, *samples) error) (err error) {
	for i := range tries {
		if err = measure(n, got); !errors.Is(err, errNotAll) {
			got.add("runs spoilt by the client", float64(i), "")
			return err
		}
	}
	return err
}

const (
	ackP50   = "ack p50"   // from the push to the platform's acknowledgement
	delayP50 = "delay p50" // from the push to the bot's handler
)

// open is a load that the client takes easily.
func (b *bench) open() dingtalktest.BlastConfig {
	return dingtalktest.BlastConfig{Size: frameSize, Rate: 200, Window: 1, Duration: b.seconds(5)}
}

func (b *bench) direct(n int, got *samples) error {
	var full, open dingtalktest.BlastResult
	var at samples
	err := b.withSDK(func(p *pair) error {
		err := p.gateway.Ask(wordBlast, dingtalktest.BlastConfig{
			Size: frameSize, Window: 1, Count: n, Duration: b.seconds(9), Drain: time.Second,
		}, &full)
		if err == nil && full.Acked < n {
			err = errNotAll
		}
		return err
	})
	if err != nil {
		return err
	}
	err = b.withSDK(func(p *pair) error {
		if err := p.gateway.Ask(wordBlast, b.open(), &open); err != nil {
			return err
		}
		if open.Unanswered > 0 {
			return errNotAll
		}
		return addDelays(p.client, open, &at)
	})
	if err != nil {
		return err
	}
	got.add(rate, full.PerSecond(), "")
	got.addAll(&at)
	return nil
}

// addAll adds the numbers of others.
func (s *samples) addAll(o *samples) {
	for _, what := range o.what {
		for _, v := range o.value[what] {
			s.add(what, v, o.unit[what])
		}
	}
}

func (b *bench) withSDK(do func(*pair) error) error {
	p, err := b.start(clientSDK, 1, "-work", sdkWork.String())
	if err != nil {
		return err
	}
	defer p.end()
	return do(&p)
}

func addDelays(client *line.Child, r dingtalktest.BlastResult, got *samples) error {
	var f line.Figures
	if err := client.Ask("stats", nil, &f); err != nil {
		return err
	}
	got.add(ackP50, ms(r.P50), "ms")
	got.add(delayP50, ms(f.DelayP50), "ms")
	return nil
}

// through lets a backlog of n messages run through, and then an open load.
func (b *bench) through(n int, got *samples) error {
	var r dingtalktest.BlastResult
	var full, open samples
	err := b.withChain(func(c *chain) error {
		began := time.Now()
		err := c.gateway.Ask(wordBlast, dingtalktest.BlastConfig{
			Size: frameSize, Window: 64, Count: n,
		}, &r)
		if err != nil {
			return err
		}
		if err := c.handled(n, b.seconds(9)); err != nil {
			return err
		}
		full.add(rate, float64(n)/time.Since(began).Seconds(), "")
		return nil
	})
	if err != nil {
		return err
	}
	err = b.withChain(func(c *chain) error {
		if err := c.gateway.Ask(wordBlast, b.open(), &r); err != nil {
			return err
		}
		if err := c.handled(r.Acked, time.Second); err != nil {
			return err
		}
		return addDelays(c.consumer, r, &open)
	})
	if err != nil {
		return err
	}
	got.addAll(&full)
	got.addAll(&open)
	return nil
}

// withChain puts the vendor's client behind Penstock.
func (b *bench) withChain(do func(*chain) error) error {
	if err := b.build(clientSDK); err != nil {
		return err
	}
	c, err := b.startEdge(1, 1)
	defer c.finish()
	if err != nil {
		return err
	}
	c.consumer, err = line.Start(b.log, b.binary(clientSDK),
		"-url", c.edge, "-work", sdkWork.String())
	if err != nil {
		return err
	}
	if err := c.consumer.Ask("stats", nil, nil); err != nil { // it answers when it is connected
		return err
	}
	return do(&c)
}

// killFor is how long consumers are killed, one each killEvery.
const (
	killFor   = 60
	killEvery = 50 * time.Millisecond
)

// edgeKills cuts sockets of consumers at random while messages flow.
func edgeKills(b *bench, row string) error {
	const sockets, chats = 16, 500
	c, err := b.startEdge(4*sockets, 256)
	defer c.finish()
	if err != nil {
		return err
	}
	all := newCrowd(c.edge, chats)
	defer all.leave()
	for range sockets {
		all.join(5 * time.Millisecond)
	}
	stop := make(chan struct{})
	killed := make(chan int, 1)
	go func() { killed <- all.killUntil(stop) }()
	var r dingtalktest.BlastResult
	err = c.gateway.Ask(wordBlast, dingtalktest.BlastConfig{
		Size: frameSize, Rate: 500, Window: 4096, Conversations: chats,
		Duration: b.seconds(killFor), Drain: 10 * time.Second,
	}, &r)
	close(stop)
	n := <-killed
	if err != nil {
		return err
	}
	late := c.handled(r.Pushed, time.Minute)
	got := &samples{}
	got.add("kills", float64(n), "")
	got.add("messages", float64(r.Pushed), "")
	all.told(r.Pushed, got)
	if late != nil {
		got.note = late.Error()
	}
	b.out.record(row, clientPenstock, got)
	for _, what := range []string{"lost", "inversions"} {
		b.out.atMost(row, what, slices.Max(got.get(what)), 0)
	}
	return nil
}
