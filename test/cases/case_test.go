package cases_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// replayed is one file.
type replayed struct {
	ID       string                     `json:"id"`
	Name     string                     `json:"name"`
	Platform string                     `json:"platform"`
	Kind     string                     `json:"kind"`
	What     string                     `json:"what"`
	Basis    string                     `json:"basis"`
	Source   []string                   `json:"source"`
	ClockMS  int64                      `json:"clock_ms"`
	Given    map[string]string          `json:"given"`
	Input    input                      `json:"input"`
	Expect   map[string]json.RawMessage `json:"expect"`
}

// input is what comes in. Which fields are there depends on the kind.
type input struct {
	Transport        string      `json:"transport"`
	Direction        string      `json:"direction"`
	Wire             []wireItem  `json:"wire"`
	Expand           expansion   `json:"expand"`
	GapMS            int64       `json:"gap_ms"`
	ReconnectBetween bool        `json:"reconnect_between"`
	Kill9Between     bool        `json:"kill9_between"`
	Request          httpRequest `json:"request"`
	Response         httpAnswer  `json:"response"`
	Handshake        httpAnswer  `json:"handshake"`
	HangMS           int64       `json:"hang_ms"`
	Answers          []string    `json:"answers"`
	Script           []string    `json:"script"`
	Repeat           int         `json:"repeat"`
	Values           []string    `json:"values"`
}

// wireItem is one WebSocket message.
type wireItem struct {
	text   string
	binary bool
}

func (w *wireItem) UnmarshalJSON(b []byte) error {
	if b[0] == '"' {
		return json.Unmarshal(b, &w.text)
	}
	var o struct {
		Text string `json:"binary_utf8"`
	}
	w.binary = true
	err := strict(b, &o)
	w.text = o.Text
	return err
}

// expansion puts something large in the place of a token.
type expansion struct {
	Token  string `json:"token"`
	Repeat string `json:"repeat"`
	Count  int    `json:"count"`
	Open   string `json:"open"`
	Close  string `json:"close"`
	Depth  int    `json:"depth"`
}

func (e expansion) apply(s string) string {
	if e.Token == "" {
		return s
	}
	big := strings.Repeat(e.Repeat, e.Count) +
		strings.Repeat(e.Open, e.Depth) + strings.Repeat(e.Close, e.Depth)
	return strings.ReplaceAll(s, e.Token, big)
}

type httpRequest struct {
	Method string              `json:"method"`
	Body   json.RawMessage     `json:"body"`
	Cases  map[string][]string `json:"cases"`
}

// httpAnswer is an answer of the platform; status 0 is none.
type httpAnswer struct {
	Status  int               `json:"status"`
	Headers map[string]string `json:"headers"`
	Body    string            `json:"body"`
}

// strict decodes b and refuses fields that into has not.
func strict(b []byte, into any) error {
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.DisallowUnknownFields()
	return dec.Decode(into)
}

// load reads every case of a folder. A field that no player knows is an error.
func load(t *testing.T, dir string) []*replayed {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	require.NoError(t, err)
	var all []*replayed
	for _, f := range files {
		b, err := os.ReadFile(f)
		require.NoError(t, err)
		c := new(replayed)
		if err := strict(b, c); err != nil {
			t.Errorf("%s: %v", f, err) // the others are played all the same
			continue
		}
		if c.Platform == "dingtalk" || c.Platform == "any" {
			all = append(all, c)
		}
	}
	require.NotEmpty(t, all, "no cases in %s", dir)
	return all
}

func (c *replayed) clock() time.Time { return time.UnixMilli(c.ClockMS) }

// has tells whether the case expects something under a key.
func (c *replayed) has(key string) bool { _, ok := c.Expect[key]; return ok }

// words gives an expectation as text; a value that is no string as JSON.
func (c *replayed) words(key string) string { return textOf(c.Expect[key]) }

func textOf(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	return string(raw)
}

// number reads the first number in an expectation, -1 if there is none.
func number(words string) int {
	n, err := strconv.Atoi(regexp.MustCompile(`\d+`).FindString(words))
	if err != nil {
		return -1
	}
	return n
}

// findings are what was wrong in one run of a case, by the key of the expectation.
type findings struct {
	mu      sync.Mutex
	wrong   map[string][]string // guarded by mu
	unknown map[string]string   // guarded by mu
}

func newFindings() *findings {
	return &findings{wrong: map[string][]string{}, unknown: map[string]string{}}
}

// fail notes that an expectation is not met.
func (f *findings) fail(key, format string, args ...any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.wrong[key] = append(f.wrong[key], fmt.Sprintf(format, args...))
}

// want notes a failure unless ok.
func (f *findings) want(ok bool, key, format string, args ...any) {
	if !ok {
		f.fail(key, format, args...)
	}
}

// odd notes an expectation that nobody can check.
func (f *findings) odd(key, value string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.unknown[key] = value
}

// notes are keys that hold text for people, beside what is expected.
var notes = []string{"note"}

// checker judges one expectation.
type checker struct {
	pattern string // a regular expression that the value must match, any if empty
	check   func()
}

// active are expectations whose checkers push something more, and so come last.
var active = []string{
	"ack_when", "ack_budget", "connection", "frames_on_old_after_notice",
	"next_message_same_chat", "dedup_key", "counts_as_alive", "parse", "stop",
}

// judge lets the first checker whose pattern matches judge each expectation.
func judge(c *replayed, f *findings, by map[string][]checker) {
	keys := slices.SortedFunc(maps.Keys(c.Expect), func(a, b string) int {
		return cmp.Or(slices.Index(active, a)-slices.Index(active, b), cmp.Compare(a, b))
	})
	for _, key := range keys {
		if slices.Contains(notes, key) {
			continue
		}
		i := slices.IndexFunc(by[key], func(k checker) bool {
			return regexp.MustCompile(`(?i)` + k.pattern).MatchString(c.words(key))
		})
		if i < 0 {
			f.odd(key, c.words(key))
			continue
		}
		by[key][i].check()
	}
}
