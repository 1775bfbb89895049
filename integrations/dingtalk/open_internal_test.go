package dingtalk

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/penstock-io/penstock/integrations"
)

// FuzzOpenAnswer reads any answer to the open request: it gives a grant or tells
// what to do, at a bounded length and without the secret.
func FuzzOpenAnswer(f *testing.F) {
	const secret = "SENTINEL-SECRET"
	for _, a := range []answer{
		{200, "application/json", "", []byte(`{"endpoint":"wss://gateway.example/connect","ticket":"t+/="}`)},
		{200, "application/json", "", []byte(`{"endpoint":"","ticket":"t"}`)},
		{200, "text/html", "", []byte(`<html>proxy</html>`)},
		{400, "application/json", "", []byte(`{"code":"system error","requestid":"r","message":"系统错误"}`)},
		{400, "text/html", "", []byte(`<html>The plain HTTP request was sent to HTTPS port</html>`)},
		{401, "application/json", "", []byte(`{"requestid":"r","code":"authFailed","message":"` + secret + `"}`)},
		{403, "application/json", "", []byte(`{"code":"Forbidden.AccessDenied.QpsLimitForApi"}`)},
		{403, "application/json", "", []byte(`{"code":"Forbidden.AccessDenied.IpNotInWhiteList"}`)},
		{429, "application/json", "17", nil},
		{503, "", "Wed, 21 Oct 2099 07:28:00 GMT", []byte("\xff\xfe")},
		{200, "text/html", "", []byte(`{"status":1111,"wait":5,"source":"x5","punish":"deny"}`)},
	} {
		f.Add(a.status, a.contentType, a.retryAfter, a.body)
	}
	f.Fuzz(func(t *testing.T, status int, contentType, retryAfter string, body []byte) {
		a := answer{status, contentType, retryAfter, body}
		var g grant
		end := a.grant(&g, secrets{}.with(secret))
		if end == nil {
			require.NotEmpty(t, g.Endpoint)
			require.NotEmpty(t, g.Ticket)
			return
		}
		require.NotEmpty(t, end.Code)
		require.Error(t, end.Err)
		text := end.Err.Error()
		require.Less(t, len(text), 2048)
		require.True(t, utf8.ValidString(text))
		require.False(t, strings.Contains(text, secret), "the secret is told")
		switch end.Why {
		case integrations.Limited:
			require.Positive(t, end.After)
			require.LessOrEqual(t, end.After, longestWait)
		case integrations.Lost, integrations.Refused:
		default:
			t.Fatalf("an answer ends a session as %v", end.Why)
		}
	})
}
