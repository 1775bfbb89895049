package simulate

import (
	"context"
	"errors"
	"io"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/penstock-io/penstock/internal/app"
	"github.com/penstock-io/penstock/internal/config"
)

// run serves a configuration until the test ends.
func run(t *testing.T, text string) *app.App {
	t.Helper()
	text += "\nstore: {kind: memory}\nadmin: {listen: off}\nstop_within: 1s\n"
	cfg, err := config.Parse("penstock.yaml", []byte(text), os.LookupEnv)
	require.NoError(t, err, text)
	service, err := app.New(cfg, app.Options{})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- service.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-served; !errors.Is(err, app.ErrLost) { // a gateway that is gone takes no reply
			require.NoError(t, err)
		}
	})
	return service
}

// The configuration of the document, and that which the greeting tells to put
// together, bring what is typed to a bot at the edge, and its replies back.
func TestABotBehindTheEdge(t *testing.T) {
	ways := map[string]func(url string) string{"the document": documented(t), "the greeting": greeted}
	t.Chdir(t.TempDir())
	for name, between := range ways {
		t.Run(name, func(t *testing.T) {
			in, typed := io.Pipe()
			r, url := simulate(t, Options{In: in})
			text := between(url)
			require.Contains(t, text, "\nedge:\n")
			text = strings.Replace(text, "\nedge:\n", "\nedge:\n  listen: 127.0.0.1:0\n", 1)
			service := run(t, text)
			require.Eventually(t, func() bool { return service.EdgeURL() != "" },
				20*time.Second, time.Millisecond)
			// The bot is Penstock again: it speaks to the edge as to the vendor.
			run(t, botAt(service.EdgeURL()))
			require.Equal(t, "open", string(r.until(evSession).State))
			_, err := io.WriteString(typed, "hello\n")
			require.NoError(t, err)
			require.Equal(t, "hello", r.until(evReply).Text)
			_, err = io.WriteString(typed, "/quit\n")
			require.NoError(t, err)
			require.Equal(t, 1, r.end(nil).Replies)
			require.NoError(t, typed.Close())
		})
	}
}

func botAt(url string) string {
	return "installations:\n  - {id: bot, client_id: my-bot, client_secret: my-bot, allow_insecure: true, api_base: '" +
		url + "', oapi_base: '" + url + "'}\nroutes: [{handler: {echo: {}}}]\n"
}

// documented gives the example of the document, for a gateway at an address.
func documented(t *testing.T) func(url string) string {
	t.Helper()
	b, err := os.ReadFile("../../docs/simulate.md")
	require.NoError(t, err)
	example := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindStringSubmatch(string(b))
	require.Len(t, example, 2)
	return func(url string) string {
		require.Contains(t, example[1], "http://"+DefaultListen)
		return strings.ReplaceAll(example[1], "http://"+DefaultListen, url)
	}
}

// greeted puts the two parts of the greeting together.
func greeted(url string) string {
	text := greeting(url, Options{}.withDefaults())
	installations := regexp.MustCompile(`(?s)\n(installations:\n.*?)routes:\n`).FindStringSubmatch(text)
	edge := regexp.MustCompile(`(?s)\n(edge:\n.*?)\n\n`).FindStringSubmatch(text)
	return installations[1] + edge[1]
}
