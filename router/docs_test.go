package router_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/penstock-io/penstock/message"
	"github.com/penstock-io/penstock/router"
)

func handlersDoc(t *testing.T) string {
	t.Helper()
	b, err := os.ReadFile("../docs/handlers.md")
	require.NoError(t, err)
	return string(b)
}

// section is the text under a heading, up to the next one.
func section(t *testing.T, heading string) string {
	t.Helper()
	_, rest, ok := strings.Cut(handlersDoc(t), "\n## "+heading+"\n")
	require.True(t, ok, "no section %q", heading)
	text, _, _ := strings.Cut(rest, "\n## ")
	return text
}

// block is the first fenced block of a language in text.
func block(t *testing.T, text, language string) string {
	t.Helper()
	_, rest, ok := strings.Cut(text, "```"+language+"\n")
	require.True(t, ok, "no %s block", language)
	code, _, ok := strings.Cut(rest, "```")
	require.True(t, ok)
	return code
}

// table gives the first columns of the rows of text's table with this heading.
func table(t *testing.T, text, heading string, columns int) [][]string {
	t.Helper()
	_, rest, ok := strings.Cut(text, "\n"+heading)
	require.True(t, ok, "no table %q", heading)
	_, rest, _ = strings.Cut(rest, "\n")
	var rows [][]string
	for line := range strings.Lines(rest) {
		line = strings.TrimSpace(line)
		if line == "" {
			break
		}
		cells := strings.Split(strings.Trim(line, "|"), "|")
		if len(cells) < columns || strings.HasPrefix(cells[0], "---") || line[0] != '|' {
			continue
		}
		row := make([]string, columns)
		for i := range row {
			row[i] = strings.Trim(strings.TrimSpace(cells[i]), "`")
		}
		rows = append(rows, row)
	}
	require.NotEmpty(t, rows)
	return rows
}

// fields lists the JSON fields of a struct as the documentation does. A type
// that has been listed already is not listed again.
func fields(typ reflect.Type, prefix string, seen map[reflect.Type]bool) [][]string {
	var rows [][]string
	for i := range typ.NumField() {
		f := typ.Field(i)
		name, option, _ := strings.Cut(f.Tag.Get("json"), ",")
		there := "always"
		if option != "" {
			there = "if known"
		}
		kind, inner := jsonType(f.Type)
		rows = append(rows, []string{prefix + name, kind, there})
		if inner != nil && !seen[inner] {
			seen[inner] = true
			dots := "."
			if kind == "list of objects" {
				dots = "[]."
			}
			rows = append(rows, fields(inner, prefix+name+dots, seen)...)
		}
	}
	return rows
}

func jsonType(typ reflect.Type) (kind string, inner reflect.Type) {
	switch typ {
	case reflect.TypeFor[time.Time]():
		return "time", nil
	case reflect.TypeFor[message.Raw](), reflect.TypeFor[json.RawMessage]():
		return "any JSON", nil
	}
	switch typ.Kind() {
	case reflect.String:
		return "string", nil
	case reflect.Bool:
		return "boolean", nil
	case reflect.Int, reflect.Int64:
		return "integer", nil
	case reflect.Struct:
		return "object", typ
	case reflect.Pointer:
		return jsonType(typ.Elem())
	case reflect.Slice:
		kind, inner = jsonType(typ.Elem())
		return "list of " + kind + "s", inner
	}
	return fmt.Sprint("unknown ", typ), nil
}

func TestDocNamesEveryMessageField(t *testing.T) {
	seen := map[reflect.Type]bool{}
	want := fields(reflect.TypeFor[message.Inbound](), "", seen)
	require.Equal(t, want, table(t, section(t, "The message"), "| field | type | there |", 3))
}

func TestDocNamesEveryReplyField(t *testing.T) {
	var want [][]string
	for _, row := range fields(reflect.TypeFor[message.Reply](), "", map[reflect.Type]bool{}) {
		want = append(want, row[:2])
		require.Equal(t, "if known", row[2])
	}
	require.Equal(t, want, table(t, section(t, "Replies"), "| field | type |", 2))
}

func TestDocExampleIsAMessage(t *testing.T) {
	example := block(t, section(t, "The message"), "json")
	dec := json.NewDecoder(strings.NewReader(example))
	dec.DisallowUnknownFields()
	var m message.Inbound
	require.NoError(t, dec.Decode(&m))
	require.Equal(t, message.Schema, m.Schema)
	body, err := router.Encode(&m)
	require.NoError(t, err)
	var out bytes.Buffer
	require.NoError(t, json.Indent(&out, body, "", "  "))
	require.Equal(t, example, out.String()+"\n")
}

