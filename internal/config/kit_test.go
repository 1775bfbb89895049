package config_test

import (
	"errors"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/penstock-io/penstock/internal/config"
)

// env looks variables up in a map.
func env(vars map[string]string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		v, ok := vars[name]
		return v, ok
	}
}

var noEnv = env(nil)

// bot is the least that an installation needs, as its lines 1 to 4.
const bot = `installations:
  - id: bot
    client_id: ding1
    client_secret: s3
`

// problems parses what must not be accepted.
func problems(t *testing.T, text string, getenv func(string) (string, bool)) config.Problems {
	t.Helper()
	cfg, err := config.Parse("f", []byte(text), getenv)
	require.Nil(t, cfg)
	var ps config.Problems
	require.True(t, errors.As(err, &ps), "%v", err)
	return ps
}

func accepted(t *testing.T, text string, vars map[string]string) *config.Config {
	t.Helper()
	cfg, err := config.Parse("f", []byte(text), env(vars))
	require.NoError(t, err)
	return cfg
}

// report is the problems' text, one a line, without the name of the file where
// there is a line.
func report(ps config.Problems) string {
	return fileName.ReplaceAllString(ps.Error(), "$1")
}

var fileName = regexp.MustCompile(`(?m)^f:(\d)`)
