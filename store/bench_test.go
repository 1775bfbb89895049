package store_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/penstock-io/penstock/store"
)

type noop struct{ store.Store }

func (noop) Commit(context.Context, []store.Op) error { return nil }

// waits is a completer that lets a producer keep a bounded number under way.
type waits struct{ tokens chan struct{} }

func (c waits) Committed(store.Op, error) { c.tokens <- struct{}{} }

// BenchmarkWriter is what the writer adds to a commit, for one op, with 512 of
// them under way per producer.
func BenchmarkWriter(b *testing.B) {
	for _, bench := range []struct {
		name      string
		producers int
	}{{"1 producer", 1}, {"16 producers", 16}} {
		b.Run(bench.name, func(b *testing.B) {
			w, err := store.NewWriter(noop{}, store.WriterConfig{})
			if err != nil {
				b.Fatal(err)
			}
			ctx, cancel := context.WithCancel(b.Context())
			defer cancel()
			b.ReportAllocs()
			var running, producing sync.WaitGroup
			running.Go(func() { _ = w.Run(ctx) })
			var left atomic.Int64
			left.Store(int64(b.N))
			for range bench.producers {
				producing.Go(func() { produce(w, &left) })
			}
			producing.Wait()
			cancel()
			running.Wait()
			b.ReportMetric(float64(b.N)/float64(w.Stats().Commits), "ops/commit")
		})
	}
}

func produce(w *store.Writer, left *atomic.Int64) {
	const under = 512
	c := waits{make(chan struct{}, under)}
	ops := make([]store.Finish, under)
	for range under {
		c.tokens <- struct{}{}
	}
	for n := 0; left.Add(-1) >= 0; n++ {
		<-c.tokens
		_ = w.Submit(&ops[n%under], c)
	}
}
