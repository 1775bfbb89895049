package dingtalktest_test

import (
	"bufio"
	"bytes"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/penstock-io/penstock/integrations/dingtalk/dingtalktest"
)

// sdkbot is a running bot on the vendor's SDK.
type sdkbot struct {
	*client
	sent *bufio.Scanner // a line for each answer whose write has returned
}

// startBot starts a bot, built once per run and without the race detector, which
// that SDK does not pass.
func (c *client) startBot() *sdkbot {
	c.t.Helper()
	cred := c.app().Credentials()
	cmd := exec.Command(buildBot(c.t), c.gw.URL(), cred.ClientID, cred.Secret)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	stdin, err := cmd.StdinPipe()
	require.NoError(c.t, err)
	stdout, err := cmd.StdoutPipe()
	require.NoError(c.t, err)
	require.NoError(c.t, cmd.Start())
	c.t.Cleanup(func() {
		_ = stdin.Close() // tells it to end
		require.NoError(c.t, cmd.Wait(), stderr.String())
	})
	require.NoError(c.t, c.app().AwaitSessions(within(c.t, time.Minute), 1))
	return &sdkbot{client: c, sent: bufio.NewScanner(stdout)}
}

// idle waits until the bot has sent n answers more. Its SDK writes them from
// many goroutines without a lock, so the next push must wait even after the
// answer has arrived.
func (b *sdkbot) idle(t *testing.T, n int) {
	t.Helper()
	for range n {
		require.True(t, b.sent.Scan(), "the bot has ended")
	}
}

var bot struct {
	sync.Mutex
	path string
}

func buildBot(t *testing.T) string {
	t.Helper()
	bot.Lock()
	defer bot.Unlock()
	if bot.path == "" {
		dir := filepath.Join(botDir, "sdkbot")
		out, err := exec.Command("go", "build", "-o", dir, "./testdata/sdkbot").CombinedOutput()
		require.NoError(t, err, string(out))
		bot.path = dir
	}
	return bot.path
}

func TestVendorSDK(t *testing.T) {
	t.Parallel()
	c := serve(t, dingtalktest.Config{
		PlainTickets: true, // it puts tickets into the URL as they are
		EventRetries: []time.Duration{200 * time.Millisecond},
		Down:         dingtalktest.DownHold,
	})
	b := c.startBot()
	app := c.app()

	t.Run("ping", func(t *testing.T) {
		s := app.Sessions()[0]
		app.Ping()
		b.idle(t, 1)
		b.settles(t, dingtalktest.Text("cid0", "after the ping"))
		require.Equal(t, 1, s.Info().Pongs)
		require.Equal(t, 6, len(s.Info().Subscriptions))
		require.Contains(t, s.Info().UserAgent, "dingtalk-sdk-go")
	})
	t.Run("robot message", func(t *testing.T) {
		before := app.Stats().Sent
		ack := b.settles(t, dingtalktest.Text("cid1", "hello <&> 你好"))
		require.Equal(t, 200, ack.Code)
		sent, err := app.AwaitSent(within(t, time.Minute), before+1)
		require.NoError(t, err)
		require.Equal(t, "echo: hello <&> 你好", sent[before].Text)
		require.EqualValues(t, "cid1", sent[before].Conversation)
	})
	t.Run("event", func(t *testing.T) {
		require.Contains(t, b.settles(t, dingtalktest.Event{}).Data, "SUCCESS")
		p := c.push(dingtalktest.Event{Type: "busy"})
		_, err := c.outcome(p)
		require.ErrorIs(t, err, dingtalktest.ErrUnanswered)
		require.Len(t, p.Tries(), 2)
		b.idle(t, 2)
	})
	t.Run("card", func(t *testing.T) {
		ack := b.settles(t, dingtalktest.Card{Params: map[string]any{"button": "ok"}})
		require.Contains(t, ack.Data, `"pressed":"ok"`)
	})
	t.Run("plugin", func(t *testing.T) {
		ack := b.settles(t, dingtalktest.Plugin{URI: "/v1/actions/weather"})
		require.Contains(t, ack.Data, "/v1/actions/weather")
	})
	t.Run("unknown topic", func(t *testing.T) {
		require.Equal(t, 404, b.settles(t, dingtalktest.Frame{Topic: "/nobody"}).Code)
	})
	t.Run("reconnects", func(t *testing.T) {
		old := app.Sessions()[0]
		app.Disconnect()
		b.idle(t, 1) // it answers this as well, on whatever socket it has then
		c.ended(old)
		b.settles(t, dingtalktest.Text("cid1", "held until it is back"))
		require.Equal(t, 2, app.Stats().Dials)
		app.Cut()
		b.settles(t, dingtalktest.Text("cid1", "held until it is back"))
		require.Equal(t, 3, app.Stats().Dials)
	})
}

// settles pushes and waits for the answer.
func (b *sdkbot) settles(t *testing.T, m dingtalktest.Message) dingtalktest.Ack {
	t.Helper()
	p, err := b.app().Push(m)
	require.NoError(t, err)
	ack, err := p.Wait(within(t, time.Minute))
	require.NoError(t, err)
	b.idle(t, 1)
	return ack
}
