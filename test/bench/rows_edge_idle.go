package main

import (
	"fmt"
	"time"

	"github.com/gorilla/websocket"

	"github.com/penstock-io/penstock/integrations/dingtalk/dingtalktest"
	"github.com/penstock-io/penstock/test/bench/internal/line"
	"github.com/penstock-io/penstock/test/bench/internal/socket"
)

// edgeIdle measures what a socket of a consumer without traffic costs.
func edgeIdle(b *bench, row string) error {
	many := 2000
	if b.opts.quick {
		many /= 4
	}
	one, few, err := b.edgeIdleOnce(1)
	if err != nil {
		return err
	}
	all, f, err := b.edgeIdleOnce(many)
	if err != nil {
		return err
	}
	got := &samples{}
	got.add("connections", float64(f.Consumers), "")
	got.add(perSocket, float64(all-one)/float64(many-1), "KiB")
	got.add(goroutines, float64(f.Goroutines-few.Goroutines)/float64(many-1), "")
	b.out.record(row, clientPenstock, got)
	b.out.atMost(row, "KiB per connection", median(got.get(perSocket)), 24)
	b.out.atMost(row, "goroutines per connection", median(got.get(goroutines)), 2)
	return nil
}

func (b *bench) edgeIdleOnce(sockets int) (kib int, f line.Figures, err error) {
	c, err := b.startEdge(sockets, 8)
	defer c.finish()
	if err != nil {
		return 0, f, err
	}
	var open []*websocket.Conn
	defer func() {
		for _, ws := range open {
			_ = ws.Close()
		}
	}()
	for range sockets {
		ws, err := socket.Open(c.edge, "bench-0")
		if err != nil {
			return 0, f, err
		}
		open = append(open, ws)
	}
	<-time.After(3 * time.Second) // connecting leaves goroutines behind
	if err = c.client.Ask(line.Rest, nil, nil); err != nil {
		return 0, f, err
	}
	if err = c.figures(&f); err != nil {
		return 0, f, err
	}
	kib, err = rss(c.client.PID())
	return kib, f, err
}

// edgeStalled lets one of 64 sockets stop reading and looks at the others. What is
// out to it has to fill the buffers of the system first, so messages are large.
func edgeStalled(b *bench, row string) error {
	const sockets, chats, size, perSecond = 64, 2000, 128 << 10, 200
	const warm, before, after = 12 * time.Second, 15 * time.Second, 30 * time.Second
	c, err := b.startEdge(sockets, 1024)
	defer c.finish()
	if err != nil {
		return err
	}
	all := newCrowd(c.edge, chats)
	defer all.leave()
	st := newStall()
	for range sockets - 1 {
		all.join(0, nil)
	}
	all.join(0, st)
	if err := c.consumers(sockets, time.Minute); err != nil {
		return err
	}
	var r dingtalktest.BlastResult
	pushed := make(chan error, 1)
	began := time.Now()
	go func() {
		pushed <- c.gateway.Ask(wordBlast, dingtalktest.BlastConfig{
			Size: size, Rate: perSecond, Window: 4096, Conversations: chats,
			Duration: warm + before + after, Drain: 5 * time.Second,
		}, &r)
	}()
	<-time.After(warm + before)
	close(st.now)
	<-st.stopped
	stalled := time.Now()
	gone := c.consumers(sockets-1, after)
	took := time.Since(stalled)
	if err := <-pushed; err != nil {
		return err
	}
	end := time.Now()
	late := c.handled(r.Pushed, time.Minute)
	was := all.p99(began.Add(warm), stalled, st.chats)
	is := all.p99(stalled, end, st.chats)
	got := &samples{}
	got.add("p99 before", ms(was), "ms")
	got.add("p99 of the others", ms(is), "ms")
	got.add("from the last read to the cut", took.Seconds(), "s")
	all.told(r.Pushed, got)
	for _, err := range []error{gone, late} {
		if err != nil {
			got.note = err.Error()
		}
	}
	b.out.record(row, clientPenstock, got)
	b.out.atMost(row, "p99 of the others ÷ before", float64(is)/float64(max(was, 1)), 1.1)
	b.out.atMost(row, "lost", median(got.get("lost")), 0)
	return gone
}

// consumers waits a while until there are so many sockets.
func (c *chain) consumers(n int, within time.Duration) error {
	var f line.Figures
	for began := time.Now(); time.Since(began) < within; {
		if err := c.figures(&f); err != nil || f.Consumers == int64(n) {
			return err
		}
		<-time.After(20 * time.Millisecond)
	}
	return fmt.Errorf("%d sockets in place of %d after %v", f.Consumers, n, within)
}
