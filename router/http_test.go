package router_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-io/penstock/message"
	"github.com/penstock-io/penstock/router"
)

// endpoint is a real server with serve as its only page.
func endpoint(t *testing.T, serve http.HandlerFunc) *httptest.Server {
	t.Helper()
	srv := httptest.NewServer(serve)
	t.Cleanup(srv.Close)
	return srv
}

// poster is a handler that is closed at the end of the test.
func poster(t *testing.T, cfg router.HTTPConfig) *router.HTTP {
	t.Helper()
	h, err := router.NewHTTP(cfg)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, h.Close()) })
	return h
}

func writeJSON(w http.ResponseWriter, body string) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, body)
}

func TestHTTPRequest(t *testing.T) {
	type seen struct {
		*http.Request
		body []byte
	}
	got := make(chan seen, 2)
	srv := endpoint(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got <- seen{r, body}
		writeJSON(w, `{"replies":[{"text":"hi"}],"answer":{"a":1}}`)
	})
	h := poster(t, router.HTTPConfig{
		URL:        strings.Replace(srv.URL, "://", "://me:pass@", 1) + "/hook?tenant=7",
		Secret:     vectorSecret,
		OldSecrets: []string{"old"},
		Headers:    map[string]string{"X-Bot": "1", "Host": "bot.example", "User-Agent": "mine"},
	})
	m := text("<hello> & 你好")
	m.Attempt = 3
	res, err := h.Handle(t.Context(), m)
	require.NoError(t, err)
	require.Equal(t, router.Result{
		Replies: []message.Reply{{Text: "hi"}}, Answer: json.RawMessage(`{"a":1}`),
	}, res)

	first := <-got
	require.Equal(t, "POST /hook?tenant=7", first.Method+" "+first.URL.String())
	require.Equal(t, "bot.example", first.Host)
	require.Equal(t, int64(len(first.body)), first.ContentLength)
	user, password, _ := first.BasicAuth()
	require.Equal(t, "me:pass", user+":"+password)
	for name, want := range map[string]string{
		"Content-Type": "application/json", "X-Bot": "1", "User-Agent": "mine",
		"Penstock-Attempt": "3", "Webhook-Id": "bot:m1",
	} {
		require.Equal(t, want, first.Header.Get(name))
	}
	var in message.Inbound
	require.NoError(t, json.Unmarshal(first.body, &in))
	require.Equal(t, *m, in)
	require.Contains(t, string(first.body), "<hello> & 你好")

	key, err := router.SigningKey(vectorSecret)
	require.NoError(t, err)
	require.True(t, verify(key, first.Header, first.body, time.Now()))
	require.True(t, verify([]byte("old"), first.Header, first.body, time.Now()))
	require.False(t, verify([]byte("none"), first.Header, first.body, time.Now()))

	m.Attempt = 4
	_, err = h.Handle(t.Context(), m)
	require.NoError(t, err)
	require.Equal(t, "bot:m1", (<-got).Header.Get("webhook-id"), "the id is that of the message")
}

func TestHTTPUnsigned(t *testing.T) {
	srv := endpoint(t, func(_ http.ResponseWriter, r *http.Request) {
		if r.Header.Get("webhook-signature") != "" || r.Header.Get("webhook-id") == "" {
			panic(http.ErrAbortHandler)
		}
	})
	res, err := poster(t, router.HTTPConfig{URL: srv.URL}).Handle(t.Context(), text("x"))
	require.NoError(t, err)
	require.Zero(t, res)
}

