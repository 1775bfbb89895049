package main

import (
	"time"

	"github.com/gorilla/websocket"

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
