package openapi

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/penstock-io/penstock/message"
)

// sample is one recorded exchange.
type sample struct {
	Response struct {
		Status  int               `json:"status"`
		Headers map[string]string `json:"headers"`
		Body    json.RawMessage   `json:"body"`
	} `json:"response"`
}

// samples reads the recorded exchanges; a body that is a JSON string is the text
// that was on the wire.
func samples(t testing.TB) map[string]*answer {
	files, err := filepath.Glob("testdata/answers/*.json")
	require.NoError(t, err)
	list := make(map[string]*answer)
	for _, f := range files {
		b, err := os.ReadFile(f)
		require.NoError(t, err)
		var s sample
		require.NoError(t, json.Unmarshal(b, &s), f)
		body := string(s.Response.Body)
		if body[0] == '"' {
			require.NoError(t, json.Unmarshal(s.Response.Body, &body))
		}
		h := make(http.Header)
		for k, v := range s.Response.Headers {
			h.Set(k, v)
		}
		name := strings.TrimSuffix(filepath.Base(f), ".json")
		list[name] = decode(s.Response.Status, h, []byte(body), time.Time{})
	}
	require.NotEmpty(t, list)
	return list
}

func TestSamplesAreClassified(t *testing.T) {
	sent := verdict{outcome: outcomeSent}
	never := func(code string) verdict { return verdict{next: message.NextNever, code: code} }
	want := map[string]verdict{
		"card-streaming-too-large": never("param.stream.content"),
		"card-update":              sent,
		"custom-webhook-keyword":   never("310000"),
		"custom-webhook-ok":        sent,
		"custom-webhook-too-fast":  {next: message.NextWait, after: time.Minute, code: "410100"},
		"err-403-ip": {
			next: message.NextPark, code: "Forbidden.AccessDenied.IpNotInWhiteList",
		},
		"err-403-monthly": {
			next: message.NextPark, code: "Forbidden.AccessDenied.ApiCountLimitForOrg",
		},
		"err-403-permission": never("Forbidden.AccessDenied.AccessTokenPermissionDenied"),
		"err-403-qpm": {
			next: message.NextWait, after: time.Minute,
			code: "Forbidden.AccessDenied.QpmLimitForAppkeyAndApi",
		},
		"err-403-qps": {
			next: message.NextWait, after: time.Second,
			code: "Forbidden.AccessDenied.QpsLimitForAppkeyAndApi",
		},
		"err-500":                  {landed: message.LandedMaybe, code: "system.error"},
		"err-503":                  {code: "http_503"},
		"err-ip-punish":            {next: message.NextWait, after: 5 * time.Minute, code: codePunished},
		"gettoken-bad":             {next: message.NextPark, code: "40089"},
		"group-disbanded":          never("group.disbanded"),
		"group-ok":                 sent,
		"group-robot-not-in-group": never("resource.not.found"),
		"group-unknown-result":     {landed: message.LandedMaybe, code: "unknown.send.result"},
		"oapi-qps":                 {next: message.NextWait, after: time.Second, code: "88.90018"},
		"oapi-token-invalid":       {outcome: outcomeBadToken, code: "40014"},
		"oto-no-session":           never("robot.oto.notExist"),
		"oto-not-in-org":           never("staffId.notExisted"),
		"oto-ok":                   sent,
		"oto-param-too-long":       never(codeTooLong),
		"oto-partial":              never(codeRefusedUser),
		"oto-token-invalid":        {outcome: outcomeBadToken, code: "InvalidAuthentication"},
		"oto-too-fast":             {next: message.NextWait, after: time.Minute, code: "send.too.fast"},
		"session-expired":          {outcome: outcomeGone, next: message.NextNever, code: "300001"},
		"session-markdown":         sent,
		"session-system-error":     {code: "-1"},
		"session-text":             sent,
		"session-too-fast":         {next: message.NextWait, after: time.Minute, code: "130101"},
		"token-bad-secret":         {next: message.NextPark, code: "invalidClientIdOrSecret"},
		"token-ok": {
			outcome: outcomeSent, warning: "the answer did not say whether it was taken",
		},
	}
	got := make(map[string]verdict)
	for name, a := range samples(t) {
		got[name] = classify(a)
	}
	require.Equal(t, want, got)
}

