package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// call runs one command line in this process.
func call(args ...string) (code int, stdout, stderr string) {
	var out, errs bytes.Buffer
	code = run(args, &out, &errs)
	return code, out.String(), errs.String()
}

func TestHelpTeaches(t *testing.T) {
	for _, args := range [][]string{{}, {"--help"}, {"help"}} {
		code, out, errs := call(args...)
		require.Zero(t, code)
		require.Empty(t, errs)
		for _, word := range []string{
			"penstock demo", "penstock check -c FILE", "penstock run -c FILE",
			"client_secret: ${DINGTALK_CLIENT_SECRET}", "Exit codes:", "130",
			"run ", "demo ", "check ", "version ", "completion ",
		} {
			require.Contains(t, out, word)
		}
	}
	_, out, _ := call("run", "--help")
	for _, word := range []string{"SIGTERM", "SIGHUP", "stop_within", "/readyz", "--config", "Examples:"} {
		require.Contains(t, out, word)
	}
	_, check, _ := call("check", "--help")
	require.Contains(t, check, "--online")
	_, demo, _ := call("help", "demo")
	require.Contains(t, demo, "--json")
}

// The configuration that the help shows is one.
func TestTheExampleInTheHelpWorks(t *testing.T) {
	t.Setenv("DINGTALK_CLIENT_SECRET", "s3")
	const begin = "  installations:\n"
	_, rest, ok := bytes.Cut([]byte(longHelp), []byte(begin))
	require.True(t, ok)
	text, _, ok := bytes.Cut(rest, []byte("\n\nExit codes"))
	require.True(t, ok)
	path := write(t, begin+string(text)+"\n")
	code, out, errs := call("check", "-c", path)
	require.Zero(t, code, errs)
	require.Contains(t, out, "1 installation(s), 1 route(s): no mistakes")
}

func TestWrongCommandLines(t *testing.T) {
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"rnu"}, `there is no command "penstock rnu"; did you mean run?`},
		{[]string{"zzzz"}, "there is no command \"penstock zzzz\"\ntry: penstock --help"},
		{[]string{"help", "rum"}, `there is no command "penstock rum"; did you mean run?`},
		{[]string{"completion", "tcsh"}, "try: penstock completion --help"},
		{[]string{"run", "--confg", "x"}, "unknown flag: --confg\ntry: penstock run --help"},
		{[]string{"run", "x"}, `run takes no argument "x"`},
		{[]string{"version", "x"}, `version takes no argument "x"`},
		{[]string{"demo", "--for", "soon"}, "try: penstock demo --help"},
		{[]string{"demo", "--for", "1s"}, "--for must be at least 5s"},
		{[]string{"demo", "--rate", "0"}, "--rate must be at least 1"},
		{[]string{"demo", "--conversations", "-1"}, "--conversations must be at least 1"},
	} {
		code, out, errs := call(tt.args...)
		require.Equal(t, exitUsage, code, tt.args)
		require.Empty(t, out)
		require.Contains(t, errs, tt.want)
	}
}

func TestVersion(t *testing.T) {
	for _, arg := range []string{"version", "--version"} {
		code, out, errs := call(arg)
		require.Zero(t, code, errs)
		require.Regexp(t, `^penstock \S+ go\S+ \w+/\w+\n$`, out)
	}
}

func TestCompletion(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish"} {
		code, script, errs := call("completion", shell)
		require.Zero(t, code, errs)
		require.Contains(t, script, "penstock")
		path, err := exec.LookPath(shell)
		if err != nil {
			continue // the script is there; this machine cannot read it
		}
		out, err := exec.Command(path, "-n", write(t, script)).CombinedOutput()
		require.NoError(t, err, "%s", out)
	}
	_, out, _ := call("__complete", "d")
	require.Contains(t, out, "demo\t")
}

