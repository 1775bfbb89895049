package dingtalk

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"

	"github.com/gorilla/websocket"

	"github.com/penstock-io/penstock/integrations"
	"github.com/penstock-io/penstock/internal/wire"
)

// readBuffer is gorilla's, for headers and small frames: every idle socket holds
// one. The rest of a large frame goes past it, and a burst is read in larger pieces
// by the connection beneath.
const readBuffer = 512

// dialURL puts the ticket into the endpoint, which may have a query of its own.
func (c *Connector) dialURL(g grant) (string, *integrations.End) {
	u, err := url.Parse(g.Endpoint)
	switch {
	case err != nil || u.Host == "" || u.User != nil:
		return "", refused("bad_endpoint", errBadEndpoint)
	case u.Scheme == "wss":
	case u.Scheme == "ws" && c.cfg.AllowInsecure && isLoopback(u.Hostname()):
	default:
		return "", refused("bad_endpoint",
			fmt.Errorf("open: the gateway sends us to an endpoint of scheme %.20q, only wss is allowed", u.Scheme))
	}
	if u.RawQuery != "" {
		u.RawQuery += "&"
	}
	u.RawQuery += "ticket=" + url.QueryEscape(g.Ticket)
	u.Fragment = ""
	return u.String(), nil
}

var errBadEndpoint = errors.New("open: the answer's endpoint is not a WebSocket URL")

// dial makes one attempt with a grant and uses it up.
func (c *Connector) dial(ctx context.Context, g grant) (*websocket.Conn, *integrations.End) {
	to, end := c.dialURL(g)
	if end != nil {
		return nil, end
	}
	tlsCfg, err := c.cfg.tlsConfig()
	if err != nil {
		return nil, lost("dial_failed", fmt.Errorf("dial: %w", err))
	}
	ctx, cancel := context.WithTimeout(ctx, c.cfg.DialTimeout)
	defer cancel()
	unwatch := func() bool { return true }
	d := websocket.Dialer{
		NetDialContext: func(dctx context.Context, network, addr string) (net.Conn, error) {
			conn, err := c.cfg.DialContext(dctx, network, addr)
			if err != nil {
				return nil, err
			}
			// The dialer looks at the context before the handshakes only.
			unwatch = context.AfterFunc(ctx, func() { _ = conn.Close() })
			return wire.Burst(conn), nil
		},
		Proxy:           c.cfg.proxyFunc(),
		TLSClientConfig: tlsCfg,
		ReadBufferSize:  readBuffer,
		WriteBufferPool: noBuffers{},
	}
	ws, resp, err := d.DialContext(ctx, to, nil)
	if !unwatch() && err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return nil, dialEnd(ctx, err, resp, c.hide.with(g.Ticket))
	}
	return ws, nil
}

// noBuffers keeps the dialer from giving each connection a write buffer: frames
// are written by package wire.
type noBuffers struct{}

func (noBuffers) Get() any { return nil }
func (noBuffers) Put(any)  {}

// dialEnd is the one place that decides what a failed dial means. The next dial
// comes with a fresh ticket, so a refused one is no reason to park.
func dialEnd(
	ctx context.Context, err error, resp *http.Response, hide secrets,
) *integrations.End {
	err = hide.err(bare(err))
	var cert *tls.CertificateVerificationError
	switch {
	case ctx.Err() != nil:
		return lost(failure("dial", ctx.Err()), fmt.Errorf("dial: %w", ctx.Err()))
	case resp != nil:
		return handshakeEnd(err, resp, hide)
	case errors.As(err, &cert):
		return lost("dial_tls", fmt.Errorf("dial: %w", err))
	default:
		return lost(failure("dial", err), fmt.Errorf("dial: %w", err))
	}
}

// failure is the code of a step that failed, timeouts apart.
func failure(step string, err error) string {
	var n net.Error
	if errors.As(err, &n) && n.Timeout() {
		return step + "_timeout"
	}
	return step + "_failed"
}

func handshakeEnd(err error, resp *http.Response, hide secrets) *integrations.End {
	a := &answer{status: resp.StatusCode, retryAfter: resp.Header.Get("Retry-After")}
	// The dialer has read the body, one KiB at most.
	a.body, _ = io.ReadAll(resp.Body)
	err = fmt.Errorf("dial: %w: status %d: %q", err, a.status, hide.excerpt(a.body))
	if a.status == http.StatusTooManyRequests {
		return limited("dial_throttled", a.pause(plainPause), err)
	}
	end := lost("dial_http_"+strconv.Itoa(a.status), err)
	end.After = a.pause(0)
	return end
}
