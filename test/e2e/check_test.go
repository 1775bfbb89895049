package e2e_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/penstock-io/penstock/internal/app"
	"github.com/penstock-io/penstock/internal/config"
)

// Bounds of waits for counters that have no event of their own.
const (
	waitFor = 10 * time.Second
	tick    = 5 * time.Millisecond
)

// A check of a configuration opens a session of each installation and tells which
// of them the platform takes.
func TestCheckOnline(t *testing.T) {
	t.Parallel()
	g := gateway(t, "good", "bad")
	c := configure(g, "good", "bad")
	c.Installations[1].ClientSecret = "not-the-secret"
	got := app.Probe(within(t), c, 5*time.Second)
	require.Len(t, got, 2)
	require.NoError(t, got[0].Err)
	require.Error(t, got[1].Err)
	require.NotContains(t, fmt.Sprint(got[1].Err), "not-the-secret")
	require.NoError(t, g.App(cred("good").ClientID).AwaitSessions(within(t), 0))
	require.Equal(t, 1, g.App(cred("good").ClientID).Stats().Opens)
}

// A configuration that cannot work is refused as a whole, with every problem.
func TestCheckNamesEveryProblem(t *testing.T) {
	t.Parallel()
	const text = `
stop_within: soon
installations:
  - id: a
    client_id: client-a
    client_secret: ${SECRET_OF_A}
  - id: a
    client_id: client-b
    client_secret: b
    api_base: http://example.com
routes:
  - handler: {echo: {}, exec: {command: [cat]}}
`
	unset := func(string) (string, bool) { return "", false }
	_, err := config.Parse("penstock.yaml", []byte(text), unset)
	require.Error(t, err)
	var problems config.Problems
	require.True(t, errors.As(err, &problems), "%T", err)
	require.GreaterOrEqual(t, len(problems), 5, "%v", err)
}
