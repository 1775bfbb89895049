//go:build unix

package sqlite_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/penstock-io/penstock/store"
	"github.com/penstock-io/penstock/store/sqlite"
)

// BenchmarkOpen opens a store with a million pending messages and lists all of
// them, with the file out of the page cache, after a clean stop and after none.
// Peak is the resident memory of the process.
func BenchmarkOpen(b *testing.B) {
	const items = 1_000_000
	path := filepath.Join(benchDir(b), "penstock.db")
	s := open(b, sqlite.Config{Path: path})
	for n := 0; n < items; {
		ops := make([]store.Op, 0, 500)
		for len(ops) < cap(ops) {
			ops = append(ops, &store.Append{Message: sample(n)})
			n++
		}
		require.NoError(b, s.Commit(b.Context(), ops))
	}
	killed := filepath.Join(filepath.Dir(path), "killed.db")
	require.NoError(b, s.Close())
	k := open(b, sqlite.Config{Path: path})
	copyFiles(b, path, killed)
	require.NoError(b, k.Close())
	for _, bench := range []struct{ name, path string }{
		{"clean", path}, {"killed", killed},
	} {
		b.Run(bench.name, func(b *testing.B) {
			for b.Loop() {
				b.StopTimer()
				uncache(bench.path)
				debug.FreeOSMemory()
				_ = os.WriteFile("/proc/self/clear_refs", []byte("5"), 0)
				b.StartTimer()
				recoverAll(b, bench.path, items)
			}
		})
	}
}

func recoverAll(b *testing.B, path string, items int) {
	began := time.Now()
	s := open(b, sqlite.Config{Path: path})
	require.NoError(b, s.Commit(b.Context(), []store.Op{&store.Append{Message: sample(-1)}}))
	ready := time.Since(began)
	n := 0
	for after := store.Seq(0); ; {
		heads, err := s.InboxHeads(b.Context(), after, 8192)
		require.NoError(b, err)
		if len(heads) == 0 {
			break
		}
		n += len(heads)
		after = heads[len(heads)-1].Seq
	}
	listed := time.Since(began)
	require.GreaterOrEqual(b, n, items)
	b.ReportMetric(ready.Seconds(), "ready-s")
	b.ReportMetric(listed.Seconds(), "listed-s")
	b.ReportMetric(float64(peak())/(1<<20), "peak-MiB")
	require.NoError(b, s.Close())
	b.ReportMetric(time.Since(began).Seconds(), "closed-s")
}

// uncache takes a file out of the page cache, where there is a dd that can.
func uncache(path string) {
	_ = exec.Command("dd", "of="+path, "oflag=nocache", "conv=notrunc,fdatasync", "count=0").Run()
}

// peak is the largest resident size since it was reset.
func peak() (bytes int64) {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		if _, err := fmt.Sscanf(line, "VmHWM: %d kB", &bytes); err == nil {
			return bytes << 10
		}
	}
	return 0
}
