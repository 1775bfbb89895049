package main

import (
	"bytes"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestRatioPairsRoundsAndTakesTheMedian(t *testing.T) {
	t.Parallel()
	require.InDelta(t, 2, ratio([]float64{2, 60, 8}, []float64{1, 20, 4}), 1e-9)
	require.Zero(t, ratio(nil, []float64{1}))
	require.Zero(t, ratio([]float64{1}, []float64{0}), "a peer that crashed has no rate")
	require.InDelta(t, 3, median([]float64{9, 1, 3}), 1e-9)
}

func TestMatches(t *testing.T) {
	t.Parallel()
	require.True(t, matches("", "redial"), "no filter lets everything pass")
	require.True(t, matches("stop,red", "redial"))
	require.False(t, matches("stop,idle", "redial"))
}

func TestReportSaysWhatWasMissed(t *testing.T) {
	t.Parallel()
	r := newReport()
	r.atLeast("row", "rate", 0.5, 0.7)
	r.atMost("row", "lost", 0, 0)
	s := &samples{note: "crashed"}
	s.add("p99", 12.34, "ms")
	s.add("p99", 10, "ms")
	r.record("row", "peer", s)
	r.record("row", "other", &samples{note: "did not start"})
	var out bytes.Buffer
	require.NoError(t, r.print(&out))
	require.Regexp(t, `rate +0\.50 +≥ 0\.70 +MISSED`, out.String())
	require.Regexp(t, `lost +0 +≤ 0 +met`, out.String())
	require.Regexp(t, `p99 +12\.3 ms +10\.0–12\.3 +crashed`, out.String())
	require.Contains(t, out.String(), "did not start")
}

func TestProcessFiguresAreRead(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat("/proc/self/stat"); err != nil {
		t.Skip("there is no /proc here")
	}
	before, err := cpu(os.Getpid())
	require.NoError(t, err)
	for began := time.Now(); time.Since(began) < 10*time.Second; {
		if after, err := cpu(os.Getpid()); err != nil || after > before {
			require.NoError(t, err)
			break
		}
	}
	after, err := cpu(os.Getpid())
	require.NoError(t, err)
	require.Greater(t, after, before)
	kib, err := rss(os.Getpid())
	require.NoError(t, err)
	require.Greater(t, kib, 1024)
}
