package cases_test

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// farGateway is a TLS host that answers every handshake in the same way and keeps
// the URLs it was asked for.
type farGateway struct {
	// immutable
	caFile string
	cert   tls.Certificate
	answer httpAnswer

	serving sync.WaitGroup
	mu      sync.Mutex
	urls    []string // guarded by mu
}

func newFarGateway(t *testing.T, host string, answer httpAnswer) *farGateway {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	cert := &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: []string{host}, IsCA: true,
		BasicConstraintsValid: true,
		NotBefore:             time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, cert, cert, &key.PublicKey, key)
	require.NoError(t, err)
	g := &farGateway{
		caFile: filepath.Join(t.TempDir(), "ca.pem"), answer: answer,
		cert: tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key},
	}
	block := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	require.NoError(t, os.WriteFile(g.caFile, block, 0o600))
	t.Cleanup(g.serving.Wait)
	return g
}

// open is for system.Network.
func (g *farGateway) open(context.Context) (net.Conn, error) {
	client, server := net.Pipe()
	g.serving.Go(func() {
		g.serve(tls.Server(server, &tls.Config{
			Certificates: []tls.Certificate{g.cert}, MinVersion: tls.VersionTLS12,
		}))
	})
	return client, nil
}

func (g *farGateway) serve(conn net.Conn) {
	defer func() { _ = conn.Close() }()
	r, err := http.ReadRequest(bufio.NewReader(conn))
	if err != nil {
		return
	}
	g.mu.Lock()
	g.urls = append(g.urls, "wss://"+r.Host+r.RequestURI)
	g.mu.Unlock()
	_, _ = fmt.Fprintf(conn, "HTTP/1.1 %d x\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s",
		g.answer.Status, len(g.answer.Body), g.answer.Body)
}

func (g *farGateway) asked() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.urls)
}
