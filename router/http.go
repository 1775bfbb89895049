package router

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/penstock-io/penstock/message"
)

// HTTP is a [Handler] that posts each message to an endpoint, signed by the
// Standard Webhooks specification, and takes replies from the response. How it
// reads a response is told in docs/handlers.md: 2xx is done, 408, 425, 429, 5xx,
// timeouts and network errors may be tried again, with Retry-After obeyed up to
// an hour, and everything else is permanent, also redirects, which it does not
// follow, and a success whose body it cannot read.
type HTTP struct {
	// immutable
	cfg    HTTPConfig
	client *http.Client
	pool   *http.Transport // ours, nil when the client was given
	target *url.URL
	header http.Header
	keys   [][]byte
	hide   hider
}

// Limits of what is read beside an answer.
const (
	maxRetryAfter = time.Hour // longer waits are taken for a mistake
	snippetRead   = 4 << 10   // of a failing response, to find its message
	snippetShown  = 256       // of it, in the error
	drainLimit    = 16 << 10  // of it, so that the connection can serve again
	maxHeader     = 256 << 10 // of response headers
	idlePerHost   = 64        // connections kept for the next messages
	idleTime      = 60 * time.Second
)

// NewHTTP makes a handler. It opens nothing: an endpoint that is not there shows
// at the first message. The error names the field of cfg that is wrong.
func NewHTTP(cfg HTTPConfig) (*HTTP, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, fmt.Errorf("http handler: %w", err)
	}
	target, err := cfg.target()
	if err != nil {
		return nil, fmt.Errorf("http handler: %w", err)
	}
	keys, err := cfg.keys()
	if err != nil {
		return nil, fmt.Errorf("http handler: %w", err)
	}
	h := &HTTP{
		cfg: cfg, target: target, keys: keys,
		header: cfg.header(), hide: newHider(cfg.secrets(target)...),
	}
	h.client, h.pool = cfg.client()
	return h, nil
}

// Close lets go of idle connections, if they are the handler's own. It does not
// wait for tries in flight, and the handler still works after it. It returns nil.
func (h *HTTP) Close() error {
	if h.pool != nil {
		h.pool.CloseIdleConnections()
	}
	return nil
}

// Handle posts m once and blocks until the response is read, the timeout of the
// configuration has passed or ctx ends.
func (h *HTTP) Handle(ctx context.Context, m *message.Inbound) (Result, error) {
	ctx, cancel := withLimit(ctx, h.cfg.Timeout)
	defer cancel()
	req, err := h.request(ctx, m)
	if err != nil {
		return Result{}, refused(ReasonHandler, "%s: %w", h.name(), err)
	}
	resp, err := h.client.Do(req)
	if err != nil {
		return Result{}, h.unreached(ctx, err)
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode/100 == 2 {
		return h.success(ctx, resp)
	}
	return Result{}, h.failure(resp)
}

// name is what errors call the endpoint: no path and no query, which may be
// secret. The route's name tells the rest.
func (h *HTTP) name() string { return "post to " + h.target.Scheme + "://" + h.target.Host }

func (h *HTTP) request(ctx context.Context, m *message.Inbound) (*http.Request, error) {
	body, err := encode(m)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(
		ctx, http.MethodPost, h.target.String(), bytes.NewReader(body))
	if err != nil {
		return nil, errors.New("the address is not valid")
	}
	req.Header = h.header.Clone()
	req.Host = h.header.Get("Host")
	id, now := deliveryID(m), time.Now().Unix()
	req.Header.Set(headerID, id)
	req.Header.Set(headerTimestamp, strconv.FormatInt(now, 10))
	req.Header.Set(headerAttempt, strconv.Itoa(m.Attempt))
	if len(h.keys) > 0 {
		req.Header.Set(headerSignature, sign(h.keys, id, now, body))
	}
	return req, nil
}

// unreached judges an error of the transport. The *url.Error around it goes,
// since it holds the whole address.
func (h *HTTP) unreached(ctx context.Context, err error) error {
	for ue, ok := errors.AsType[*url.Error](err); ok; ue, ok = errors.AsType[*url.Error](err) {
		err = ue.Err
	}
	reason := ReasonNetwork
	ne, isNet := errors.AsType[net.Error](err)
	switch {
	case errors.Is(err, context.Canceled):
		reason = ReasonCanceled
	case errors.Is(err, context.DeadlineExceeded), isNet && ne.Timeout():
		reason = ReasonTimeout
	}
	if limit := limitOf(ctx, err); limit != nil {
		err = limit
	}
	return broken(reason, "%s: %w", h.name(), h.hide.cover(err))
}

// success reads the answer. One that cannot be used is permanent, because the
// endpoint has done its work and would do it twice.
func (h *HTTP) success(ctx context.Context, resp *http.Response) (Result, error) {
	// One byte more than allowed tells a full body from a cut one. The rest stays
	// unread and the connection is closed.
	body, err := io.ReadAll(io.LimitReader(resp.Body, h.cfg.MaxResponse+1))
	if err != nil {
		return Result{}, h.unreached(ctx, fmt.Errorf("read answer: %w", err))
	}
	if int64(len(body)) > h.cfg.MaxResponse {
		return Result{}, refused(ReasonBadAnswer,
			"%s: answer is larger than %d bytes", h.name(), h.cfg.MaxResponse)
	}
	res, err := decodeBody(resp.Header.Get("Content-Type"), body)
	if err != nil {
		why := h.hide.clean([]byte(err.Error()), snippetShown)
		return Result{}, refused(ReasonBadAnswer, "%s: answer cannot be used: %s", h.name(), why)
	}
	return res, nil
}

// failure judges a response that is no success and quotes what it says.
func (h *HTTP) failure(resp *http.Response) error {
	// What cannot be read is only the explanation; the status tells enough.
	said, _ := io.ReadAll(io.LimitReader(resp.Body, snippetRead))
	_, _ = io.CopyN(io.Discard, resp.Body, drainLimit)
	text := fmt.Sprintf("%s: status %d", h.name(), resp.StatusCode)
	if s := h.hide.clean(said, snippetShown); s != "" {
		text += ": " + s
	}
	if resp.StatusCode/100 == 3 {
		text += " (redirects are not followed)"
	}
	return &Error{
		Permanent: !again(resp.StatusCode),
		After:     retryAfter(resp.Header.Get("Retry-After"), time.Now()),
		Reason:    ReasonStatus,
		Err:       errors.New(text),
	}
}

// again tells whether a status that is no success may be followed by another try.
func again(status int) bool {
	switch status {
	case http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests:
		return true
	}
	return status >= 500
}

// retryAfter reads a Retry-After header, which holds seconds or a date, and caps
// it. What it cannot read and what has passed is 0.
func retryAfter(value string, now time.Time) time.Duration {
	if seconds, err := strconv.ParseUint(value, 10, 64); err == nil {
		return time.Duration(min(seconds, uint64(maxRetryAfter/time.Second))) * time.Second
	} else if errors.Is(err, strconv.ErrRange) {
		return maxRetryAfter
	}
	at, err := http.ParseTime(value)
	if err != nil {
		return 0
	}
	return min(max(0, at.Sub(now)), maxRetryAfter)
}