func TestHTTPStatuses(t *testing.T) {
	srv := endpoint(t, func(w http.ResponseWriter, r *http.Request) {
		var in message.Inbound
		_ = json.NewDecoder(r.Body).Decode(&in)
		w.Header().Set("Retry-After", "90")
		w.Header().Set("Location", "/elsewhere")
		w.WriteHeader(in.Attempt)
		_, _ = io.WriteString(w, "line\r\n\x1b[31mtwo")
	})
	h := poster(t, router.HTTPConfig{URL: srv.URL})
	for status, permanent := range map[int]bool{
		301: true, 302: true, 307: true, 400: true, 401: true, 404: true, 409: true, 410: true,
		422: true, 408: false, 425: false, 429: false, 500: false, 502: false, 503: false, 599: false,
	} {
		m := text("x")
		m.Attempt = status // the endpoint answers with it
		res, err := h.Handle(t.Context(), m)
		require.Zero(t, res)
		require.Equal(t, permanent, router.IsPermanent(err), "status %d", status)
		require.Equal(t, router.ReasonStatus, router.ReasonOf(err))
		require.Equal(t, 90*time.Second, router.RetryAfter(err))
		require.ErrorContains(t, err, ": line [31mtwo")
	}
}

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 3, 2, 10, 0, 0, 0, time.UTC)
	for value, want := range map[string]time.Duration{
		"":                              0,
		"0":                             0,
		"7":                             7 * time.Second,
		"3600":                          time.Hour,
		"3601":                          time.Hour,
		"9223372036854775807":           time.Hour,
		"99999999999999999999999999":    time.Hour,
		"-5":                            0,
		"1.5":                           0,
		"soon":                          0,
		"Mon, 02 Mar 2026 10:00:30 GMT": 30 * time.Second,
		"Mon, 02 Mar 2026 09:00:00 GMT": 0,
		"Tue, 03 Mar 2026 10:00:30 GMT": time.Hour,
	} {
		require.Equal(t, want, router.RetryWait(value, now), "for %q", value)
	}
}

func TestHTTPBadAnswer(t *testing.T) {
	srv := endpoint(t, func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, `{"`+strings.Repeat("k", 100_000)+`":1}`)
	})
	_, err := poster(t, router.HTTPConfig{URL: srv.URL}).Handle(t.Context(), text("x"))
	require.True(t, router.IsPermanent(err))
	require.Equal(t, router.ReasonBadAnswer, router.ReasonOf(err))
	require.ErrorContains(t, err, "answer cannot be used: decode: json: unknown field")
	require.Less(t, len(err.Error()), 500)
}

// An endless answer is read up to the limit and its connection is given up.
func TestHTTPHugeAnswer(t *testing.T) {
	var written atomic.Int64
	broken := make(chan error, 1)
	srv := endpoint(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		chunk := []byte(strings.Repeat("x", 64<<10))
		for range 100 << 20 / len(chunk) {
			if _, err := w.Write(chunk); err != nil {
				broken <- err
				return
			}
			written.Add(int64(len(chunk)))
		}
		broken <- nil
	})
	_, err := poster(t, router.HTTPConfig{URL: srv.URL}).Handle(t.Context(), text("x"))
	require.ErrorContains(t, err, "answer is larger than 1048576 bytes")
	require.True(t, router.IsPermanent(err))
	require.Equal(t, router.ReasonBadAnswer, router.ReasonOf(err))
	require.Error(t, <-broken)
	require.Less(t, written.Load(), int64(50<<20))
}

func TestHTTPHugeAnswerCompressed(t *testing.T) {
	srv := endpoint(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		_, _ = z.Write(make([]byte, 2<<20))
		_ = z.Close()
	})
	h := poster(t, router.HTTPConfig{URL: srv.URL, MaxResponse: 1000})
	_, err := h.Handle(t.Context(), text("x"))
	require.ErrorContains(t, err, "answer is larger than 1000 bytes")
}

func TestHTTPAnswerOfExactlyTheLimit(t *testing.T) {
	srv := endpoint(t, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, strings.Repeat("x", 1000))
	})
	h := poster(t, router.HTTPConfig{URL: srv.URL, MaxResponse: 1000})
	res, err := h.Handle(t.Context(), text("x"))
	require.NoError(t, err)
	require.Len(t, res.Replies[0].Text, 1000)
}

// hangs reads the request, so that the server notices the client go, and then
// keeps it waiting; with begin it sends half an answer first.
func hangs(begin bool) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		if begin {
			_, _ = io.WriteString(w, `{"replies":`)
			w.(http.Flusher).Flush()
		}
		<-r.Context().Done()
	}
}

func TestHTTPTimeout(t *testing.T) {
	for name, begin := range map[string]bool{"before": false, "amid the answer": true} {
		t.Run(name, func(t *testing.T) {
			srv := endpoint(t, hangs(begin))
			h := poster(t, router.HTTPConfig{URL: srv.URL, Timeout: 20 * time.Millisecond})
			_, err := h.Handle(t.Context(), text("x"))
			require.ErrorContains(t, err, "took longer than 20ms")
			require.ErrorIs(t, err, context.DeadlineExceeded)
			require.Equal(t, router.ReasonTimeout, router.ReasonOf(err))
			require.False(t, router.IsPermanent(err))
		})
	}
}

