package simulate

import (
	"errors"
	"os"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/penstock-io/penstock/integrations/dingtalk/dingtalktest"
)

func TestLines(t *testing.T) {
	for line, want := range map[string]Command{
		"hello":                  {Verb: Say, Text: "hello"},
		"  two  words\t":         {Verb: Say, Text: "two  words"},
		"/say /cut":              {Verb: Say, Text: "/cut"},
		"/say # 1":               {Verb: Say, Text: "# 1"},
		"/conv ops room":         {Verb: Conv, Text: "ops room"},
		"/direct Ann":            {Verb: Direct, Text: "Ann"},
		"/as 李雷":                 {Verb: As, Text: "李雷"},
		"/picture":               {Verb: Picture},
		"/file report.pdf":       {Verb: File, Text: "report.pdf"},
		"/card":                  {Verb: Card, Words: []string{"agree"}},
		"/card yes no":           {Verb: Card, Words: []string{"yes", "no"}},
		"/event user_leave_org":  {Verb: Event, Text: "user_leave_org"},
		"/dup":                   {Verb: Dup},
		"/ping":                  {Verb: Ping},
		"/disconnect\t2":         {Verb: Disconnect, N: 2},
		"/cut 12":                {Verb: Cut, N: 12},
		"/blackhole":             {Verb: BlackHole},
		"/zombie":                {Verb: Zombie},
		"/fault open 401":        {Verb: Inject, N: 1, Fault: Fault{"open", "401"}},
		"/fault webhook hang 3":  {Verb: Inject, N: 3, Fault: Fault{"webhook", "hang"}},
		"/fault token empty all": {Verb: Inject, N: -1, Fault: Fault{"token", "empty"}},
		"/fault group off":       {Verb: Inject, N: 1, Fault: Fault{"group", "off"}},
		"/expire tokens":         {Verb: Expire, Text: "tokens"},
		"/expire webhooks":       {Verb: Expire, Text: "webhooks"},
		"/sessions":              {Verb: Sessions},
		"/stats":                 {Verb: Stats},
		"/wait 1m30s":            {Verb: Wait, For: 90 * time.Second},
		"/help":                  {Verb: Help},
		"/quit":                  {Verb: Quit},
	} {
		got, err := Parse(line)
		require.NoError(t, err, line)
		require.Equal(t, want, got, line)
	}
}

func TestWrongLines(t *testing.T) {
	for line, want := range map[string]string{
		"":                                  "there is nothing to say",
		"/":                                 `there is no command "/"; /help lists them`,
		"/nonsense":                         `there is no command "/nonsense"; /help lists them, and /say TEXT`,
		"/disc":                             "did you mean /disconnect [SOCKET]?",
		"/pings":                            "did you mean /ping [SOCKET]?",
		"\xff":                              "not UTF-8",
		"/say":                              "/say: there is nothing to say; write /say TEXT",
		strings.Repeat("x", 17e3):           "longer than 16384 bytes",
		"/conv":                             "/conv: a name is missing; write /conv NAME",
		"/conv " + strings.Repeat("x", 65):  "longer than 64 bytes",
		"/as a\x1b[2J":                      "control characters",
		"/picture x":                        "/picture: nothing may follow; write /picture",
		"/card " + strings.Repeat("a ", 17): "more than 16 actions",
		"/event":                            "a name is missing",
		"/event a b":                        "one word; write /event TYPE",
		"/cut first":                        `"first" is not a number from 1 to 1000000`,
		"/cut 0":                            `"0" is not a number`,
		"/fault open":                       "a route and a kind are needed",
		"/fault open 401 1 2":               "a route and a kind are needed",
		"/fault opem 401":                   `no route "opem", only card, connect, direct,`,
		"/fault open 418":                   `open cannot fail with "418", only with 400, 401, 403, 429,`,
		"/fault open 401 -1":                `"-1" is not a number`,
		"/fault open off 2":                 "no number follows off",
		"/expire cookies":                   `"cookies" does not expire; write /expire tokens|webhooks`,
		"/wait":                             `"" is not a duration`,
		"/wait 5":                           `"5" is not a duration up to 1h0m0s`,
		"/wait -5s":                         `"-5s" is not a duration`,
		"/wait 2h":                          `"2h" is not a duration`,
	} {
		_, err := Parse(line)
		require.ErrorContains(t, err, want, line)
	}
}

