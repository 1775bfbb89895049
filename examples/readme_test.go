// Package examples holds the programs of the README; its tests hold them against
// the README and run them.
package examples

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/penstock-io/penstock/internal/config"
)

func read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(b)
}

// blocks gives the fenced blocks of a language.
func blocks(text, language string) []string {
	var all []string
	for _, m := range regexp.MustCompile("(?s)\n```"+language+"\n(.*?)```").FindAllStringSubmatch(text, -1) {
		all = append(all, m[1])
	}
	return all
}

// The README shows the programs as they are, but for package clause, imports and
// what only linters read.
func TestTheREADMEShowsTheExamples(t *testing.T) {
	readme := read(t, "../README.md")
	require.Contains(t, blocks(readme, "python"), read(t, "http/bot.py"))
	shown := func(path, from string) string {
		source := read(t, path)
		_, rest, ok := strings.Cut(source, from)
		require.True(t, ok)
		return regexp.MustCompile(` //nolint.*`).ReplaceAllString(from+rest, "")
	}
	require.Contains(t, blocks(readme, "go"), shown("http/bot.go", "func main()"))
	require.Contains(t, blocks(readme, "go"), shown("library/main.go", "// answer is the bot"))
}

func TestTheConfigurationsOfTheREADMEWork(t *testing.T) {
	files := blocks(read(t, "../README.md"), "yaml")
	require.NotEmpty(t, files)
	for _, text := range files {
		_, err := config.Parse("README.md", []byte(text),
			func(string) (string, bool) { return "value", true })
		require.NoError(t, err, text)
	}
}

// Every file that a document links to is there.
func TestLinksLeadSomewhere(t *testing.T) {
	docs, err := filepath.Glob("../docs/*.md")
	require.NoError(t, err)
	link := regexp.MustCompile(`\]\(([^)#]+)?(#[^)]*)?\)`)
	for _, doc := range append(docs, "../README.md") {
		for _, m := range link.FindAllStringSubmatch(read(t, doc), -1) {
			target := m[1]
			if strings.Contains(target, "://") {
				continue
			}
			path := doc
			if target != "" {
				path = filepath.Join(filepath.Dir(doc), target)
			}
			require.FileExists(t, asFile(path), "%s links to %s", doc, target)
			if m[2] != "" {
				require.Contains(t, anchors(read(t, path)), m[2], "%s links to %s", doc, m[0])
			}
		}
	}
}

// asFile gives something in a directory, and a file as it is.
func asFile(path string) string {
	if in, err := filepath.Glob(filepath.Join(path, "*.*")); err == nil && len(in) > 0 {
		return in[0]
	}
	return path
}

// anchors lists the headings of a document as links name them.
func anchors(text string) []string {
	var all []string
	for _, m := range regexp.MustCompile(`(?m)^#+ (.*)$`).FindAllStringSubmatch(text, -1) {
		name := regexp.MustCompile(`[^a-z0-9 -]`).ReplaceAllString(strings.ToLower(m[1]), "")
		all = append(all, "#"+strings.ReplaceAll(name, " ", "-"))
	}
	return all
}

// free finds a port for an example that has 8080 in its text.
func free(t *testing.T) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { require.NoError(t, ln.Close()) }()
	_, port, err := net.SplitHostPort(ln.Addr().String())
	require.NoError(t, err)
	return port
}

func TestTheEndpointsAnswer(t *testing.T) {
	for _, tt := range []struct {
		name, source string
		command      func(t *testing.T, path string) []string
	}{
		{"python", "http/bot.py", func(_ *testing.T, path string) []string {
			return []string{"python3", path}
		}},
		{"go", "http/bot.go", build},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := exec.LookPath("python3"); err != nil && tt.name == "python" {
				t.Skip("there is no python3")
			}
			port := free(t)
			path := filepath.Join(t.TempDir(), filepath.Base(tt.source))
			text := strings.Replace(read(t, tt.source), "8080", port, 1)
			require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
			ctx, cancel := context.WithCancel(context.Background())
			command := tt.command(t, path)
			cmd := exec.CommandContext(ctx, command[0], command[1:]...) //nolint:gosec // ours
			require.NoError(t, cmd.Start())
			defer func() { cancel(); _ = cmd.Wait() }()
			require.JSONEq(t, `{"text": "you said: hello"}`, ask(t, "http://127.0.0.1:"+port+"/messages"))
		})
	}
}

// build compiles a program of one file.
func build(t *testing.T, path string) []string {
	t.Helper()
	program := strings.TrimSuffix(path, ".go")
	out, err := exec.Command("go", "build", "-o", program, path).CombinedOutput()
	require.NoError(t, err, "%s", out)
	return []string{program}
}

// ask posts a message until somebody answers.
func ask(t *testing.T, url string) string {
	t.Helper()
	body, err := json.Marshal(map[string]any{"schema": 1, "text": "hello"})
	require.NoError(t, err)
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: time.Second}
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	late := time.After(time.Minute)
	for {
		resp, err := client.Post(url, "application/json", bytes.NewReader(body))
		if err == nil {
			answer, err := io.ReadAll(resp.Body)
			require.NoError(t, err)
			require.NoError(t, resp.Body.Close())
			return string(answer)
		}
		select {
		case <-tick.C:
		case <-late:
			t.Fatal(err)
		}
	}
}
