// Command sdkbot is a bot on the vendor's own SDK, for the tests of the
// gateway. It runs in a process of its own because that SDK leaves goroutines
// behind and has data races. It answers robot messages through the
// sessionWebhook, writes one line for each answer that it has sent over the
// socket, and ends when its standard input does.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/open-dingtalk/dingtalk-stream-sdk-go/card"
	"github.com/open-dingtalk/dingtalk-stream-sdk-go/chatbot"
	"github.com/open-dingtalk/dingtalk-stream-sdk-go/client"
	"github.com/open-dingtalk/dingtalk-stream-sdk-go/event"
	"github.com/open-dingtalk/dingtalk-stream-sdk-go/logger"
	"github.com/open-dingtalk/dingtalk-stream-sdk-go/plugin"
)

func main() {
	if err := run(os.Args[1], os.Args[2], os.Args[3]); err != nil {
		fmt.Fprintln(os.Stderr, "sdkbot:", err)
		os.Exit(1)
	}
}

// writes is a logger that only looks out for answers that have been sent.
type writes struct{}

func (writes) Debugf(format string, _ ...interface{}) {
	if strings.HasPrefix(format, "[wire] [websocket] local => remote") {
		fmt.Println("sent")
	}
}
func (writes) Infof(string, ...interface{})    {}
func (writes) Warningf(string, ...interface{}) {}
func (writes) Errorf(string, ...interface{})   {}
func (writes) Fatalf(string, ...interface{})   {}

func run(host, id, secret string) error {
	logger.SetLogger(writes{})
	cli := client.NewStreamClient(
		client.WithAppCredential(client.NewAppCredentialConfig(id, secret)),
		client.WithOpenApiHost(host),
	)
	cli.RegisterChatBotCallbackRouter(onMessage)
	cli.RegisterCardCallbackRouter(onCard)
	cli.RegisterPluginCallbackRouter(onPlugin)
	cli.RegisterAllEventRouter(event.NewDefaultEventFrameHandler(onEvent).OnEventReceived)
	if err := cli.Start(context.Background()); err != nil {
		return err
	}
	_, err := io.Copy(io.Discard, os.Stdin)
	return err
}

func onMessage(ctx context.Context, m *chatbot.BotCallbackDataModel) ([]byte, error) {
	reply := []byte("echo: " + m.Text.Content)
	return nil, chatbot.NewChatbotReplier().SimpleReplyText(ctx, m.SessionWebhook, reply)
}

func onCard(_ context.Context, r *card.CardRequest) (*card.CardResponse, error) {
	return &card.CardResponse{CardData: &card.CardDataDto{
		CardParamMap: map[string]string{"pressed": r.GetActionString("button")},
	}}, nil
}

func onPlugin(_ context.Context, r *plugin.GraphRequest) (*plugin.GraphResponse, error) {
	return &plugin.GraphResponse{Body: r.RequestLine.Path}, nil
}

func onEvent(_ context.Context, h *event.EventHeader, _ []byte) (event.EventProcessStatusType, error) {
	if h.EventType == "busy" {
		return event.EventProcessStatusKLater, nil
	}
	return event.EventProcessStatusKSuccess, nil
}