// Each fault that can be named is one, and each command is done by somebody.
func TestTheTablesAreWhole(t *testing.T) {
	for _, wanted := range []string{
		"open 401", "open 400", "open 403", "open 429", "open 503", "open html", "open empty",
		"open hang", "webhook 130101", "webhook 300001", "webhook 310000", "webhook 500",
		"webhook html", "webhook empty", "webhook hang", "token 401",
	} {
		_, err := Parse("/fault " + wanted)
		require.NoError(t, err, wanted)
	}
	text := help()
	for _, g := range grammars {
		require.Contains(t, text, g.usage()+" ")
	}
	for route, known := range faults {
		require.Contains(t, text, string(route)+" ")
		for kind, f := range known {
			done := f.Status != 0 || f.Body != "" || f.Hang || f.Cut || kind == "empty"
			require.True(t, done, "%s %s", route, kind)
		}
	}
	require.Equal(t, 401, faults[dingtalktest.RouteOpen]["401"].Status)
	require.Contains(t, faults[dingtalktest.RouteOpen]["empty"].Body, "endpoint")
}

// The document has every command and every fault.
func TestTheDocument(t *testing.T) {
	b, err := os.ReadFile("../../docs/simulate.md")
	require.NoError(t, err)
	doc := strings.ReplaceAll(string(b), `\|`, "|")
	for _, g := range grammars {
		require.Contains(t, doc, "`"+g.usage()+"`")
	}
	for route, known := range faults {
		require.Contains(t, doc, "`"+string(route)+"`")
		for kind := range known {
			require.Contains(t, doc, "`"+kind+"`")
		}
	}
}

func TestScript(t *testing.T) {
	steps, err := ParseScript("s", strings.NewReader("# a comment\r\n\n  hello\r\n/dup\n/quit"))
	require.NoError(t, err)
	require.Equal(t, []Step{
		{3, Command{Verb: Say, Text: "hello"}}, {4, Command{Verb: Dup}}, {5, Command{Verb: Quit}},
	}, steps)

	_, err = ParseScript("f.txt", strings.NewReader("/dup\n/wait x\nok\n/quit\n\n/cut"))
	require.ErrorIs(t, err, ErrScript)
	require.EqualError(t, err, `f.txt:1: /dup: nothing has been said that could come again
f.txt:2: /wait: "x" is not a duration up to 1h0m0s; write /wait DURATION
f.txt:6: it stands behind /quit`)

	_, err = ParseScript("f", strings.NewReader("hi\n"+strings.Repeat("x", maxLine+1)))
	require.EqualError(t, err, "f:2: the line is longer than 65536 bytes")
	_, err = ParseScript("f", strings.NewReader("# nothing\n"))
	require.EqualError(t, err, "f: has no lines")
	_, err = ParseScript("f", strings.NewReader(strings.Repeat("x\n", maxLines+1)))
	require.EqualError(t, err, "f: has more than 100000 lines")

	broken := errors.New("broken")
	_, err = ParseScript("f", iotest.ErrReader(broken))
	require.ErrorIs(t, err, broken)
	require.NotErrorIs(t, err, ErrScript)
}

func FuzzParse(f *testing.F) {
	for _, g := range grammars {
		f.Add(g.usage())
	}
	for _, line := range []string{
		"hi", "/fault open 401 all", "/cut 3", "/wait 1s", "/x", "/ ", "\xff",
	} {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, line string) {
		c, err := Parse(line)
		if err != nil {
			require.Zero(t, c, line)
			require.Less(t, len(err.Error()), 1000)
			return
		}
		require.LessOrEqual(t, len(c.Text), maxText)
		require.LessOrEqual(t, c.N, maxCount)
		require.LessOrEqual(t, c.For, maxWait)
		if c.Verb == Say {
			again, err := Parse("/say " + c.Text)
			require.NoError(t, err)
			require.Equal(t, c, again)
		}
	})
}