func TestHTTPCanceled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	srv := endpoint(t, func(w http.ResponseWriter, r *http.Request) {
		cancel()
		hangs(false)(w, r)
	})
	_, err := poster(t, router.HTTPConfig{URL: srv.URL, Timeout: -1}).Handle(ctx, text("x"))
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, router.ReasonCanceled, router.ReasonOf(err))
}

// In the bubble the default timeout passes at once.
func TestHTTPDefaultTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, server := net.Pipe()
		defer func() { _ = server.Close() }()
		pool := &http.Transport{
			DialContext: func(context.Context, string, string) (net.Conn, error) { return client, nil },
		}
		defer pool.CloseIdleConnections()
		h, err := router.NewHTTP(router.HTTPConfig{
			URL: "http://bot.example/", Client: &http.Client{Transport: pool},
		})
		require.NoError(t, err)
		start := time.Now()
		_, err = h.Handle(t.Context(), text("x"))
		require.EqualError(t, err, "post to http://bot.example: took longer than 1m0s")
		require.Equal(t, time.Minute, time.Since(start))
	})
}

func TestHTTPPanickingEndpoint(t *testing.T) {
	srv := endpoint(t, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	_, err := poster(t, router.HTTPConfig{URL: srv.URL}).Handle(t.Context(), text("x"))
	require.ErrorIs(t, err, io.EOF)
	require.Equal(t, router.ReasonNetwork, router.ReasonOf(err))
	require.False(t, router.IsPermanent(err))
}

func TestHTTPRefusedConnection(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	addr := ln.Addr().String()
	require.NoError(t, ln.Close())
	h := poster(t, router.HTTPConfig{URL: "http://user:pa55word@" + addr + "/p?token=t0ken"})
	_, err = h.Handle(t.Context(), text("x"))
	require.Equal(t, router.ReasonNetwork, router.ReasonOf(err))
	require.ErrorContains(t, err, "post to http://"+addr+": dial tcp")
	requireHidden(t, err, "user", "pa55word", "t0ken", "/p")
}

// requireHidden looks for secrets in the text of each error of the chain.
func requireHidden(t *testing.T, err error, secrets ...string) {
	t.Helper()
	require.Error(t, err)
	for ; err != nil; err = errors.Unwrap(err) {
		for _, s := range secrets {
			require.NotContains(t, err.Error(), s)
		}
	}
}

func TestHTTPErrorsHideSecrets(t *testing.T) {
	srv := endpoint(t, func(w http.ResponseWriter, r *http.Request) {
		user, password, _ := r.BasicAuth()
		w.WriteHeader(http.StatusBadRequest)
		_, _ = io.WriteString(w, "cannot POST "+r.URL.String()+" for "+user+":"+password+
			" with "+strings.TrimPrefix(r.Header.Get("X-Key"), "Token ")+" and "+
			r.URL.Query().Get("key")+" or "+url.QueryEscape(r.URL.Query().Get("key"))+
			" or "+r.Header.Get("Authorization"))
	})
	base := strings.Replace(srv.URL, "://", "://someuser:pa%2Fss@", 1)
	h := poster(t, router.HTTPConfig{
		URL:     base + "/services/T0KEN0123456789abcdef?key=s%26cret&n=1",
		Headers: map[string]string{"X-Key": "Token header-secret"},
	})
	_, err := h.Handle(t.Context(), text("x"))
	require.ErrorContains(t, err, "cannot POST /services/[hidden]?[hidden] for [hidden]:[hidden]")
	requireHidden(t, err, "T0KEN", "s%26cret", "s&cret", "pa/ss", "header-secret", "someuser",
		"c29tZXVzZXI6cGEvc3M")
}

// An endpoint that fails may show the message, and that the address for replies.
func TestHTTPErrorsHideReplyAddresses(t *testing.T) {
	srv := endpoint(t, func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusInternalServerError)
		b, _ := io.ReadAll(r.Body)
		_, _ = w.Write(b[bytes.Index(b, []byte(`"raw"`)):])
	})
	m := text("x")
	m.Raw = `{"sessionWebhook":"https://h/sendBySession?session=s3cret1&x=1",` +
		`"a":"session\u003ds3cret2","b":"{\"c\":\"session=s3cret3\"}"}`
	_, err := poster(t, router.HTTPConfig{URL: srv.URL}).Handle(t.Context(), m)
	require.ErrorContains(t, err, "sendBySession?session=[hidden]")
	requireHidden(t, err, "s3cret")
}

