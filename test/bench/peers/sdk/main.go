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
	handle := func(context.Context, *chatbot.BotCallbackDataModel) ([]byte, error) {
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
			return line.Figures{Handled: handled.Load(), Goroutines: runtime.NumGoroutine()}, nil
		},
	})
}
