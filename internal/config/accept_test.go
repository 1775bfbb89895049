package config_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/penstock-io/penstock/internal/config"
)

func TestNothingButABotGivesTheDefaults(t *testing.T) {
	want := config.Default()
	want.Installations = []config.Installation{{
		ID: "bot", Platform: "dingtalk", ClientID: "ding1", ClientSecret: "s3",
		Topics:  []string{"/v1.0/im/bot/messages/get"},
		APIBase: "https://api.dingtalk.com", OAPIBase: "https://oapi.dingtalk.com",
		PingEvery: 30 * time.Second, Silence: 85 * time.Second, ReadLimit: 4 << 20,
	}}
	want.Warnings = config.Problems{{
		File: "f", Key: "routes", Text: "is missing, so messages are taken and not handled",
	}}
	require.Equal(t, &want, accepted(t, bot, nil))
}

func TestAnEmptySectionLeavesItsDefaults(t *testing.T) {
	cfg := accepted(t, bot+"log:\ninbound: {workers:}\nstop_within: ~\nroutes:\n", nil)
	require.Equal(t, config.Default().Log, cfg.Log)
	require.Equal(t, config.Default().Inbound, cfg.Inbound)
	require.Equal(t, config.Default().StopWithin, cfg.StopWithin)
}

func TestWorkersSuitTheRoutes(t *testing.T) {
	const toEdge, echo = "{handler: {edge: {consumer: a}}}", "{match: {prefix: a}, handler: {echo: }}"
	for file, want := range map[string]int{
		"":                         8,
		"routes: [" + toEdge + "]": 256,
		"routes: [" + echo + "]":   8,
		"inbound: {workers: 3}":    3,
		"inbound: {workers: 9}\nroutes: [" + toEdge + "]": 9,
		"routes: [" + echo + ", " + toEdge + "]":          8,
	} {
		require.Equal(t, want, accepted(t, bot+consumer+file+"\n", nil).InboundWorkers(), file)
	}
}

func TestHandlersAndTheirDefaults(t *testing.T) {
	cfg := accepted(t, bot+`
routes:
  - {match: {prefix: a}, handler: {echo: }}
  - {match: {prefix: b}, handler: {http: {url: "http://127.0.0.1:1/x", headers: {X-A: 1}}}}
  - handler: {exec: {command: [a, 1, true], env: {A: b}}}
`, nil)
	require.Equal(t, "route-1", cfg.Routes[0].Name)
	require.Equal(t, &config.Echo{}, cfg.Routes[0].Handler.Echo)
	require.Equal(t, &config.HTTP{
		URL: "http://127.0.0.1:1/x", Headers: map[string]config.Secret{"X-A": "1"},
		Timeout: time.Minute, MaxResponse: 1 << 20,
	}, cfg.Routes[1].Handler.HTTP)
	require.Equal(t, &config.Exec{
		Command: []string{"a", "1", "true"}, Env: map[string]config.Secret{"A": "b"},
		Timeout: time.Minute, MaxOutput: 1 << 20, Output: "auto",
	}, cfg.Routes[2].Handler.Exec)
}

func TestWaysToWriteAValue(t *testing.T) {
	for _, tt := range []struct {
		name, text string
		got        func(*config.Config) any
		want       any
	}{
		{"number in quotes", "inbound: {workers: '3'}", func(c *config.Config) any { return c.Inbound.Workers }, 3},
		{"zero duration", "reconnect: {max_age: 0}", func(c *config.Config) any { return c.Reconnect.MaxAge }, time.Duration(0)},
		{"compound duration", "stop_within: 1m30s", func(c *config.Config) any { return c.StopWithin }, 90 * time.Second},
		{"bytes", "store: {max_bytes: 2097152}", func(c *config.Config) any { return c.Store.MaxBytes }, config.Size(2 << 20)},
		{"unit", "store: {max_bytes: 2 GiB}", func(c *config.Config) any { return c.Store.MaxBytes }, config.Size(2 << 30)},
		{"small letters", "store: {max_bytes: 2mib}", func(c *config.Config) any { return c.Store.MaxBytes }, config.Size(2 << 20)},
		{"whole number for a rate", "outbound: {installation_rate: 5}", func(c *config.Config) any { return c.Outbound.InstallationRate }, 5.0},
		{"no limit", "outbound: {installation_rate: 0}", func(c *config.Config) any { return c.Outbound.InstallationRate }, 0.0},
		{"no waits", "outbound: {waits: []}", func(c *config.Config) any { return len(c.Outbound.Waits) }, 0},
		{"known tag", "stop_within: !!str 2s", func(c *config.Config) any { return c.StopWithin }, 2 * time.Second},
		{"admin off", "admin: {listen: off}", func(c *config.Config) any { return c.Admin.Listen }, "off"},
		{"IPv6", "admin: {listen: '[::1]:0'}", func(c *config.Config) any { return c.Admin.Listen }, "[::1]:0"},
		{"block text", "admin:\n  token: |\n    abc\n", func(c *config.Config) any { return c.Admin.Token.Reveal() }, "abc"},
		{"byte order mark", "", func(c *config.Config) any { return c.Installations[0].ID }, "bot"},
		{"variable", "admin: {token: 'a${V}b'}", func(c *config.Config) any { return c.Admin.Token.Reveal() }, "avalueb"},
		{"default of a variable", "admin: {token: '${NONE:-x}'}", func(c *config.Config) any { return c.Admin.Token.Reveal() }, "x"},
		{"default of an empty variable", "admin: {token: '${EMPTY:-x}'}", func(c *config.Config) any { return c.Admin.Token.Reveal() }, "x"},
		{"empty default", "admin: {token: '${NONE:-}'}", func(c *config.Config) any { return c.Admin.Token.Reveal() }, ""},
		{"a variable's dollar is plain", "admin: {token: '${DOLLAR}'}", func(c *config.Config) any { return c.Admin.Token.Reveal() }, "${V}"},
		{"other dollars", "admin: {token: 'a$b$$c$'}", func(c *config.Config) any { return c.Admin.Token.Reveal() }, "a$b$$c$"},
		{"escaped", "admin: {token: '$${V}${V}'}", func(c *config.Config) any { return c.Admin.Token.Reveal() }, "${V}value"},
		{"number from a variable", "inbound: {workers: '${N}'}", func(c *config.Config) any { return c.Inbound.Workers }, 7},
	} {
		t.Run(tt.name, func(t *testing.T) {
			cfg := accepted(t, "\ufeff"+bot+tt.text, map[string]string{
				"V": "value", "EMPTY": "", "DOLLAR": "${V}", "N": "7",
			})
			require.Equal(t, tt.want, tt.got(cfg))
		})
	}
}

