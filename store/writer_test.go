package store_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/penstock-io/penstock/message"
	"github.com/penstock-io/penstock/store"
)

// fake is a store of which only Commit is used.
type fake struct {
	store.Store
	commit func(ctx context.Context, ops []store.Op) error
	groups []int
}

func (f *fake) Commit(ctx context.Context, ops []store.Op) error {
	f.groups = append(f.groups, len(ops))
	if f.commit == nil {
		return nil
	}
	return f.commit(ctx, ops)
}

// told collects what a completer hears. It needs no lock: the writer's goroutine
// alone calls it, and tests read it when that is idle or gone.
type told struct {
	ops  []store.Op
	errs []error
	then func(op store.Op, err error)
}

func (c *told) Committed(op store.Op, err error) {
	c.ops, c.errs = append(c.ops, op), append(c.errs, err)
	if c.then != nil {
		c.then(op, err)
	}
}

// running is a writer whose Run has been started in a bubble.
type running struct {
	*store.Writer
	stop func() error // ends ctx and waits for Run
	end  func()       // ends ctx
}

func start(t *testing.T, s store.Store, cfg store.WriterConfig) running {
	t.Helper()
	w, err := store.NewWriter(s, cfg)
	require.NoError(t, err)
	return run(t, w)
}

func run(t *testing.T, w *store.Writer) running {
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	t.Cleanup(cancel)
	return running{w, func() error { cancel(); return <-done }, cancel}
}

func finish(n int) *store.Finish { return &store.Finish{Seq: store.Seq(n)} }

func appendOf(raw string) *store.Append {
	return &store.Append{Message: &message.Inbound{Raw: message.Raw(raw)}}
}

func TestWriterConfig(t *testing.T) {
	for field, cfg := range map[string]store.WriterConfig{
		"MaxGroup":       {MaxGroup: -1},
		"MaxAppends":     {MaxAppends: -1},
		"MaxAppendBytes": {MaxAppendBytes: -1},
		"Gather":         {Gather: -1},
		"FlushWithin":    {FlushWithin: -1},
	} {
		_, err := store.NewWriter(&fake{}, cfg)
		require.ErrorContains(t, err, field)
	}
	_, err := store.NewWriter(nil, store.WriterConfig{})
	require.Error(t, err)
}

func TestWriterCommitsInOrderAndInGroups(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, c := &fake{}, &told{}
		w, err := store.NewWriter(f, store.WriterConfig{MaxGroup: 4})
		require.NoError(t, err)
		var ops []store.Op
		for n := range 9 {
			ops = append(ops, finish(n))
			require.NoError(t, w.Submit(ops[n], c))
		}
		require.Empty(t, c.ops, "nothing runs before Run")
		r := run(t, w)
		synctest.Wait()
		require.Equal(t, ops, c.ops)
		require.Equal(t, []int{3, 3, 3}, f.groups, "groups of one size rather than 4, 4, 1")
		require.NoError(t, r.Submit(finish(9), c))
		synctest.Wait()
		require.Equal(t, []int{3, 3, 3, 1}, f.groups, "it does not wait for more")
		require.NoError(t, r.stop())
		s := r.Stats()
		require.Equal(t, uint64(4), s.Commits)
		require.Equal(t, uint64(10), s.Ops)
		require.Equal(t, 1, s.LastGroup)
		require.Equal(t, 3, s.LargestGroup)
		require.Zero(t, s.Waiting)
	})
}

func TestWriterTakesWhatWaitsMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{commit: func(context.Context, []store.Op) error {
			<-time.After(time.Second)
			return nil
		}}
		w := start(t, f, store.WriterConfig{})
		require.NoError(t, w.Submit(finish(1), nil))
		synctest.Wait()
		for n := range 100 {
			require.NoError(t, w.Submit(finish(n), nil))
		}
		require.Equal(t, 101, w.Stats().Waiting)
		<-time.After(time.Minute)
		require.Equal(t, []int{1, 100}, f.groups)
		require.Equal(t, time.Second, w.Stats().LongestCommit)
		require.NoError(t, w.stop())
	})
}

func TestWriterTellsOwnResults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{commit: func(_ context.Context, ops []store.Op) error {
			store.Fail(ops[1], store.ErrNotFound)
			return nil
		}}
		c := &told{}
		w, err := store.NewWriter(f, store.WriterConfig{})
		require.NoError(t, err)
		for n := range 3 {
			require.NoError(t, w.Submit(finish(n), c))
		}
		require.NoError(t, run(t, w).stop())
		require.Equal(t, []error{nil, store.ErrNotFound, nil}, c.errs)
	})
}

func TestWriterTellsEveryOpOfAFailedGroup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		boom := errors.New("disk")
		var groups []store.Group
		f, c := &fake{}, &told{}
		f.commit = func(context.Context, []store.Op) error {
			if len(f.groups) == 1 {
				return boom
			}
			return nil
		}
		w, err := store.NewWriter(f, store.WriterConfig{
			Observe: func(g store.Group) { groups = append(groups, g) },
		})
		require.NoError(t, err)
		c.then = func(op store.Op, err error) {
			if err != nil {
				require.NoError(t, w.Submit(op, c))
			}
		}
		for n := range 2 {
			require.NoError(t, w.Submit(finish(n), c))
		}
		r := run(t, w)
		synctest.Wait()
		require.Len(t, c.errs, 4, "both failed, were submitted again, and held")
		require.ErrorIs(t, c.errs[0], boom)
		require.ErrorIs(t, c.errs[1], boom)
		require.NoError(t, errors.Join(c.errs[2:]...))
		require.NoError(t, r.stop(), "a failed commit does not end the writer")
		require.Len(t, groups, 2)
		require.ErrorIs(t, groups[0].Err, boom)
		require.Equal(t, uint64(1), w.Stats().Failed)
		require.ErrorIs(t, w.Stats().LastError, boom)
	})
}
