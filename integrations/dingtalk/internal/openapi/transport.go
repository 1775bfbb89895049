package openapi

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"sync/atomic"
	"time"
)

// answerMax bounds what is read of an answer. Answers are some hundred bytes.
const answerMax = 64 << 10

// call is one request to make.
type call struct {
	route  route
	method string
	url    string
	body   []byte
	// token tells that the request carries the access token.
	token bool
}

// exchange makes a request and reads the answer. wrote tells, also beside an
// error, whether anything of the request may have left: it turns true with the
// headers and not with the whole request, because the last bytes may be out
// before anybody is told so. Nothing is repeated: net/http repeats no request of
// these methods once a byte of it is written.
func (s *Sender) exchange(
	ctx context.Context, c *call, token string,
) (a *answer, wrote bool, err error) {
	var started atomic.Bool
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		WroteHeaders: func() { started.Store(true) },
	})
	req, err := http.NewRequestWithContext(ctx, c.method, c.url, bytes.NewReader(c.body))
	if err != nil {
		return nil, false, cut(err, s.secrets(c, token))
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", "penstock")
	if token != "" {
		req.Header.Set("x-acs-dingtalk-access-token", token)
	}
	resp, err := s.http.Do(req)
	if err != nil {
		return nil, started.Load(), cut(err, s.secrets(c, token))
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(resp.Body, answerMax))
	if err != nil && resp.StatusCode < http.StatusMultipleChoices {
		// Only the body tells whether a success status is one.
		return nil, true, cut(err, s.secrets(c, token))
	}
	return decode(resp.StatusCode, resp.Header, body, time.Now()), true, nil
}

// secrets lists what must not show in the text of an error of c.
func (s *Sender) secrets(c *call, token string) []string {
	list := []string{s.cfg.ClientSecret, token}
	u, err := url.Parse(c.url)
	if err != nil {
		return append(list, c.url)
	}
	if c.route == routeWebhook {
		list = append(list, u.RawQuery)
		for _, values := range u.Query() {
			list = append(list, values...)
		}
	}
	return list
}

// withoutRedirects is c with nothing that could carry a secret elsewhere.
func withoutRedirects(c *http.Client) *http.Client {
	return &http.Client{
		Transport: c.Transport,
		CheckRedirect: func(*http.Request, []*http.Request) error {
			return http.ErrUseLastResponse
		},
	}
}
