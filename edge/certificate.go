package edge

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"
)

// certificate is the server's, read again when its files have changed. It may be used
// from any number of goroutines.
type certificate struct {
	// immutable
	certFile, keyFile string
	log               *slog.Logger

	mu   sync.Mutex       // guards the following fields
	pair *tls.Certificate // the last that could be read
	seen [2]time.Time     // of the files when reading them was last tried
}

func loadCertificate(cfg *Config) (*certificate, error) {
	c := &certificate{certFile: cfg.CertFile, keyFile: cfg.KeyFile, log: cfg.Logger}
	c.seen = c.times()
	pair, err := c.load()
	if err != nil {
		return nil, fmt.Errorf("certificate: %w", err)
	}
	c.pair = pair
	return c, nil
}

// maxPEM bounds the files.
const maxPEM = 1 << 20

// load reads the files. Nothing that never ends is read, nor what waits for a writer.
func (c *certificate) load() (*tls.Certificate, error) {
	for _, name := range []string{c.certFile, c.keyFile} {
		info, err := os.Stat(name)
		if err != nil {
			return nil, err
		}
		if !info.Mode().IsRegular() || info.Size() > maxPEM {
			return nil, fmt.Errorf("%s is no file of at most %d bytes", name, maxPEM)
		}
	}
	pair, err := tls.LoadX509KeyPair(c.certFile, c.keyFile)
	return &pair, err
}

// times are those of the files' last change, zero for one that is not there.
func (c *certificate) times() (t [2]time.Time) {
	for i, name := range []string{c.certFile, c.keyFile} {
		if info, err := os.Stat(name); err == nil {
			t[i] = info.ModTime()
		}
	}
	return t
}

// get is for tls.Config.GetCertificate. Files that cannot be read, or do not fit each
// other because only one has been written yet, leave the old pair in force.
func (c *certificate) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.times()
	if now == c.seen {
		return c.pair, nil
	}
	c.seen = now
	pair, err := c.load()
	if err != nil {
		c.log.Error("the edge's certificate has changed and cannot be used; the old one stays",
			"error", err)
		return c.pair, nil
	}
	c.pair = pair
	c.log.Info("the edge has a new certificate", "expires", pair.Leaf.NotAfter)
	return c.pair, nil
}
