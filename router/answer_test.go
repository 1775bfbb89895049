package router_test

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/penstock-io/penstock/message"
	"github.com/penstock-io/penstock/router"
)

// replied is a result of one reply.
func replied(format message.Format, text string) router.Result {
	return router.Result{Replies: []message.Reply{{Format: format, Text: text}}}
}

func TestDecodeBody(t *testing.T) {
	const (
		asJSON  = "application/json"
		problem = "application/problem+json"
	)
	hi := replied("", "hi")
	for name, c := range map[string]struct {
		contentType, body string
		want              router.Result
	}{
		"empty":            {"", "", router.Result{}},
		"blank html":       {"text/html", " \n", router.Result{}},
		"no replies":       {asJSON, `{"replies":[]}`, router.Result{}},
		"null":             {asJSON, `null`, router.Result{}},
		"empty object":     {asJSON, `{}`, router.Result{}},
		"replies":          {asJSON, `{"replies":[{"text":"hi"}]}`, hi},
		"no content type":  {"", `{"replies":[{"text":"hi"}]}`, hi},
		"json suffix":      {problem, `{"text":"hi"}`, hi},
		"single":           {asJSON + "; charset=UTF-8", `{"text":"hi"}`, hi},
		"text":             {"text/plain; charset=utf-8", "hi\r\n", replied("text", "hi")},
		"text that is not": {"text/plain", `{"text":1}`, replied("text", `{"text":1}`)},
		"bad bytes":        {"text/plain", "a\xff", replied("text", "a\uFFFD")},
		"markdown":         {"text/markdown", "# hi", replied("markdown", "# hi")},
		"answer": {
			asJSON, `{"answer":{"a":1}}`, router.Result{Answer: json.RawMessage(`{"a":1}`)},
		},
		"null answer": {asJSON, `{"answer":null}`, router.Result{}},
		"both": {
			asJSON, `{"text":"hi","answer":"ok"}`,
			router.Result{Replies: hi.Replies, Answer: json.RawMessage(`"ok"`)},
		},
		"blank reply": {
			asJSON, `{"replies":[{"text":" "},{"text":"hi"},{"mention_all":true}]}`,
			hi,
		},
		"card": {
			asJSON, `{"replies":[{"card":{"a":1}}]}`,
			router.Result{Replies: []message.Reply{{Format: "card", Card: json.RawMessage(`{"a":1}`)}}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			res, err := router.DecodeBody(c.contentType, []byte(c.body))
			require.NoError(t, err)
			require.Equal(t, c.want, res)
		})
	}
}

func TestDecodeBodyRefuses(t *testing.T) {
	const asJSON = "application/json"
	for name, c := range map[string]struct{ contentType, body, want string }{
		"html":           {"text/html", "<html>", `"text/html" is none of`},
		"bad type":       {"text/", "x", "content type"},
		"charset":        {"text/plain; charset=GBK", "x", `charset "gbk" is not utf-8`},
		"garbage":        {asJSON, "<html>", "invalid character"},
		"cut":            {asJSON, `{"replies":[`, "unexpected EOF"},
		"list":           {asJSON, `[{"text":"hi"}]`, "cannot unmarshal array"},
		"string":         {asJSON, `"hi"`, "cannot unmarshal string"},
		"misspelt":       {asJSON, `{"reply":"hi"}`, `unknown field "reply"`},
		"misspelt reply": {asJSON, `{"replies":[{"txt":"hi"}]}`, `unknown field "txt"`},
		"wrong type":     {asJSON, `{"text":1}`, "cannot unmarshal number"},
		"two values":     {asJSON, `{"text":"a"}{"text":"b"}`, "more than one JSON value"},
		"text and list":  {asJSON, `{"text":"a","replies":[{"text":"b"}]}`, "both"},
		"format":         {asJSON, `{"format":"html","text":"a"}`, `format "html" is none of`},
		"card without":   {asJSON, `{"format":"card","card":null}`, "card is not set"},
		"which reply": {
			asJSON, `{"replies":[{"text":"a"},{"format":"x","text":"a"}]}`, "reply 2: format",
		},
		"too many": {
			asJSON,
			`{"replies":[` + strings.Repeat(`{"text":"x"},`, router.MaxReplies) + `{"text":"x"}]}`,
			"more than 100 replies",
		},
	} {
		t.Run(name, func(t *testing.T) {
			res, err := router.DecodeBody(c.contentType, []byte(c.body))
			require.ErrorContains(t, err, c.want)
			require.Zero(t, res)
		})
	}
}