func TestClean(t *testing.T) {
	require.Equal(t, "a b", router.Clean(" a\n\x00b\u202e ", 100))
	require.Equal(t, "日…", router.Clean("日本語", 5))
	require.Equal(t, "[hidden] [hid…",
		router.Clean("s3cret-long s3cret", 13, "s3cret", "s3cret-long"))
	require.Equal(t, `proxy "http://[hidden]@proxy:3128"`,
		router.Clean(`proxy "http://u:p@proxy:3128"`, 100))
	require.Equal(t, "a\uFFFDb", router.Clean("a\xffb", 100, ""))
}

// One connection serves messages one after the other, also past failures.
func TestHTTPReusesConnection(t *testing.T) {
	var conns, requests atomic.Int64
	srv := httptest.NewUnstartedServer(http.HandlerFunc(
		func(w http.ResponseWriter, _ *http.Request) {
			if requests.Add(1)%2 == 0 {
				w.WriteHeader(http.StatusServiceUnavailable)
				_, _ = io.WriteString(w, strings.Repeat("sorry ", 2000))
			}
		}))
	srv.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			conns.Add(1)
		}
	}
	srv.Start()
	t.Cleanup(srv.Close)
	h := poster(t, router.HTTPConfig{URL: srv.URL})
	for range 6 {
		_, _ = h.Handle(t.Context(), text("x"))
	}
	require.Equal(t, int64(6), requests.Load())
	require.Equal(t, int64(1), conns.Load())
}

// One handler serves many conversations at once, and none gets another's reply.
func TestHTTPAtOnce(t *testing.T) {
	srv := endpoint(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, r.Header.Get("webhook-id"))
	})
	r, err := router.New([]router.Route{
		{Handler: poster(t, router.HTTPConfig{URL: srv.URL, Secret: "s"}), Timeout: time.Minute},
	}, router.Recover)
	require.NoError(t, err)
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			m := text("x")
			m.ID = message.ID(strconv.Itoa(i))
			res, err := r.Handle(t.Context(), m)
			assert.NoError(t, err)
			assert.Equal(t, replied("text", "bot:"+string(m.ID)).Replies, res.Replies)
		})
	}
	wg.Wait()
}

func TestHTTPGivenClientIsCopied(t *testing.T) {
	srv := endpoint(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "/elsewhere", http.StatusFound)
	})
	given := srv.Client()
	h := poster(t, router.HTTPConfig{URL: srv.URL, Client: given})
	_, err := h.Handle(t.Context(), text("x"))
	require.ErrorContains(t, err, "status 302 (redirects are not followed)")
	require.Nil(t, given.CheckRedirect)
}

func TestNewHTTPRefuses(t *testing.T) {
	const hook = "https://bot.example/hook"
	for name, c := range map[string]struct {
		cfg  router.HTTPConfig
		want string
	}{
		"no url":   {router.HTTPConfig{}, "url: not set"},
		"bad url":  {router.HTTPConfig{URL: "http://a b:secret@x/"}, "url: is not a valid address"},
		"scheme":   {router.HTTPConfig{URL: "ftp://x"}, "url: does not begin with http:// or https://"},
		"no host":  {router.HTTPConfig{URL: "http:///x"}, "url: has no host"},
		"response": {router.HTTPConfig{URL: hook, MaxResponse: -1}, "max_response: -1 is negative"},
		"header name": {
			router.HTTPConfig{URL: hook, Headers: map[string]string{"a b": "x"}},
			`headers: "a b" is no valid header name`,
		},
		"header value": {
			router.HTTPConfig{URL: hook, Headers: map[string]string{"A": "x\r\nB: c"}},
			`headers: "A" has a control character in its value`,
		},
		"own header": {
			router.HTTPConfig{URL: hook, Headers: map[string]string{"webhook-id": "x"}},
			`headers: "webhook-id" is set by the handler itself`,
		},
		"secret": {
			router.HTTPConfig{URL: hook, Secret: "whsec_%"},
			"secret: begins with whsec_ and is not base64 after it",
		},
		"old secret": {
			router.HTTPConfig{URL: hook, Secret: "s", OldSecrets: []string{"a", ""}},
			"old_secrets: value 2 is empty",
		},
		"only old": {
			router.HTTPConfig{URL: hook, OldSecrets: []string{"a"}},
			"old_secrets: is set and secret is not",
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := router.NewHTTP(c.cfg)
			require.EqualError(t, err, "http handler: "+c.want)
		})
	}
}
