package app_test

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/penstock-io/penstock/integrations/dingtalk/dingtalktest"
	"github.com/penstock-io/penstock/internal/app"
)

// knock asks the edge for a ticket and gives the status.
func (b *bench) knock(id, with string) int {
	b.t.Helper()
	body := `{"clientId":"` + id + `","clientSecret":"` + with + `","subscriptions":[]}`
	res, err := http.Post(b.app.EdgeURL()+"/v1.0/gateway/connections/open", "application/json",
		bytes.NewReader([]byte(body)))
	require.NoError(b.t, err)
	_ = res.Body.Close()
	http.DefaultClient.CloseIdleConnections()
	return res.StatusCode
}

func TestReloadChangesConsumers(t *testing.T) {
	t.Chdir(t.TempDir())
	b := &bench{t: t, ctx: t.Context(), log: &safeBuffer{}, gw: dingtalktest.Serve(t,
		dingtalktest.Config{Apps: []dingtalktest.Credentials{{ClientID: "a", Secret: secret + "a"}}})}
	one := b.installation("one", "a", "")
	edge := func(consumers string) string {
		return "edge: {listen: '127.0.0.1:0', consumers: [" + consumers + "]}\n"
	}
	const first = "{name: x, client_id: x, client_secret: " + secret + "1}"
	const toX = "routes: [{handler: {edge: {consumer: x}}}]"
	var err error
	b.app, err = app.New(b.config(one, edge(first)+toX),
		app.Options{Logger: slog.New(slog.NewTextHandler(b.log, nil))})
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- b.app.Run(ctx) }()
	require.Eventually(t, func() bool { return b.app.EdgeURL() != "" }, 20*time.Second, time.Millisecond)
	require.Equal(t, 200, b.knock("x", secret+"1"))

	const second = "{name: x, client_id: x, client_secret: " + secret + "2}"
	b.reload(b.config(one, edge(second+", {name: y, client_id: y, client_secret: "+secret+"3}")+toX))
	require.Equal(t, 401, b.knock("x", secret+"1"))
	require.Equal(t, 200, b.knock("x", secret+"2"))
	require.Equal(t, 200, b.knock("y", secret+"3"))
	require.NotContains(t, b.log.String(), "key=edge")

	b.reload(b.config(one, "edge: {listen: '127.0.0.1:0', ack_within: 5s, consumers: ["+second+"]}\n"+toX))
	require.Equal(t, 401, b.knock("y", secret+"3"))
	require.Equal(t, 1, strings.Count(b.log.String(), "key=edge"), "consumers do follow")
	require.Contains(t, b.log.String(), "key=edge.ack_within\n")

	b.reload(b.config(one, "edge: {max_connections: 5}\n"+echo))
	require.Equal(t, 401, b.knock("x", secret+"2"))
	require.Contains(t, b.log.String(), "key=edge.max_connections\n")
	b.reload(b.config(one, edge(second)+toX))
	require.Equal(t, 200, b.knock("x", secret+"2"))
	b.reload(b.config(one, edge(first)+toX))
	require.Equal(t, 200, b.knock("x", secret+"1"), "what was taken out may come back")
	stop()
	require.NoError(t, <-ended)
	require.NotContains(t, b.log.String(), secret)
}

// A service without consumers at the start says that it does not let any in.
func TestConsumersThatComeWithAReloadWaitForTheNextStart(t *testing.T) {
	b := serve(t)
	b.reload(b.config(b.installation("one", "a", ""),
		"edge: {consumers: [{name: x, client_id: x, client_secret: x}]}\n"+echo))
	require.Contains(t, b.log.String(), "key=edge.consumers\n")
	require.Empty(t, b.app.EdgeURL())
	require.NoError(t, b.stop())
}
