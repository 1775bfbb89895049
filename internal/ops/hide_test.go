package ops

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/penstock-io/penstock/message"
)

func TestHideWebhooks(t *testing.T) {
	for _, tt := range []struct{ name, raw, want string }{
		{
			"a robot message",
			`{"text":{"content":"hi"},"sessionWebhook":"https://h/robot/sendBySession?session=abc123","n":1.50}`,
			`{"text":{"content":"hi"},"sessionWebhook":"[secret]","n":1.50}`,
		},
		{"odd spacing", "{ \"sessionWebhook\" :\n \"x\" , \"a\" : [1, 2] }", "{ \"sessionWebhook\" :\n \"[secret]\" , \"a\" : [1, 2] }"},
		{"escaped key", `{"session\u0057ebhook":"x"}`, `{"session\u0057ebhook":"[secret]"}`},
		{"other case", `{"SESSIONWEBHOOK":"x"}`, `{"SESSIONWEBHOOK":"[secret]"}`},
		{"given twice", `{"sessionWebhook":"x","sessionWebhook":"y"}`, `{"sessionWebhook":"[secret]","sessionWebhook":"[secret]"}`},
		{"deep", `{"a":[{"b":{"sessionWebhook":"x"}}]}`, `{"a":[{"b":{"sessionWebhook":"[secret]"}}]}`},
		{"an object of them", `{"sessionWebhook":{"url":["x",1]}}`, `{"sessionWebhook":{"url":["[secret]",1]}}`},
		{"in a string", `{"data":"{\"sessionWebhook\":\"x\",\"a\":1}"}`, `{"data":"{\"sessionWebhook\":\"[secret]\",\"a\":1}"}`},
		{"in a URL elsewhere", `{"u":"https://h/s?session=abc&x=1"}`, `{"u":"https://h/s?session=[secret]&x=1"}`},
		{"nothing to hide", `{"a": "{not json", "e": ""}`, `{"a": "{not json", "e": ""}`},
		{"broken string inside", `{"a":"{\"sessionWebhook\":\"x"}`, `{"a":"[secret]"}`},
		{"not JSON", `{"sessionWebhook":"x"`, "[21 bytes that are not JSON]"},
		{"not JSON, nothing of it", "hello", "hello"},
		{"empty", "", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			require.Equal(t, tt.want, string(hideWebhooks(message.Raw(tt.raw))))
		})
	}
}

// A payload keeps being JSON, and the value under the key never shows.
func FuzzHideWebhooks(f *testing.F) {
	for _, seed := range []string{
		`{"a":[true,null,"\u00e9\ud83d"],"b":{"c":"[1,2]"}}`, `[]`, `"x"`, `{"a":"{\"b\":\"[]\"}"}`, `{"":0e1}`,
	} {
		f.Add(seed)
	}
	const secret = "tops3cretvalue"
	f.Fuzz(func(t *testing.T, around string) {
		if strings.Contains(around, secret) || !json.Valid([]byte(around)) {
			t.Skip()
		}
		inner, err := json.Marshal(`{"a":` + around + `,"sessionWebhook":"` + secret + `"}`)
		require.NoError(t, err)
		for _, raw := range []string{
			`{"x":` + around + `,"sessionWebhook":"` + secret + `"}`,
			`{"sessionWebhook":["` + secret + `"],"x":` + around + `}`,
			`[` + around + `,` + string(inner) + `]`,
		} {
			got := string(hideWebhooks(message.Raw(raw)))
			require.NotContains(t, got, secret)
			require.True(t, json.Valid([]byte(got)), "%s became %s", raw, got)
		}
	})
}
