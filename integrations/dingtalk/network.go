package dingtalk

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
)

// isLoopback tells whether a host can only be this machine.
func isLoopback(host string) bool {
	if host == "localhost" {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}

// proxyFunc gives the proxy for a request, in the form that http.Transport and
// the WebSocket dialer share.
func (c *Config) proxyFunc() func(*http.Request) (*url.URL, error) {
	switch c.Proxy {
	case "":
		return http.ProxyFromEnvironment
	case ProxyNone:
		return nil
	}
	u, err := url.Parse(c.Proxy)
	return func(*http.Request) (*url.URL, error) { return u, bare(err) }
}

// proxyPassword is the password in Proxy, empty if there is none.
func (c *Config) proxyPassword() string {
	u, err := url.Parse(c.Proxy)
	if err != nil || u.User == nil {
		return ""
	}
	password, _ := u.User.Password()
	return password
}

// errNoCertificate means that a CA file was read and holds nothing of use.
var errNoCertificate = errors.New("no certificate in CAFile")

// tlsConfig reads the certificates. It is called for each dial and not by the
// constructor, so that a renewed file is seen.
func (c *Config) tlsConfig() (*tls.Config, error) {
	cfg := &tls.Config{RootCAs: c.RootCAs, MinVersion: tls.VersionTLS12}
	if c.CAFile == "" {
		return cfg, nil
	}
	pem, err := os.ReadFile(c.CAFile)
	if err != nil {
		return nil, fmt.Errorf("read CAFile: %w", err)
	}
	cfg.RootCAs = basePool(c.RootCAs)
	if !cfg.RootCAs.AppendCertsFromPEM(pem) {
		return nil, errNoCertificate
	}
	return cfg, nil
}

// transport makes what requests to the open API go through.
func (c *Config) transport() (*http.Transport, error) {
	tlsCfg, err := c.tlsConfig()
	if err != nil {
		return nil, err
	}
	return &http.Transport{
		Proxy:                  c.proxyFunc(),
		DialContext:            c.DialContext,
		TLSClientConfig:        tlsCfg,
		MaxResponseHeaderBytes: maxOpenBody,
	}, nil
}

// basePool is a copy of the given pool, or of the system's.
func basePool(given *x509.CertPool) *x509.CertPool {
	if given != nil {
		return given.Clone()
	}
	system, err := x509.SystemCertPool()
	if err != nil {
		return x509.NewCertPool()
	}
	return system
}

// bare strips the URL from an error of net/http or net/url: it may hold a ticket
// or a password.
func bare(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		return u.Err
	}
	return err
}

// localIP is an address of this machine, which the gateway is told for the sake
// of diagnosis; empty if there is none.
func localIP() string {
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		return ""
	}
	for _, a := range addrs {
		if n, ok := a.(*net.IPNet); ok && n.IP.To4() != nil && n.IP.IsGlobalUnicast() {
			return n.IP.String()
		}
	}
	return ""
}
