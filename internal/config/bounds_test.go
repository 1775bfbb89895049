package config_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/penstock-io/penstock/internal/config"
)

// What is deep or wide enough to keep a parser busy is refused before it is parsed.
func TestRefusesWhatWouldTakeLong(t *testing.T) {
	const n = 20_000
	const deep = "1: is nested too deep"
	for _, tt := range []struct{ name, text, want string }{
		{"brackets", strings.Repeat("[", n), deep},
		{"braces", strings.Repeat("{a: ", n), deep},
		{"items", strings.Repeat("- ", n) + "x", deep},
		{"keys", strings.Repeat("? ", n) + "x", deep},
		{"anchors", strings.Repeat("&a ", n) + "x", deep},
		{"tags", strings.Repeat("!a ", n) + "x", deep},
		{"siblings", strings.Repeat("a: 1\n", n), "2001: more than 2000 keys in one mapping"},
		{
			"siblings inside", bot + "log:\n" + strings.Repeat("    a:\n      b: 1\n", 2001),
			"4006: more than 2000 keys in one mapping",
		},
		{
			"within the bounds", bot + "log: " + strings.Repeat("[", 30) + strings.Repeat("]", 30),
			"5: log: must be a mapping of keys, not a list",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			require.Equal(t, tt.want, report(problems(t, tt.text, noEnv)))
		})
	}
}

// Aliases make a small file large.
func TestBoundsAliases(t *testing.T) {
	text := bot + "routes:\n- &r {handler: {echo: {}}, match: &m {kinds: [" +
		strings.Repeat("message, ", 1000) + "]}}\n" + strings.Repeat("- *r\n", 1000)
	require.Contains(t, problems(t, text, noEnv).Error(),
		"the file is too large when its aliases are followed")

	text = "x-a: &a {<<: *a}\nlog: *a\n" + bot
	require.NotEmpty(t, problems(t, text, noEnv), "a mapping that is merged into itself")
	text = "log: &a {<<: *a}\n" + bot
	require.NotEmpty(t, problems(t, text, noEnv))
	text = "log: &a\n  level: *a\n" + bot
	require.NotEmpty(t, problems(t, text, noEnv))
}

func TestManyBotsAreRead(t *testing.T) {
	var b strings.Builder
	b.WriteString("installations:\n")
	for i := range 3000 {
		b.WriteString("  - id: b" + strings.Repeat("x", i%50) + string(rune('a'+i%26)) + "\n" +
			"    client_id: a\n    client_secret: b\n")
	}
	ps := problems(t, b.String(), noEnv)
	require.Contains(t, ps[0].Text, "is used on line", "nothing else is wrong")
}

func FuzzParse(f *testing.F) {
	paths, err := filepath.Glob("../../configs/*.yaml")
	require.NoError(f, err)
	require.NotEmpty(f, paths)
	for _, path := range paths {
		b, err := os.ReadFile(path)
		require.NoError(f, err)
		f.Add(b)
	}
	for _, tt := range refusals {
		f.Add([]byte(tt.text))
	}
	f.Add([]byte("x-a: &a\n  level: debug\nlog:\n  <<: [*a, *a]\n"))
	getenv := func(name string) (string, bool) { return "hunter2 :(", name != "NONE" }
	f.Fuzz(func(t *testing.T, b []byte) {
		cfg, err := config.Parse("f", b, getenv)
		if (cfg == nil) == (err == nil) {
			t.Fatalf("%v, %v", cfg, err)
		}
		if err != nil && strings.Contains(err.Error(), "hunter2") &&
			!strings.Contains(string(b), "hunter2") {
			t.Fatalf("the variable is shown: %v", err)
		}
	})
}
