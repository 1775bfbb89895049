package dingtalk_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/penstock-io/penstock/integrations"
	"github.com/penstock-io/penstock/integrations/dingtalk"
	"github.com/penstock-io/penstock/integrations/dingtalk/dingtalktest"
	"github.com/penstock-io/penstock/message"
)

// platformConfig is the configuration of the fake platform's first app.
func platformConfig(gw *dingtalktest.Gateway) dingtalk.Config {
	app := dingtalktest.DefaultApp()
	return dingtalk.Config{
		Installation: "bot", ClientID: app.ClientID, ClientSecret: app.Secret,
		APIBase: gw.URL(), OAPIBase: gw.URL(), AllowInsecure: true,
	}
}

// TestDriverTalksToThePlatform brings a message in and its reply out.
func TestDriverTalksToThePlatform(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	gw := dingtalktest.Serve(t, dingtalktest.Config{})
	app := gw.App(dingtalktest.DefaultApp().ClientID)
	d, err := dingtalk.Open(platformConfig(gw))
	require.NoError(t, err)
	in := newCore()
	end := make(chan integrations.End, 1)
	stop, cancelRun := context.WithCancel(ctx)
	go func() { end <- d.Connector.Run(stop, nil, in) }()
	require.NoError(t, app.AwaitSessions(ctx, 1))

	push, err := app.Push(dingtalktest.Text("cid-1", "ping"))
	require.NoError(t, err)
	got := <-in.offers
	require.Equal(t, "ping", got.Message.Text)
	require.NoError(t, got.Ack.Settle(message.Accept, nil))
	ack, err := push.Wait(ctx)
	require.NoError(t, err)
	require.Equal(t, 200, ack.Code)

	to, err := d.Sender.Address(got.Message)
	require.NoError(t, err)
	_, err = d.Sender.Send(ctx, message.Outbound{
		Reply: message.Reply{Text: "pong"}, ID: "r1", Conversation: "cid-1",
		Part: 1, Parts: 1, Target: to,
	})
	require.NoError(t, err)
	sent, err := app.AwaitSent(ctx, 1)
	require.NoError(t, err)
	require.Equal(t, "pong", sent[0].Text)

	cancelRun()
	require.Equal(t, integrations.Stopped, (<-end).Why)
}

func TestOpenRefusesWhatNewRefuses(t *testing.T) {
	_, err := dingtalk.Open(dingtalk.Config{ClientID: "id"})
	require.ErrorContains(t, err, "ClientSecret:")
	_, err = dingtalk.Open(dingtalk.Config{ClientID: "id", ClientSecret: "s", ReplyHosts: []string{"https://a/b"}})
	require.ErrorContains(t, err, "ReplyHosts")
}

func TestSenderNeedsItsCertificates(t *testing.T) {
	d, err := dingtalk.Open(dingtalk.Config{ClientID: "id", ClientSecret: "s", CAFile: "/nonexistent/ca.pem"})
	require.NoError(t, err, "files are read when they are needed")
	to, err := d.Sender.Address(&message.Inbound{
		Kind: message.KindMessage, RobotCode: "r",
		Conversation: message.Conversation{ID: "cid-1", Type: message.ChatGroup},
	})
	require.NoError(t, err)
	_, err = d.Sender.Send(t.Context(), message.Outbound{
		Reply: message.Reply{Text: "pong"}, ID: "r1", Conversation: "cid-1", Part: 1, Parts: 1, Target: to,
	})
	var failed *message.SendError
	require.ErrorAs(t, err, &failed)
	require.Equal(t, message.LandedNo, failed.Landed)
}

// A driver is made at once and starts nothing; a supervisor runs its sessions.
func ExampleOpen() {
	driver, err := dingtalk.Open(dingtalk.Config{
		Installation: "support",
		ClientID:     "dingexampleclient01",
		ClientSecret: "from your secret store",
	})
	fmt.Println(driver.Connector.Profile().Platform, err)

	_, err = dingtalk.Open(dingtalk.Config{ClientID: "dingexampleclient01"})
	fmt.Println(err)
	// Output:
	// dingtalk <nil>
	// dingtalk config: ClientSecret: is empty
}
