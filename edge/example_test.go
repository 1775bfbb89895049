package edge_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/penstock-io/penstock/edge"
	"github.com/penstock-io/penstock/message"
	"github.com/penstock-io/penstock/router"
)

// A gateway for one bot. Its handler goes into a route, and a relay calls it; the
// outbox is where the bot's replies go.
func Example() {
	srv, err := edge.New(edge.Config{
		Listen:    "127.0.0.1:0",
		Consumers: []edge.Consumer{{Name: "bot", ClientID: "bot", ClientSecret: "secret"}},
		Outbox:    &outbox{},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- srv.Run(ctx) }()

	_, err = srv.Handler("bot").Handle(ctx, &message.Inbound{ID: "m1", Installation: "my-bot"})
	fmt.Println("message waits:", router.IsUnreached(err))
	stop()
	fmt.Println("stopped:", errors.Join(<-ended))
	// Output:
	// message waits: true
	// stopped: <nil>
}
