// Command library is a bot in one process: it connects to DingTalk and answers
// every message with a Go function. It needs DINGTALK_CLIENT_ID and
// DINGTALK_CLIENT_SECRET.
package main

import (
	"context"
	"errors"
	"log"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/penstock-io/penstock/integrations"
	"github.com/penstock-io/penstock/integrations/dingtalk"
	"github.com/penstock-io/penstock/message"
	"github.com/penstock-io/penstock/relay"
	"github.com/penstock-io/penstock/router"
	"github.com/penstock-io/penstock/store/memory"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := serve(ctx, dingtalk.Config{
		ClientID:     os.Getenv("DINGTALK_CLIENT_ID"),
		ClientSecret: os.Getenv("DINGTALK_CLIENT_SECRET"),
		Logger:       slog.Default(),
	})
	if err != nil {
		log.Fatal(err)
	}
}

// answer is the bot: it is called for one message at a time in each conversation.
func answer(_ context.Context, m *message.Inbound) (router.Result, error) {
	return router.Result{Replies: []message.Reply{{Text: "you said: " + m.Text}}}, nil
}

// serve runs the bot until ctx is done and then lets it finish its work. Without a
// Logger the packages say nothing.
func serve(ctx context.Context, cfg dingtalk.Config) error {
	keep, err := memory.New(memory.Config{})
	if err != nil {
		return err
	}
	core, err := relay.New(relay.Config{
		Store: keep, Handler: router.HandlerFunc(answer), Logger: slog.Default(),
	})
	if err != nil {
		return err
	}
	bot, err := dingtalk.Open(cfg)
	if err != nil {
		return err
	}
	lane, err := core.Attach("my-bot", bot.Sender)
	if err != nil {
		return err
	}
	link, err := integrations.NewSupervisor(integrations.Config{
		Installation: "my-bot", Connector: bot.Connector, Sink: lane.Accept,
		Logger: slog.Default(),
	})
	if err != nil {
		return err
	}

	ended := make(chan error, 1)
	go func() { ended <- core.Run(context.WithoutCancel(ctx)) }()
	err = link.Run(ctx) // connects, redials, and returns when ctx is done
	budget, cancel := context.WithTimeout(context.WithoutCancel(ctx), 15*time.Second)
	defer cancel()
	if rep := core.Shutdown(budget); !rep.Drained {
		slog.Warn("work was cut off, and this store has lost it", "items", len(rep.Unfinished))
	}
	return errors.Join(err, <-ended, keep.Close())
}
