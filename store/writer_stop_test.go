package store_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/penstock-io/penstock/store"
)

func TestWriterBoundsAppends(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, err := store.NewWriter(&fake{}, store.WriterConfig{MaxAppends: 2, MaxAppendBytes: 10})
		require.NoError(t, err)
		require.NoError(t, w.Submit(appendOf("12345678"), nil))
		require.ErrorIs(t, w.Submit(appendOf("123"), nil), store.ErrFull, "by bytes")
		require.NoError(t, w.Submit(&store.Append{}, nil), "no message, no bytes")
		require.ErrorIs(t, w.Submit(appendOf(""), nil), store.ErrFull, "by count")
		require.NoError(t, w.Submit(finish(1), nil), "only appends are refused")
		s := w.Stats()
		require.Equal(t, 3, s.Waiting)
		require.Equal(t, 2, s.WaitingAppends)
		require.Equal(t, int64(8), s.WaitingAppendBytes)
		require.Equal(t, uint64(2), s.Refused)

		r := run(t, w)
		synctest.Wait()
		require.NoError(t, r.Submit(appendOf("1234567890"), nil), "room comes back")
		require.NoError(t, r.stop())
		s = w.Stats()
		require.Zero(t, s.Waiting)
		require.Zero(t, s.WaitingAppends)
		require.Zero(t, s.WaitingAppendBytes)
	})
}

func TestWriterHasRoomAgainWhenItTells(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &told{}
		w := start(t, &fake{}, store.WriterConfig{MaxAppends: 1})
		var again error
		c.then = func(store.Op, error) { again = w.Submit(appendOf(""), nil) }
		require.NoError(t, w.Submit(appendOf(""), c))
		synctest.Wait()
		require.NoError(t, again)
		require.NoError(t, w.stop())
	})
}

func TestWriterOutlivesPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, c := &fake{}, &told{}
		f.commit = func(context.Context, []store.Op) error {
			if len(f.groups) == 1 {
				panic("store")
			}
			return nil
		}
		w := start(t, f, store.WriterConfig{Observe: func(store.Group) { panic("observer") }})
		require.NoError(t, w.Submit(finish(1), c))
		synctest.Wait()
		var p *store.PanicError
		require.ErrorAs(t, c.errs[0], &p)
		require.Equal(t, "store", p.Value)
		require.NotEmpty(t, p.Stack)
		require.ErrorContains(t, p, "store")

		bad := &told{then: func(store.Op, error) { panic("completer") }}
		require.NoError(t, w.Submit(finish(2), bad))
		require.NoError(t, w.Submit(finish(3), c))
		require.NoError(t, w.stop())
		require.NoError(t, c.errs[1], "the next one is told")
		s := w.Stats()
		require.GreaterOrEqual(t, s.Panics, uint64(4))
		require.Equal(t, "observer", s.LastPanic.Value)
	})
}

func TestWriterFinishesTheCommitUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, c := &fake{}, &told{}
		f.commit = func(ctx context.Context, _ []store.Op) error {
			select {
			case <-time.After(time.Second):
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		w := start(t, f, store.WriterConfig{})
		require.NoError(t, w.Submit(finish(1), c))
		synctest.Wait()
		require.NoError(t, w.Submit(finish(2), c))
		w.end()
		synctest.Wait()
		require.NoError(t, w.Submit(finish(3), c), "it takes ops until it has flushed")
		require.NoError(t, w.stop())
		require.Equal(t, []error{nil, nil, nil}, c.errs)
		require.ErrorIs(t, w.Submit(finish(4), c), store.ErrClosed)
		require.ErrorIs(t, w.Submit(appendOf(""), c), store.ErrClosed)
		require.Len(t, c.errs, 3)
	})
}

func TestWriterStopsOnTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{commit: func(ctx context.Context, _ []store.Op) error {
			<-ctx.Done()
			return ctx.Err()
		}}
		c := &told{}
		w := start(t, f, store.WriterConfig{FlushWithin: 3 * time.Second, MaxGroup: 2})
		// A completer that never gives up must not keep the writer from ending.
		c.then = func(op store.Op, _ error) {
			if err := w.Submit(op, c); err != nil {
				require.ErrorIs(t, err, store.ErrClosed)
			}
		}
		for n := range 5 {
			require.NoError(t, w.Submit(finish(n), c))
		}
		<-time.After(time.Hour)
		began := time.Now()
		require.ErrorIs(t, w.stop(), context.Canceled)
		require.Equal(t, 3*time.Second, time.Since(began))
		require.Zero(t, w.Stats().Waiting, "every op was told")
		for _, err := range c.errs {
			require.ErrorIs(t, err, context.Canceled)
		}
		require.ErrorIs(t, w.Submit(finish(1), nil), store.ErrClosed)
	})
}

func TestWriterRunsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &told{}
		w, err := store.NewWriter(&fake{}, store.WriterConfig{})
		require.NoError(t, err)
		require.NoError(t, w.Submit(finish(1), c))
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		require.NoError(t, w.Run(ctx), "stopped before it ran")
		require.Equal(t, []error{nil}, c.errs, "what waited was committed")
		require.Error(t, w.Run(t.Context()))
	})
}

// TestWriterTellsEachOpOnce submits from many goroutines while the writer stops:
// what Submit took is told once, what it refused never.
func TestWriterTellsEachOpOnce(t *testing.T) {
	const producers, rounds = 4, 500
	w, err := store.NewWriter(&fake{}, store.WriterConfig{MaxGroup: 16, MaxAppends: 32})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var taken, reported atomic.Int64
	count := counter{&reported}
	var wg sync.WaitGroup
	for range producers {
		wg.Go(func() {
			for i := range rounds {
				var op store.Op = finish(i)
				if i%2 == 0 {
					op = appendOf("x")
				}
				if w.Submit(op, count) == nil {
					taken.Add(1)
				}
				if i == rounds/2 {
					cancel()
				}
			}
		})
	}
	require.NoError(t, w.Run(ctx))
	wg.Wait()
	require.Equal(t, taken.Load(), reported.Load())
	require.Zero(t, w.Stats().Waiting)
}

type counter struct{ n *atomic.Int64 }

func (c counter) Committed(store.Op, error) { c.n.Add(1) }
