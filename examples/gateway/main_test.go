package main

import (
	"bufio"
	"context"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/penstock-io/penstock/internal/app"
	"github.com/penstock-io/penstock/internal/config"
	"github.com/penstock-io/penstock/internal/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// What is typed comes back by way of the service, with the file of configs but for
// its addresses and its handler.
func TestALineIsAnswered(t *testing.T) {
	file, err := os.ReadFile("../../configs/simulated.yaml")
	require.NoError(t, err)
	t.Chdir(t.TempDir()) // what the service writes, it writes there
	ctx, stop := context.WithTimeout(context.Background(), time.Minute)
	defer stop()
	in, typed := io.Pipe()
	printed, out := io.Pipe()
	gone := make(chan error, 1)
	go func() { gone <- serve(ctx, "127.0.0.1:0", in, out) }()
	lines := bufio.NewScanner(printed)
	require.True(t, lines.Scan())
	var url, client string
	for _, word := range strings.Fields(lines.Text()) {
		if strings.HasPrefix(word, "http://") {
			url = word
		}
		client = word // the last one
	}
	require.Contains(t, string(file), "client_id: "+client)

	text := strings.NewReplacer(
		"http://127.0.0.1:8971", url, "admin:\n", "admin:\n  listen: off\n",
		"http:\n        url: http://127.0.0.1:8080/messages", "echo: {}",
	).Replace(string(file) + "\nadmin:\n")
	cfg, err := config.Parse("simulated.yaml", []byte(text), os.LookupEnv)
	require.NoError(t, err, text)
	require.NotNil(t, cfg.Routes[0].Handler.Echo)
	service, err := app.New(cfg, app.Options{})
	require.NoError(t, err)
	served := make(chan error, 1)
	runCtx, stopService := context.WithCancel(ctx)
	go func() { served <- service.Run(runCtx) }()
	_, err = io.WriteString(typed, "hello\n")
	require.NoError(t, err)
	require.True(t, lines.Scan())
	require.Equal(t, "bot: hello", lines.Text())

	require.NoError(t, typed.Close())
	stopService()
	require.NoError(t, <-served)
	stop()
	require.NoError(t, <-gone)
}
