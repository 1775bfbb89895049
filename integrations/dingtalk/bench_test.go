package dingtalk_test

import (
	"context"
	"fmt"
	"net"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/penstock-io/penstock/integrations/dingtalk"
	"github.com/penstock-io/penstock/message"
)

// window is how many frames of the benchmark wait for their acknowledgement.
const window = 256

// BenchmarkSession pushes robot messages to a core that accepts them at once.
// The gateway shares the processor: what it costs is part of the figure.
func BenchmarkSession(b *testing.B) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(b, err)
	g := newGateway(b, l)
	c, err := dingtalk.New(g.config())
	require.NoError(b, err)
	in := newCore()
	in.offer = func(d message.Delivery) error { return d.Ack.Settle(message.Accept, nil) }
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	done := make(chan struct{})
	go func() {
		defer close(done)
		c.Run(ctx, nil, in)
	}()
	ws := <-g.socks
	acked := make(chan struct{}, window)
	go func() {
		for {
			if _, r, err := ws.NextReader(); err != nil || r == nil {
				close(acked)
				return
			}
			acked <- struct{}{}
		}
	}()
	batch := pushes(window / 4)
	b.ReportAllocs()
	b.ResetTimer()
	waiting := 0
	for sent := 0; sent < b.N; sent += window / 4 {
		for ; waiting > window*3/4; waiting-- {
			<-acked
		}
		_, err := ws.NetConn().Write(batch)
		require.NoError(b, err)
		waiting += window / 4
	}
	for ; waiting > 0; waiting-- {
		<-acked
	}
	b.StopTimer()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "acks/s")
	cancel()
	<-done
	_ = ws.Close()
	for range acked {
	}
}

// pushes is n prepared frames on the wire, about 1.4 KB each.
func pushes(n int) []byte {
	var out []byte
	for i := range n {
		text := strings.Replace(robotFrame(fmt.Sprint("213d841d_972_", i)), "hello",
			strings.Repeat("hello ", 170), 1)
		out = append(out, 0x81, 126, byte(len(text)>>8), byte(len(text)))
		out = append(out, text...)
	}
	return out
}
