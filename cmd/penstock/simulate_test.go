package main

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/penstock-io/penstock/internal/app"
	"github.com/penstock-io/penstock/internal/config"
)

// The configuration that is printed works as it stands, and with it a whole script.
func TestSimulateWithTheConfigurationThatItPrints(t *testing.T) {
	script := write(t, "# a smoke test\nhello\n/direct Ann\nis the build green?\n/dup\n")
	read, out := io.Pipe()
	var errs bytes.Buffer
	code := make(chan int, 1)
	go func() {
		code <- run([]string{"simulate", "--listen", "127.0.0.1:0", "--script", script, "--for", "1m"},
			out, &errs)
		_ = out.Close()
	}()
	lines := bufio.NewScanner(read)
	var text strings.Builder
	for lines.Scan() && !strings.HasPrefix(lines.Text(), "installations:") {
	}
	for ok := true; ok && lines.Text() != ""; ok = lines.Scan() {
		text.WriteString(lines.Text() + "\n")
	}
	text.WriteString("store: {kind: memory}\nadmin: {listen: off}\n")
	cfg, err := config.Parse("printed.yaml", []byte(text.String()), os.LookupEnv)
	require.NoError(t, err, text.String())
	service, err := app.New(cfg, app.Options{})
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- service.Run(ctx) }()

	var shown strings.Builder
	for lines.Scan() {
		shown.WriteString(lines.Text() + "\n")
	}
	stop()
	require.NoError(t, <-served)
	require.Equal(t, exitOK, <-code, errs.String()+shown.String())
	for _, want := range []string{
		"push   #1 general  Tester: hello", "ack    #1 200 in ", "reply  general  [webhook text] hello",
		"reply  direct-Ann  [webhook text] is the build green?", "socket 1 open by ",
		"end    3 pushed: 3 acknowledged, 0 refused, 0 failed, 0 open; 2 replies",
	} {
		require.Contains(t, shown.String(), want)
	}
	require.NotContains(t, shown.String(), "session=")
}

func TestSimulateTellsWhatWasNotAcknowledged(t *testing.T) {
	code, out, errs := call("simulate", "--listen", "127.0.0.1:0", "--json", "--for", "50ms",
		"--script", write(t, "hello\n"), "--plain-tickets") // which says what is so anyway
	require.Equal(t, exitFailed, code)
	require.True(t, strings.HasPrefix(out, "{"), "nothing but objects: %s", out)
	require.Contains(t, out, `"event":"push","n":1,`)
	require.Contains(t, out, `"totals":{"pushed":1,"acknowledged":0,"refused":0,"failed":0,"open":1,"replies":0}`)
	require.Contains(t, errs, "penstock: not everything was acknowledged\n")
	require.Contains(t, errs, "allow_insecure: true", "what is for people is not among the objects")
}

func TestSimulateRefusesMistakes(t *testing.T) {
	script := write(t, "hello\n/cutt\n/fault open 418\n")
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"--script", script}, `c.yaml:2: there is no command "/cutt"; did you mean /cut [SOCKET]?`},
		{[]string{"--script", script}, `c.yaml:3: /fault: open cannot fail with "418", only with 400,`},
		{[]string{"--script", script + "x"}, "--script: open "},
		{[]string{"--listen", "0.0.0.0:1"}, "--listen must be a loopback address"},
		{[]string{"--random", "--rate", "0"}, "--rate must be at least 1"},
		{[]string{"--random", "--conversations", "0"}, "--conversations must be at least 1"},
		{[]string{"--rate", "7"}, "--rate and --conversations need --random"},
		{[]string{"--client-id", ""}, "must not be empty"},
		{[]string{"--for", "-1s"}, "--for must not be negative"},
		{[]string{"x"}, `simulate takes no argument "x"`},
	} {
		code, out, errs := call(append([]string{"simulate"}, tt.args...)...)
		require.Equal(t, exitUsage, code, tt.args)
		require.Empty(t, out)
		require.Contains(t, errs, tt.want)
		require.Contains(t, errs, "try: penstock simulate --help")
	}
}
