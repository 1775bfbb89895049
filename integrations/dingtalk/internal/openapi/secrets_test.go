package openapi

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// blabber is a transport whose errors and answers show all of a request.
type blabber struct {
	answer bool
	status int
}

func (b blabber) RoundTrip(r *http.Request) (*http.Response, error) {
	body, _ := io.ReadAll(r.Body)
	all := strings.Join([]string{
		r.URL.String(), r.URL.RawQuery, r.Header.Get("x-acs-dingtalk-access-token"), string(body),
	}, " ")
	if r.URL.Path == pathToken && b.status != http.StatusUnauthorized {
		return respond(200, `{"accessToken":"SENTINEL-D-token","expireIn":7200}`), nil
	}
	if !b.answer {
		return nil, errors.New("cannot send " + all)
	}
	quoted := appendString(nil, all)
	return respond(b.status, fmt.Sprintf(
		`{"code":%s,"errmsg":%s,"message":%s,"requestid":%s}`, quoted, quoted, quoted, quoted)), nil
}

func respond(status int, body string) *http.Response {
	return &http.Response{
		StatusCode: status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body)),
	}
}

// TestNoSecretShows makes every kind of failure with a platform and a network
// that repeat whatever they were sent.
func TestNoSecretShows(t *testing.T) {
	const host = "https://oapi.dingtalk.com"
	var out bytes.Buffer
	for _, b := range []blabber{
		{false, 0}, {true, 200}, {true, 302}, {true, 400}, {true, 401}, {true, 403}, {true, 500},
	} {
		s, err := New(Config{
			ClientID: "id", ClientSecret: testSecret, HTTP: &http.Client{Transport: b},
			Logger: slog.New(slog.NewTextHandler(&out, nil)),
		})
		require.NoError(t, err)
		for _, hook := range []string{
			"", host + "/robot/sendBySession?session=SENTINEL-C-session",
			host + "/robot/sendBySession?session=SENTINEL%2DC-session&x=%zz",
			"https://evil.example/?session=SENTINEL-C-session",
			"https://SENTINEL-C:SENTINEL-C@oapi.dingtalk.com/", host + "/\x7fSENTINEL-C",
		} {
			_, err := s.Send(t.Context(), text(t, Target{Webhook: hook, Conversation: "cid1"}, "x"))
			require.Error(t, err)
			for e := err; e != nil; e = errors.Unwrap(e) {
				_, _ = fmt.Fprintf(&out, "%v %+v\n", e, e)
			}
		}
		_, err = s.Send(t.Context(), card(t, Target{Card: "c"}, `{"a":"b"}`))
		require.Error(t, err)
		_, _ = fmt.Fprintf(&out, "%v %+v %+v\n", err, s.Problems(), s.Stats())
	}
	require.Contains(t, out.String(), "http 400", "the failures are told")
	require.Contains(t, out.String(), "evil.example", "the log was taken")
	for line := range strings.Lines(out.String()) {
		require.NotContains(t, line, "SENTINEL")
	}
}
