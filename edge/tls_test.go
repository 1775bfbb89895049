package edge_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"github.com/stretchr/testify/require"

	"github.com/penstock-io/penstock/edge"
)

// certificate makes one for 127.0.0.1 and gives its files and who trusts it.
func certificate(t *testing.T) (cert, key string, trust *tls.Config) {
	t.Helper()
	return certificateIn(t, t.TempDir())
}

func certificateIn(t *testing.T, dir string) (cert, key string, trust *tls.Config) {
	t.Helper()
	priv, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	tmpl := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "edge"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, tmpl, priv.Public(), priv)
	require.NoError(t, err)
	keyDER, err := x509.MarshalPKCS8PrivateKey(priv)
	require.NoError(t, err)
	write := func(name, kind string, b []byte) string {
		path := filepath.Join(dir, name)
		text := pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: b})
		require.NoError(t, os.WriteFile(path, text, 0o600))
		return path
	}
	pool := x509.NewCertPool()
	leaf, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	pool.AddCert(leaf)
	return write("cert.pem", "CERTIFICATE", der), write("key.pem", "PRIVATE KEY", keyDER),
		&tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
}

func TestTheWholeWayOverTLS(t *testing.T) {
	t.Parallel()
	cert, key, trust := certificate(t)
	b := serve(t, edge.Config{CertFile: cert, KeyFile: key})
	require.True(t, strings.HasPrefix(b.srv.URL(), "https://"))
	web := &http.Client{Transport: &http.Transport{TLSClientConfig: trust, ForceAttemptHTTP2: true}}
	defer web.CloseIdleConnections()
	res, err := web.Post(b.openURL(), "application/json",
		strings.NewReader(credentials("client-one", secretOfOne)))
	require.NoError(t, err)
	var open struct{ Endpoint, Ticket string }
	require.NoError(t, json.NewDecoder(res.Body).Decode(&open))
	_ = res.Body.Close()
	require.True(t, strings.HasPrefix(open.Endpoint, "wss://"), open.Endpoint)
	dialer := websocket.Dialer{TLSClientConfig: trust}
	ws, upgrade, err := dialer.Dial(open.Endpoint+"?ticket="+open.Ticket, nil)
	require.NoError(t, err)
	_ = upgrade.Body.Close()
	defer ws.Close()
	c := &client{t, ws}
	b.counts(1, func(s edge.Stats) int64 { return int64(s.Connections["one"]) })
	r := b.give(robot("m", "c"))
	c.ok(c.read())
	_, err = r.wait()
	require.NoError(t, err)
	b.stop()
	require.Equal(t, "disconnect", c.read().Headers["topic"])
}

func TestAClientThatDoesNotTrustUsIsLogged(t *testing.T) {
	t.Parallel()
	cert, key, _ := certificate(t)
	b := serve(t, edge.Config{CertFile: cert, KeyFile: key})
	for range 3 {
		_, err := tls.Dial("tcp", strings.TrimPrefix(b.srv.URL(), "https://"), nil)
		require.Error(t, err)
	}
	b.eventually(func() bool { return strings.Count(b.log.String(), "DEBUG") >= 3 })
	require.Equal(t, 1, strings.Count(b.log.String(), "web server complains"), "now and then")
}

func TestACertificateThatIsNotThere(t *testing.T) {
	t.Parallel()
	srv, err := edge.New(edge.Config{
		Listen: "127.0.0.1:0", Outbox: &outbox{}, CertFile: "/nowhere", KeyFile: "/nowhere",
	})
	require.NoError(t, err)
	require.ErrorContains(t, srv.Run(t.Context()), "certificate")
}

// shake tries a handshake.
func (b *bench) shake(trust *tls.Config) error {
	conn, err := tls.Dial("tcp", strings.TrimPrefix(b.srv.URL(), "https://"), trust)
	if err == nil {
		_ = conn.Close()
	}
	return err
}

func TestANewCertificateNeedsNoRestart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cert, key, old := certificateIn(t, dir)
	b := serve(t, edge.Config{CertFile: cert, KeyFile: key})
	shake := b.shake
	require.NoError(t, shake(old))
	require.NoError(t, os.WriteFile(key, []byte("half"), 0o600))
	require.NoError(t, os.Chtimes(key, time.Time{}, time.Now().Add(time.Second)))
	require.NoError(t, shake(old), "what cannot be used changes nothing")
	require.Contains(t, b.log.String(), "the old one stays")
	_, _, trust := certificateIn(t, dir)
	require.NoError(t, os.Chtimes(key, time.Time{}, time.Now().Add(2*time.Second)))
	require.NoError(t, shake(trust))
	require.Error(t, shake(old))
}