func TestDecodeOutput(t *testing.T) {
	lines := "{\"text\":\"a\"}\n\n{\"replies\":[{\"text\":\"b\"}]}\n{\"answer\":1}\n"
	decoded := router.Result{
		Replies: []message.Reply{{Text: "a"}, {Text: "b"}}, Answer: json.RawMessage("1"),
	}
	for name, c := range map[string]struct {
		output router.Output
		out    string
		want   router.Result
	}{
		"nothing":       {router.OutputAuto, "\n", router.Result{}},
		"text":          {router.OutputAuto, "  a\nb\n", replied("text", "  a\nb")},
		"lines":         {router.OutputAuto, lines, decoded},
		"lines as json": {router.OutputJSON, lines, decoded},
		"lines as text": {router.OutputText, "{\"text\":\"a\"}\n", replied("text", `{"text":"a"}`)},
		"spread out":    {router.OutputAuto, "\n{\n \"text\": \"a\"\n}\n", replied("", "a")},
	} {
		t.Run(name, func(t *testing.T) {
			res, err := c.output.Decode([]byte(c.out))
			require.NoError(t, err)
			require.Equal(t, c.want, res)
		})
	}
	for name, out := range map[string]string{
		"second answer": `{"answer":1}{"answer":2}`, "text after": "{\"text\":\"a\"}\nhello",
		"cut": `{"text":"a`,
	} {
		t.Run(name, func(t *testing.T) {
			_, err := router.OutputAuto.Decode([]byte(out))
			require.Error(t, err)
		})
	}
	_, err := router.OutputJSON.Decode([]byte("hello"))
	require.Error(t, err)
}

// What is decoded is always sound, and survives being written and read again.
func FuzzDecodeBody(f *testing.F) {
	f.Add("application/json", []byte(`{"replies":[{"text":"hi","mentions":["u1"]}],"answer":{"a":1}}`))
	f.Add("application/json", []byte(`{"format":"card","card":{"cardParamMap":{"a":"b"}}}`))
	f.Add("text/plain; charset=utf-8", []byte("hi \xff"))
	f.Add("text/markdown", []byte("# hi"))
	f.Add("", []byte(`{"answer":null}`))
	f.Add("application/json", []byte(`{"text":"a"}{"text":"b"}`))
	f.Fuzz(func(t *testing.T, contentType string, body []byte) {
		res, err := router.DecodeBody(contentType, body)
		if err != nil {
			require.Zero(t, res)
			return
		}
		requireSound(t, res)
	})
}

func FuzzDecodeOutput(f *testing.F) {
	f.Add([]byte("hello\n"))
	f.Add([]byte("{\"text\":\"a\"}\n{\"answer\":1}\n"))
	f.Add([]byte(`{"replies":[{"card":{}}]}`))
	f.Fuzz(func(t *testing.T, out []byte) {
		for _, o := range []router.Output{router.OutputAuto, router.OutputText, router.OutputJSON} {
			res, err := o.Decode(out)
			if err != nil {
				require.Zero(t, res)
				continue
			}
			requireSound(t, res)
		}
	})
}

func requireSound(t *testing.T, res router.Result) {
	require.LessOrEqual(t, len(res.Replies), router.MaxReplies)
	for _, r := range res.Replies {
		if r.Format == message.FormatCard {
			require.True(t, json.Valid(r.Card))
			continue
		}
		require.NotEmpty(t, strings.TrimSpace(r.Text))
		require.True(t, utf8.ValidString(r.Text))
	}
	if res.Answer != nil {
		require.True(t, json.Valid(res.Answer))
	}
	written, err := json.Marshal(map[string]any{"replies": res.Replies})
	require.NoError(t, err)
	again, err := router.DecodeBody("application/json", written)
	require.NoError(t, err)
	require.Len(t, again.Replies, len(res.Replies))
}
