package dingtalk_test

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/gorilla/websocket"
	"github.com/stretchr/testify/require"

	"github.com/penstock-io/penstock/integrations"
	"github.com/penstock-io/penstock/integrations/dingtalk"
	"github.com/penstock-io/penstock/message"
)

// tlsGateway speaks https and wss with a certificate that no system trusts.
func tlsGateway(t *testing.T) (g *gateway, srv *httptest.Server) {
	g = &gateway{
		socks: make(chan *websocket.Conn, 1), opens: make(chan string, 8), dials: make(chan string, 8),
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1.0/gateway/connections/open", g.serveOpen)
	mux.HandleFunc("/connect", g.serveConnect)
	srv = httptest.NewUnstartedServer(mux)
	srv.Config.ErrorLog = log.New(io.Discard, "", 0)
	srv.StartTLS()
	t.Cleanup(srv.Close)
	g.addr = srv.Listener.Addr().String()
	g.open = func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(map[string]string{
			"endpoint": "wss://" + g.addr + "/connect", "ticket": ticket,
		})
	}
	return g, srv
}

func secure(g *gateway) dingtalk.Config {
	cfg := g.config()
	cfg.APIBase = "https://" + g.addr
	cfg.AllowInsecure = false
	return cfg
}

// talk runs one message through a session.
func talk(t *testing.T, g *gateway, cfg dingtalk.Config) {
	t.Helper()
	r := run(t, cfg)
	r.sock = <-g.socks
	r.say(t, robotFrame("f1"))
	require.NoError(t, (<-r.core.offers).Ack.Settle(message.Accept, nil))
	require.Equal(t, ackText(200, "f1", "OK", `{"response":null}`), r.hear(t))
	r.listen()
	r.stop()
	require.Equal(t, integrations.Stopped, (<-r.end).Why)
	_ = r.sock.Close()
}

func TestOwnCertificates(t *testing.T) {
	g, srv := tlsGateway(t)
	file := filepath.Join(t.TempDir(), "ca.pem")
	block := &pem.Block{Type: "CERTIFICATE", Bytes: srv.Certificate().Raw}
	require.NoError(t, os.WriteFile(file, pem.EncodeToMemory(block), 0o600))
	pool := x509.NewCertPool()
	pool.AddCert(srv.Certificate())

	cfg := secure(g)
	cfg.CAFile = file
	talk(t, g, cfg)
	cfg.CAFile, cfg.RootCAs = "", pool
	talk(t, g, cfg)
	cfg.CAFile, cfg.RootCAs = file, x509.NewCertPool()
	talk(t, g, cfg)
}

func TestUnknownCertificateIsRefused(t *testing.T) {
	g, _ := tlsGateway(t)
	end := <-run(t, secure(g)).end
	require.Equal(t, integrations.Lost, end.Why)
	var cert *tls.CertificateVerificationError
	require.ErrorAs(t, end.Err, &cert)
	require.Empty(t, g.opens, "the secret has not left")
}

func TestBadCAFile(t *testing.T) {
	g, _ := tlsGateway(t)
	cfg := secure(g)
	cfg.CAFile = filepath.Join(t.TempDir(), "missing.pem")
	require.ErrorIs(t, (<-run(t, cfg).end).Err, os.ErrNotExist)
	require.NoError(t, os.WriteFile(cfg.CAFile, []byte("no certificate"), 0o600))
	require.ErrorContains(t, (<-run(t, cfg).end).Err, "CAFile")
}

// connectProxy is a CONNECT proxy that asks for a password.
type connectProxy struct {
	connects atomic.Int32
	done     chan struct{} // a word for each connect that has ended
}

func (p *connectProxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	auth := r.Header.Get("Proxy-Authorization")
	if r.Method != http.MethodConnect || !strings.HasPrefix(auth, "Basic ") {
		w.WriteHeader(http.StatusProxyAuthRequired)
		return
	}
	p.connects.Add(1)
	defer func() { p.done <- struct{}{} }()
	up, err := net.Dial("tcp", r.Host)
	if err != nil {
		w.WriteHeader(http.StatusBadGateway)
		return
	}
	down, _, _ := http.NewResponseController(w).Hijack()
	_, _ = down.Write([]byte("HTTP/1.1 200 OK\r\n\r\n"))
	var pump sync.WaitGroup
	pump.Go(func() { _, _ = io.Copy(up, down); _ = up.Close() })
	_, _ = io.Copy(down, up)
	_ = down.Close()
	pump.Wait()
}

func TestProxyCarriesBothLegs(t *testing.T) {
	g, srv := tlsGateway(t)
	p := &connectProxy{done: make(chan struct{}, 2)}
	proxy := httptest.NewServer(p)
	t.Cleanup(proxy.Close)
	cfg := secure(g)
	cfg.Proxy = "http://user:pass@" + proxy.Listener.Addr().String()
	cfg.RootCAs = x509.NewCertPool()
	cfg.RootCAs.AddCert(srv.Certificate())
	talk(t, g, cfg)
	<-p.done
	<-p.done
	require.EqualValues(t, 2, p.connects.Load())
}