func TestCheck(t *testing.T) {
	code, out, errs := call("check", "-c", write(t, "installations: [{id: a}]\nstop_within: 5\n"))
	require.Equal(t, exitUsage, code)
	require.Empty(t, out)
	require.Contains(t, errs, "c.yaml:1: installations[0].client_id: is missing\n")
	require.Contains(t, errs, "c.yaml:2: stop_within: ")
	require.Contains(t, errs, "3 problem(s) in the configuration; docs/configuration.md lists every key\n")

	code, _, errs = call("check", "-c", filepath.Join(t.TempDir(), "none.yaml"))
	require.Equal(t, exitUsage, code)
	require.Contains(t, errs, "none.yaml: the file does not exist")

	// What only a part itself can tell.
	own := botFor("http://127.0.0.1:1") + `routes:
- {name: more, handler: {http: {url: "http://127.0.0.1:1", headers: {webhook-id: x}}}}
`
	code, _, errs = call("check", "-c", write(t, own))
	require.Equal(t, exitUsage, code)
	require.Contains(t, errs, `route "more"`)

	code, out, errs = call("check", "-c", write(t, botFor("http://127.0.0.1:1")))
	require.Zero(t, code, errs)
	require.Contains(t, out, "1 installation(s), 0 route(s): no mistakes, 1 warning(s)\n")
	require.Regexp(t, `^warning: \S+c\.yaml: routes: is missing, so messages are taken and not handled\n$`, errs)

	const twice = "edge: {consumers: [{name: a, client_id: a, client_secret: a}, " +
		"{name: b, client_id: b, client_secret: b}]}\n"
	code, out, errs = call("check", "-c", write(t, botFor("http://127.0.0.1:1")+twice+
		"routes: [{handler: {edge: {consumer: a}}}]\n"))
	require.Zero(t, code, errs)
	require.Contains(t, out, "1 installation(s), 1 route(s), 2 consumer(s): no mistakes, 1 warning(s)\n")
	require.Contains(t, errs, "c.yaml:9: edge.consumers[1]: no route leads to this consumer")
}

func TestCheckOnline(t *testing.T) {
	gw := startGateway(t)
	path := write(t, botFor(gw.URL()))
	code, out, errs := call("check", "-c", path, "--online")
	require.Zero(t, code, errs)
	require.Contains(t, out, "bot: connected in ")

	wrong := bytes.ReplaceAll([]byte(botFor(gw.URL())), []byte("test-secret"), []byte("hunter2"))
	code, out, errs = call("check", "-c", write(t, string(wrong)), "--online", "--within", "5s")
	require.Equal(t, exitFailed, code)
	require.Contains(t, out, "bot: ")
	require.Contains(t, errs, "not every installation could connect")
	require.NotContains(t, out+errs, "hunter2")
}

func TestDemoPrintsOneJSONObject(t *testing.T) {
	if testing.Short() {
		t.Skip("takes 6 seconds")
	}
	t.Setenv(asCommand, "1") // the demo starts its own program
	code, out, errs := call("demo", "--for", "5s", "--json")
	require.Zero(t, code, errs)
	require.Empty(t, errs)
	dec := json.NewDecoder(bytes.NewReader([]byte(out)))
	var sum map[string]float64
	require.NoError(t, dec.Decode(&sum))
	require.False(t, dec.More(), "one object and nothing else")
	for _, key := range []string{
		"frames", "acked", "handled", "replied", "lost", "duplicates", "inversions", "redials",
		"ack_p50_ms", "ack_p99_ms", "gap_ms_max",
	} {
		require.Contains(t, sum, key)
	}
	require.Len(t, sum, 11)
	require.Positive(t, sum["handled"])
	require.Positive(t, sum["redials"])
	require.Zero(t, sum["lost"]+sum["duplicates"]+sum["inversions"])
}

// write makes a file of the test's own, and its directory the working one.
func write(t *testing.T, text string) string {
	t.Helper()
	t.Chdir(t.TempDir())
	path := filepath.Join(t.TempDir(), "c.yaml")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}