func TestLineEndsOfWindows(t *testing.T) {
	cfg := accepted(t, strings.ReplaceAll(bot+"log:\n  level: debug\n", "\n", "\r\n"), nil)
	require.Equal(t, "debug", cfg.Log.Level)
	require.Equal(t, config.Secret("s3"), cfg.Installations[0].ClientSecret)
}

func TestAnchorsAndMergeKeys(t *testing.T) {
	cfg := accepted(t, `
x-times: &times
  ping_every: 10s
  silence: 40s
x-more: &more {silence: 50s, read_limit: 8KiB}
installations:
  - &one
    <<: *times
    id: one
    client_id: &client ding1
    client_secret: s1
  - <<: *one
    id: two
    silence: 45s
  - <<: [*times, *more]
    id: three
    client_id: *client
    client_secret: s3
`, nil)
	one, two, three := cfg.Installations[0], cfg.Installations[1], cfg.Installations[2]
	require.Equal(t, 40*time.Second, one.Silence)
	require.Equal(t, config.Secret("s1"), two.ClientSecret)
	require.Equal(t, 45*time.Second, two.Silence, "the mapping's own key wins")
	require.Equal(t, 10*time.Second, two.PingEvery, "a merge of a merge")
	require.Equal(t, "ding1", three.ClientID)
	require.Equal(t, 40*time.Second, three.Silence, "the first of several wins")
	require.Equal(t, config.Size(8<<10), three.ReadLimit)
}

func TestSecretFromAFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	text := strings.Replace(bot, "s3", "{file: '${DIR}/s'}", 1)
	vars := map[string]string{"DIR": filepath.Dir(path)}
	require.NoError(t, os.WriteFile(path, []byte("abc${V}\r\n"), 0o600))
	require.Equal(t, "abc${V}", accepted(t, text, vars).Installations[0].ClientSecret.Reveal())

	require.NoError(t, os.WriteFile(path, nil, 0o600))
	require.Equal(t, "4: installations[0].client_secret: is empty", report(problems(t, text, env(vars))))

	require.NoError(t, os.WriteFile(path, make([]byte, 65<<10), 0o600))
	require.Equal(t, `4: installations[0].client_secret: "${DIR}/s": the file is larger than 64KiB`,
		report(problems(t, text, env(vars))))
}

func TestLoad(t *testing.T) {
	path := filepath.Join(t.TempDir(), "c.yaml")
	_, err := config.Load(path)
	require.Equal(t, config.Problems{{File: path, Text: "the file does not exist"}}, err)

	require.NoError(t, os.WriteFile(path, []byte(bot), 0o600))
	cfg, err := config.Load(path)
	require.NoError(t, err)
	require.Len(t, cfg.Installations, 1)

	require.NoError(t, os.WriteFile(path, make([]byte, 1<<20+1), 0o600))
	_, err = config.Load(path)
	require.Equal(t, config.Problems{{File: path, Text: "the file is larger than 1MiB"}}, err)

	_, err = config.Load(filepath.Dir(path))
	require.Equal(t, config.Problems{{
		File: filepath.Dir(path), Text: "the file cannot be read: is a directory",
	}}, err)
}

func TestLocateNeedsNoSecrets(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f.yaml")
	locate := func(text string) (*config.Config, error) {
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return config.Locate(path)
	}
	cfg, err := locate(`
installations: [{id: a, client_id: "${NOT_SET_1}", client_secret: {file: /nowhere/s}}]
admin: {listen: ":8970", token: "${NOT_SET_2}", socket: p.sock}
store: {path: s.db}
routes: [{handler: {}}]
logs: {}
`)
	require.NoError(t, err)
	require.Equal(t, "s.db", cfg.Store.Path)
	require.Equal(t, "p.sock", cfg.Admin.Socket)
	for _, text := range []string{
		"store: {path: '${NOT_SET_1}'}", "store: {pth: a}", "stores: [", "admin: []",
		"admin: {socket: '${NOT_SET_1}'}", "- a", "a: 1\n---\nb: 1",
	} {
		cfg, err := locate(text)
		require.Error(t, err, text)
		require.Nil(t, cfg)
	}
	_, err = config.Locate("/nowhere/f")
	require.EqualError(t, err, "/nowhere/f: the file does not exist")
}
