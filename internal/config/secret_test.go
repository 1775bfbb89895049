package config_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/penstock-io/penstock/internal/config"
)

// sentinel is a secret that fits nowhere.
const sentinel = "hunter2 ://\x01("

// Every scalar of a file may be a variable by mistake, and the variable a secret.
func TestNoProblemShowsAVariable(t *testing.T) {
	const template = `
stop_within: X
admin: {listen: X}
inbound: {workers: X, no_route: X}
store: {kind: X, max_bytes: X}
outbound: {waits: [X], installation_rate: X}
edge:
  listen: X
  public_url: X
  max_frame: X
  consumers: [{name: X, client_id: X, client_secret: X}]
installations:
- id: X
  platform: X
  client_id: X
  client_secret: X
  robot_code: X
  topics: [X]
  api_base: X
  oapi_base: X
  allow_insecure: X
  proxy: X
  ca_file: X
  ping_every: X
  read_limit: X
routes:
- handler: {http: {url: X, timeout: X, headers: {A: X}, old_secrets: [X]}}
  match: {pattern: X, installations: [X], kinds: [X], mention: X}
- handler: {exec: {command: X, max_output: X, output: X}}
- handler: {edge: {consumer: X}}
`
	text := regexp.MustCompile(`\bX\b`).ReplaceAllLiteralString(template, `"${S}"`)
	ps := problems(t, text, env(map[string]string{"S": sentinel}))
	require.Greater(t, len(ps), 25)
	require.NotContains(t, ps.Error(), "hunter2")
	require.NotContains(t, ps.Error(), "\x01")
	require.Contains(t, ps.Error(), `stop_within: "${S}" is not a duration`, "the name is told")
}

// A secret that is written where it belongs is never quoted, whatever is wrong
// with it.
func TestNoProblemShowsASecret(t *testing.T) {
	file := filepath.Join(t.TempDir(), "s")
	require.NoError(t, os.WriteFile(file, []byte("hunter2 \x01"), 0o600))
	for _, text := range []string{
		strings.Replace(bot, "s3", `"hunter2 x"`, 1),
		strings.Replace(bot, "s3", "[hunter2]", 1),
		strings.Replace(bot, "s3", "{hunter2: file}", 1),
		strings.Replace(bot, "s3", "{file: "+file+"}", 1),
		strings.Replace(bot, "s3", "!hidden hunter2", 1),
		strings.Replace(bot, "s3", `"hunter2`, 1),
		strings.Replace(bot, "s3", "hunter2: x: y", 1),
		strings.Replace(bot, "s3", "a\n     hunter2: x", 1),
		strings.Replace(bot, "s3", "${hunter2!}", 1),
		strings.Replace(bot, "s3", "|x\n hunter2", 1),
		bot + "    proxy: http://hunter2:hunter2@/",
		bot + "    proxy: ftp://hunter2@a",
		bot + "    api_base: https://u:hunter2@a",
		inRoute("handler: {http: {url: 'http://hunter2@:x'}}"),
		inRoute("handler: {http: {url: 'ht\ttp://hunter2'}}"),
		inRoute("handler: {http: {url: [http://hunter2]}}"),
	} {
		ps := problems(t, text, noEnv)
		require.NotContains(t, ps.Error(), "hunter2", text)
	}
}

func TestASecretHidesItselfWhenPrinted(t *testing.T) {
	c := accepted(t, bot+"    proxy: http://s3@127.0.0.1", nil)
	for _, format := range []string{"%v", "%+v", "%#v", "%s", "%q"} {
		require.NotContains(t, fmt.Sprintf(format, c.Installations), "s3", format)
		require.NotContains(t, fmt.Sprintf(format, *c), "s3", format)
	}
	require.Empty(t, config.Secret("").String(), "that there is none is no secret")
	require.Equal(t, "s3", c.Installations[0].ClientSecret.Reveal())
}
