package router

import (
	"encoding/base64"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/textproto"
	"net/url"
	"slices"
	"strings"
	"time"
)

// HTTPConfig says where and how an [HTTP] handler posts.
type HTTPConfig struct {
	// URL is the endpoint, http or https. Required. A user and password in it are
	// sent as basic authentication.
	URL string
	// Secret signs the requests: "whsec_" and base64, or any other text as it is.
	// Empty means that requests are not signed.
	Secret string
	// OldSecrets sign as well, so that a secret can change without a request that
	// the endpoint refuses.
	OldSecrets []string
	// Headers are added to each request. Those that the handler sets itself are
	// refused.
	Headers map[string]string
	// Timeout bounds a try from the dial to the last byte of the answer. Negative
	// means that only the caller's context does. Default 60 s.
	Timeout time.Duration
	// MaxResponse is the most bytes an answer may have, after decompression.
	// Default 1 MiB.
	MaxResponse int64
	// Client makes the requests. It is copied, and the copy follows no redirects.
	// Nil means a client of the handler's own, which obeys HTTPS_PROXY and the
	// like and keeps up to 64 idle connections; how many are in use at once is
	// bounded by how many handlers run at once.
	Client *http.Client
}

// Defaults of both handlers that leave the process.
const (
	defaultTimeout = 60 * time.Second
	defaultAnswer  = 1 << 20
)

func (c HTTPConfig) withDefaults() HTTPConfig {
	if c.Timeout == 0 {
		c.Timeout = defaultTimeout
	}
	if c.MaxResponse == 0 {
		c.MaxResponse = defaultAnswer
	}
	c.MaxResponse = min(c.MaxResponse, math.MaxInt64-1) // one more is read
	return c
}

func (c *HTTPConfig) validate() error {
	if c.MaxResponse < 0 {
		return fmt.Errorf("max_response: %d is negative", c.MaxResponse)
	}
	for name, value := range c.Headers {
		if err := checkHeader(name, value); err != nil {
			return fmt.Errorf("headers: %q %w", name, err)
		}
	}
	return nil
}

// ownHeaders are set by the handler or by the transport.
var ownHeaders = []string{
	headerID, headerTimestamp, headerSignature, headerAttempt,
	"Content-Type", "Content-Length", "Transfer-Encoding", "Connection", "Trailer",
}

func checkHeader(name, value string) error {
	switch {
	case name == "" || strings.ContainsFunc(name, notToken):
		return errors.New("is no valid header name")
	case slices.Contains(ownHeaders, textproto.CanonicalMIMEHeaderKey(name)):
		return errors.New("is set by the handler itself")
	case strings.ContainsFunc(value, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }):
		return errors.New("has a control character in its value")
	}
	return nil
}

// notToken tells the characters that RFC 9110 does not allow in a header's name.
func notToken(r rune) bool {
	return r <= ' ' || r >= 0x7f || strings.ContainsRune(`"(),/:;<=>?@[\]{}`, r)
}

// target reads the URL. Errors do not show it, it may hold a password.
func (c *HTTPConfig) target() (*url.URL, error) {
	u, err := url.Parse(c.URL)
	switch {
	case c.URL == "":
		return nil, errors.New("url: not set")
	case err != nil:
		return nil, errors.New("url: is not a valid address")
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, errors.New("url: does not begin with http:// or https://")
	case u.Host == "":
		return nil, errors.New("url: has no host")
	}
	return u, nil
}

func (c *HTTPConfig) keys() ([][]byte, error) {
	if c.Secret == "" {
		if len(c.OldSecrets) > 0 {
			return nil, errors.New("old_secrets: is set and secret is not")
		}
		return nil, nil
	}
	key, err := signingKey(c.Secret)
	if err != nil {
		return nil, fmt.Errorf("secret: %w", err)
	}
	keys := [][]byte{key}
	for i, s := range c.OldSecrets {
		if key, err = signingKey(s); err != nil {
			return nil, fmt.Errorf("old_secrets: value %d %w", i+1, err)
		}
		keys = append(keys, key)
	}
	return keys, nil
}

// header is what every request carries.
func (c *HTTPConfig) header() http.Header {
	h := http.Header{
		"Accept":     {"application/json, text/plain, text/markdown"},
		"User-Agent": {"penstock"},
	}
	for name, value := range c.Headers {
		h.Set(name, value)
	}
	h.Set("Content-Type", "application/json")
	return h
}

// longSegment is from where a part of a path is taken for a token.
const longSegment = 16

// secrets lists what the endpoint could repeat and no error may show.
func (c *HTTPConfig) secrets(u *url.URL) []string {
	list := append([]string{c.Secret, u.RawQuery, u.User.Username()}, c.OldSecrets...)
	if password, ok := u.User.Password(); ok {
		pair := u.User.Username() + ":" + password
		list = append(list, password, base64.StdEncoding.EncodeToString([]byte(pair)))
	}
	for _, values := range u.Query() {
		list = append(list, values...)
	}
	for segment := range strings.SplitSeq(u.Path, "/") {
		if len(segment) >= longSegment {
			list = append(list, segment)
		}
	}
	for _, value := range c.Headers {
		list = append(list, value)
		if _, credential, ok := strings.Cut(value, " "); ok {
			list = append(list, credential)
		}
	}
	return list
}

// client gives the client to use and the transport to close, if it is ours.
func (c *HTTPConfig) client() (*http.Client, *http.Transport) {
	var pool *http.Transport
	client := http.Client{}
	if c.Client != nil {
		client = *c.Client
	} else {
		pool = newPool()
		client.Transport = pool
	}
	client.CheckRedirect = func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse
	}
	return &client, pool
}

func newPool() *http.Transport {
	return &http.Transport{
		Proxy:                  http.ProxyFromEnvironment,
		ForceAttemptHTTP2:      true,
		MaxIdleConns:           idlePerHost,
		MaxIdleConnsPerHost:    idlePerHost,
		IdleConnTimeout:        idleTime,
		MaxResponseHeaderBytes: maxHeader,
	}
}
