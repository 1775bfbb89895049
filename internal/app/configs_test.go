package app_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/penstock-io/penstock/internal/app"
	"github.com/penstock-io/penstock/internal/config"
)

// anything answers every variable.
func anything(string) (string, bool) { return "value", true }

// example reads an example configuration; its secret files, and its certificate, are
// replaced by some that are there.
func example(t *testing.T, path string) *config.Config {
	t.Helper()
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	secret := filepath.Join(t.TempDir(), "secret")
	require.NoError(t, os.WriteFile(secret, []byte("s3\n"), 0o600))
	text := regexp.MustCompile(`\{file: [^}]*\}`).ReplaceAllString(string(b), "{file: "+secret+"}")
	cert, key := certificate(t)
	text = strings.NewReplacer("/etc/penstock/bots.example.com.pem", cert,
		"/etc/penstock/bots.example.com.key", key).Replace(text)
	cfg, err := config.Parse(path, []byte(text), func(name string) (string, bool) {
		if strings.HasSuffix(name, "_PROXY") {
			return "http://127.0.0.1:3128", true
		}
		return name, true // no two are the same
	})
	require.NoError(t, err)
	return cfg
}

// certificate makes the files of a certificate for bots.example.com and its key.
func certificate(t *testing.T) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: []string{"bots.example.com"},
		NotAfter: time.Now().Add(time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	require.NoError(t, err)
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	require.NoError(t, err)
	dir := t.TempDir()
	cert, key = filepath.Join(dir, "cert"), filepath.Join(dir, "key")
	for path, block := range map[string]*pem.Block{
		cert: {Type: "CERTIFICATE", Bytes: der}, key: {Type: "PRIVATE KEY", Bytes: secret},
	} {
		require.NoError(t, os.WriteFile(path, pem.EncodeToMemory(block), 0o600))
	}
	return cert, key
}

func TestEveryExampleConfigurationWorks(t *testing.T) {
	paths, err := filepath.Glob("../../configs/*.yaml")
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(paths), 4)
	for _, path := range paths {
		t.Run(filepath.Base(path), func(t *testing.T) {
			cfg := example(t, path)
			t.Chdir(t.TempDir()) // what a service writes, it writes there
			require.NotEmpty(t, cfg.Installations)
			require.NotEmpty(t, cfg.Routes)
			for _, w := range cfg.Warnings { // a command need not be on this machine
				require.Contains(t, w.Key, ".exec.command", w)
			}
			_, err := app.New(cfg, app.Options{})
			require.NoError(t, err)
		})
	}
}

// What the configuration lets through, the parts take too: the smallest and the
// largest of every range, and every word of every list.
func TestThePartsTakeWhatTheConfigurationAllows(t *testing.T) {
	f, ok := reflect.TypeFor[config.Installation]().FieldByName("Topics")
	require.True(t, ok)
	t.Chdir(t.TempDir())
	topics := strings.Join(strings.Fields(f.Tag.Get("oneof")), ", ")
	for _, text := range []string{
		"    topics: [" + topics + "]",
		"    ping_every: 1ms\n    silence: 2ms\n    app_silence: 1ms\n    read_limit: 4KiB",
		"    ping_every: 1h\n    silence: 24h\n    app_silence: 24h\n    read_limit: 1GiB",
		"    proxy: none",
		"    proxy: socks5://u:p@127.0.0.1:1",
		"    api_base: https://a.example/\n    reply_hosts: [a.example]",
		"reconnect: {base: 1ms, max: 1ms, probe_every: 1s, max_age: 0, per_second: 0.01}",
		"reconnect: {max: 1h, max_age: 1h, per_second: 1000000}",
		"inbound: {workers: 1, per_conversation: 1, pending: 1, timeout: 1ms, no_route: dead}",
		"inbound: {attempts: 1, retry_base: 1ms, retry_max: 1ms, sync_workers: 1, sync_within: 2s}",
		"outbound: {workers: 1, per_conversation: 1, pending: 1, waits: [], uncertain: discard}",
		"outbound: {installation_rate: 0, conversation_rate: 0.001, attempts: 1, ttl: 1s}",
		"store: {max_items: 1, max_bytes: 1MiB, dedup_window: 1s, dedup_ids: 1}",
		"edge: {max_frame: 4KiB, ack_within: 1ms, ping_every: 10ms, max_connections: 1}",
		"edge: {max_frame: 64MiB, ping_every: 1h, passthrough_webhook: true, public_url: 'https://a/b/'}\n" +
			"inbound: {timeout: 24h}",
		"edge: {listen: ':0', public_url: 'http://a', consumers: [{name: a, client_id: a, client_secret: a," +
			" max_connections: 1}]}\nroutes: [{handler: {edge: {consumer: a}}}]",
		`routes: [{handler: {http: {url: "http://a", timeout: 1ms, max_response: 1}}}]`,
		`routes: [{handler: {exec: {command: [a], timeout: 1ms, max_output: 1}}}]`,
	} {
		cfg, err := config.Parse("f", []byte(
			"installations:\n  - id: bot\n    client_id: a\n    client_secret: b\n"+text), anything)
		require.NoError(t, err, text)
		_, err = app.New(cfg, app.Options{})
		require.NoError(t, err, text)
	}
}
