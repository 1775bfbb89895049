// Command sdk is a bot with a no-op handler on the vendor's own client, as a peer
// for the benchmark. That client may crash; the benchmark tells so.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/open-dingtalk/dingtalk-stream-sdk-go/chatbot"
	"github.com/open-dingtalk/dingtalk-stream-sdk-go/client"

	"github.com/penstock-io/penstock/test/bench/internal/line"
)

func main() {
	gateway := flag.String("url", "", "gateway")
	bots := flag.Int("bots", 1, "sockets")
	work := flag.Duration("work", 0, "how long the handler takes")
	flag.Parse()
	if err := run(*gateway, *bots, *work); err != nil {
		fmt.Fprintln(os.Stderr, "sdk:", err)
		os.Exit(1)
	}
}

func run(gateway string, bots int, work time.Duration) error {
	var handled atomic.Int64
	var late delays
	handle := func(_ context.Context, m *chatbot.BotCallbackDataModel) ([]byte, error) {
		late.add(time.Since(time.UnixMilli(m.CreateAt)))
		if work > 0 {
			<-time.After(work)
		}
		handled.Add(1)
		return nil, nil
	}
	for i := range bots {
		cli := client.NewStreamClient(
			client.WithAppCredential(client.NewAppCredentialConfig(fmt.Sprintf("bench-%d", i), "bench")),
			client.WithOpenApiHost(gateway),
		)
		cli.RegisterChatBotCallbackRouter(handle)
		if err := cli.Start(context.Background()); err != nil {
			return err
		}
	}
	return line.Serve(map[string]line.Word{
		"stats": func(json.RawMessage) (any, error) {
			return line.Figures{
				Handled: handled.Load(), Goroutines: runtime.NumGoroutine(), DelayP50: late.median(),
			}, nil
		},
	})
}

// delays are the times from the push of a message to its handler.
type delays struct {
	mu  sync.Mutex
	all []time.Duration // guarded by mu
}

func (d *delays) add(t time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.all = append(d.all, t)
}

func (d *delays) median() time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.all) == 0 {
		return 0
	}
	slices.Sort(d.all)
	return d.all[len(d.all)/2]
}