func TestAnswerIsReadLeniently(t *testing.T) {
	read := func(status int, body string) *answer {
		return decode(status, http.Header{}, []byte(body), time.Time{})
	}
	for body, code := range map[string]string{
		`{"errcode":0}`:                    "",
		`{"errcode":"0"}`:                  "",
		`{"errcode":"40014","code":"X.Y"}`: "40014",
		`{"errcode":-1}`:                   "-1",
		`{"code":"0","success":true}`:      "",
		`{"code":"some.word"}`:             "some.word",
		`{"Code":"Some.Word"}`:             "Some.Word",
		`{"success":false}`:                codeUnsuccessful,
		`{"success":"false"}`:              codeUnsuccessful,
		`{"errcode":{"a":1},"code":[1]}`:   "",
		`{"errcode":88}`:                   "88",
		`{"errcode":88,"sub_code":90020}`:  "88.90020",
		`{"errcode":88,"errmsg":"error[subcode=40014,submsg=x]"}`: "88.40014",
		`{"errcode":88,"errmsg":"error[subcode="}`:                "88",
		"\ufeff {\"errcode\":7} ":                                 "7",
	} {
		require.Equal(t, code, read(200, body).code, body)
	}
	for body, want := range map[string]shape{
		"": shapeEmpty, " \n": shapeEmpty, "<html>": shapeHTML, "ok": shapeOther,
		"[]": shapeOther, `{"errcode":0`: shapeOther, "{}": shapeObject,
	} {
		require.Equal(t, want, read(200, body).shape, body)
	}
	require.Equal(t, []string{"a.b"},
		read(403, `{"AccessDeniedDetail":{"requiredScopes":["a.b","no\nword"]}}`).scopes)
	require.Empty(t, read(403, `{"accessdenieddetail":"odd"}`).scopes)
	require.Equal(t, "id-1", read(500, `{"RequestId":"id-1"}`).requestID)
}

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for v, want := range map[string]time.Duration{
		"": 0, "odd": 0, "-5": 0, "0": 0, "7": 7 * time.Second, "99999999999": retryAfterMax,
		now.Add(90 * time.Second).Format(http.TimeFormat): 90 * time.Second,
		now.Add(-time.Hour).Format(http.TimeFormat):       0,
		now.Add(time.Hour).Format(http.TimeFormat):        retryAfterMax,
	} {
		require.Equal(t, want, retryAfter(v, now), v)
	}
}

func FuzzAnswer(f *testing.F) {
	files, err := filepath.Glob("testdata/answers/*.json")
	if err != nil {
		f.Fatal(err)
	}
	for _, name := range files {
		b, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		var s sample
		if err := json.Unmarshal(b, &s); err != nil {
			f.Fatal(err)
		}
		f.Add(s.Response.Status, "3", []byte(s.Response.Body))
	}
	f.Add(200, "Thu, 01 Jan 2026 00:00:00 GMT", []byte(`<html>`))
	f.Fuzz(func(t *testing.T, status int, after string, body []byte) {
		a := decode(status, http.Header{"Retry-After": {after}}, body, time.Now())
		v := classify(a)
		if v.outcome == outcomeSent {
			return
		}
		if v.code == "" || safeWord(v.code) != v.code {
			t.Fatalf("code %q is not fit to show", v.code)
		}
		if v.next == message.NextWait && (v.after <= 0 || v.after > retryAfterMax) {
			t.Fatalf("wait of %v", v.after)
		}
		if text := a.describe(nil); strings.ContainsAny(text, "\n\r\x00") {
			t.Fatalf("text %q is more than a line", text)
		}
	})
}