func TestDocExamplesAreAnswers(t *testing.T) {
	parts := strings.Split(section(t, "Replies"), "```json\n")[1:]
	require.Len(t, parts, 3)
	for _, part := range parts {
		code, _, _ := strings.Cut(part, "```")
		res, err := router.DecodeBody("application/json", []byte(code))
		require.NoError(t, err)
		require.NotZero(t, res)
	}
}

// numbers reads "400–407, 409" into every number it stands for.
func numbers(t *testing.T, text string) []int {
	t.Helper()
	var list []int
	for _, m := range regexp.MustCompile(`(\d+)(?:–(\d+))?`).FindAllStringSubmatch(text, -1) {
		from, err := strconv.Atoi(m[1])
		require.NoError(t, err)
		to := from
		if m[2] != "" {
			to, err = strconv.Atoi(m[2])
			require.NoError(t, err)
		}
		for n := from; n <= to; n++ {
			list = append(list, n)
		}
	}
	return list
}

func TestDocTellsEveryStatus(t *testing.T) {
	told := map[int]string{}
	for _, row := range table(t, section(t, "HTTP"), "| status | what happens |", 2) {
		what, _, _ := strings.Cut(row[1], ";")
		for _, status := range numbers(t, row[0]) {
			require.NotContains(t, told, status)
			told[status] = what
		}
	}
	for status := 200; status < 600; status++ {
		want := "dead letter"
		if status/100 == 2 {
			want = "done"
		} else if router.Again(status) {
			want = "tried again"
		}
		require.Equal(t, want, told[status], "status %d", status)
	}
}

func TestDocTellsEveryExitStatus(t *testing.T) {
	told := map[int]string{}
	for _, row := range table(t, section(t, "Commands"), "| exit status | what happens |", 2) {
		for _, status := range numbers(t, row[0]) {
			require.NotContains(t, told, status)
			told[status] = row[1][:4]
		}
	}
	require.Len(t, told, 256)
	want := map[int]string{0: "done", 1: "trie", 64: "dead", 75: "trie", 78: "dead"}
	for status, what := range want {
		require.Equal(t, what, told[status], "status %d", status)
	}
}

func TestDocRouteFieldsAreThoseOfMatch(t *testing.T) {
	var want []string
	for f := range reflect.TypeFor[router.Match]().Fields() {
		want = append(want, strings.ToLower(f.Name))
	}
	var got []string
	for _, row := range table(t, section(t, "Routes"), "| field | asks |", 1) {
		got = append(got, row[0])
	}
	require.Equal(t, want, got)
}

func TestDocGoSnippetIsTested(t *testing.T) {
	source, err := os.ReadFile("verify_test.go")
	require.NoError(t, err)
	require.Contains(t, string(source), block(t, section(t, "Checking the signature"), "go"))
}

func TestDocPythonSnippetVerifies(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("python3 is not here")
	}
	code := block(t, section(t, "Checking the signature"), "python") + `
key = base64.b64decode("` + strings.TrimPrefix(vectorSecret, "whsec_") + `")
headers = {"webhook-id": "` + vectorID + `", "webhook-timestamp": "1614265330",
           "webhook-signature": "v1,bm9uZQ== ` + vectorSignature + `"}
print(verify(key, headers, b'` + vectorBody + `', now=1614265400),
      verify(key, headers, b'` + vectorBody + ` ', now=1614265400),
      verify(key, headers, b'` + vectorBody + `'))
`
	out, err := exec.Command(python, "-c", code).CombinedOutput()
	require.NoError(t, err, string(out))
	require.Equal(t, "True False False\n", string(out))
}

func TestDocHeaders(t *testing.T) {
	rows := table(t, section(t, "HTTP"), "| header | value |", 1)
	srv := endpoint(t, func(w http.ResponseWriter, r *http.Request) {
		for _, row := range rows {
			if r.Header.Get(row[0]) == "" {
				http.Error(w, "no "+row[0], http.StatusTeapot)
			}
		}
	})
	h := poster(t, router.HTTPConfig{URL: srv.URL, Secret: "s"})
	_, err := h.Handle(t.Context(), text("x"))
	require.NoError(t, err)
}
