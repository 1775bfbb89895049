package config_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// certificate makes the files of a certificate for bots.example.com and its key.
func certificate(t *testing.T, from, to time.Time) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: []string{"bots.example.com"},
		NotBefore: from, NotAfter: to,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	require.NoError(t, err)
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	require.NoError(t, err)
	return pemFile(t, "CERTIFICATE", der), pemFile(t, "PRIVATE KEY", secret)
}

func pemFile(t *testing.T, kind string, der []byte) string {
	t.Helper()
	f, err := os.CreateTemp(".", "f") // a short name, which is shown as a whole
	require.NoError(t, err)
	require.NoError(t, pem.Encode(f, &pem.Block{Type: kind, Bytes: der}))
	require.NoError(t, f.Close())
	return f.Name()
}

// served is an edge with this certificate; its files stand on lines 7 and 8.
func served(url, cert, key string) string {
	return bot + "edge:\n  public_url: " + url + "\n  tls_cert: " + cert + "\n  tls_key: " + key + "\n" +
		"  consumers: [{name: a, client_id: a, client_secret: a}]\n" + toEdge
}

func TestTheCertificateOfTheEdge(t *testing.T) {
	t.Chdir(t.TempDir())
	const public = "https://bots.example.com"
	now := time.Now()
	cert, key := certificate(t, now.Add(-time.Hour), now.Add(time.Hour))
	require.Empty(t, warnings(t, served(public, cert, key)))

	_, other := certificate(t, now, now)
	encrypted := pemFile(t, "ENCRYPTED PRIVATE KEY", []byte("x"))
	for _, tt := range []struct{ cert, key, want string }{
		{cert, other, `8: edge.tls_key: "` + other + `" does not fit the certificate that edge.tls_cert begins with`},
		{cert, cert, `8: edge.tls_key: "` + cert + `" holds no private key in PEM form`},
		{cert, encrypted, `8: edge.tls_key: "` + encrypted + `" is encrypted, and there is nobody to ask for the password`},
		{key, cert, `7: edge.tls_cert: "` + key + `" holds no certificate in PEM form`},
		{"/nowhere/c", key, `7: edge.tls_cert: "/nowhere/c": the file does not exist`},
		{cert, "/", `8: edge.tls_key: "/": the file cannot be read: is a directory`},
	} {
		require.Equal(t, tt.want, report(problems(t, served(public, tt.cert, tt.key), noEnv)))
	}
	require.Equal(t, "6: edge.public_url: is http, and must be https: with edge.tls_cert the edge speaks TLS only",
		report(problems(t, served("http://bots.example.com", cert, key), noEnv)))
}

// A certificate that consumers will refuse may be renewed while the edge serves.
func TestWarnsOfACertificateThatConsumersRefuse(t *testing.T) {
	t.Chdir(t.TempDir())
	const public = "https://bots.example.com"
	day := time.Date(2001, 2, 3, 0, 0, 0, 0, time.UTC)
	cert, key := certificate(t, day.Add(-time.Hour), day)
	require.Equal(t, "7: edge.tls_cert: the certificate has expired, on 2001-02-03",
		warnings(t, served(public, cert, key)))
	unused := "edge: {tls_cert: " + cert + ", tls_key: " + key + "}\n"
	require.Equal(t, "5: edge: has no consumers, so nobody listens",
		warnings(t, bot+unused+"routes: [{handler: {echo: {}}}]"))

	now := time.Now()
	cert, key = certificate(t, now.Add(time.Hour), now.Add(2*time.Hour))
	require.Contains(t, warnings(t, served(public, cert, key)), "the certificate is not valid before 20")

	cert, key = certificate(t, now.Add(-time.Hour), now.Add(time.Hour))
	require.Equal(t, "7: edge.tls_cert: the certificate does not name the host of edge.public_url, to which consumers connect",
		warnings(t, served("https://other.example.com", cert, key)))
	require.Equal(t, "7: edge.tls_cert: the certificate does not name the host of edge.listen, to which consumers connect",
		warnings(t, served("''", cert, key)))
}
