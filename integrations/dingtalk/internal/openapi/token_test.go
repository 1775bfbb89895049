package openapi

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// source is a token API that takes a second per answer.
type source struct {
	fetches atomic.Int64
	life    time.Duration
	same    bool // gives the same value each time
	err     error
}

func (s *source) tokens() *tokens {
	return &tokens{fetch: func(ctx context.Context) (string, time.Duration, error) {
		n := s.fetches.Add(1)
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
			return "", 0, ctx.Err()
		}
		if s.same {
			n = 0
		}
		return fmt.Sprintf("token-%d", n), s.life, s.err
	}}
}

func TestConcurrentCallersShareOneFetch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := &source{life: 2 * time.Hour}
		ts := src.tokens()
		var wg sync.WaitGroup
		for range 100 {
			wg.Go(func() {
				tok, err := ts.get(t.Context())
				require.NoError(t, err)
				require.Equal(t, "token-1", tok.value)
			})
		}
		wg.Wait()
		require.EqualValues(t, 1, src.fetches.Load())
	})
}

func TestCallerWhoGivesUpDoesNotFailTheOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := &source{life: 2 * time.Hour}
		ts := src.tokens()
		ctx, cancel := context.WithCancel(t.Context())
		first := make(chan error, 1)
		go func() {
			_, err := ts.get(ctx)
			first <- err
		}()
		synctest.Wait() // the first caller's fetch is under way
		second := make(chan error, 1)
		go func() {
			_, err := ts.get(t.Context())
			second <- err
		}()
		synctest.Wait()
		cancel()
		require.ErrorIs(t, <-first, context.Canceled)
		require.NoError(t, <-second)
		require.EqualValues(t, 1, src.fetches.Load())
	})
}

func TestTokenIsKeptUntilItsMargin(t *testing.T) {
	for life, kept := range map[time.Duration]time.Duration{
		2 * time.Hour:   2*time.Hour - tokenMargin,
		0:               tokenFloor,
		time.Second:     tokenFloor,
		5 * time.Minute: tokenFloor,
		7 * time.Minute: 2 * time.Minute,
	} {
		synctest.Test(t, func(t *testing.T) {
			src := &source{life: life}
			ts := src.tokens()
			for _, step := range []struct {
				wait    time.Duration
				fetches int64
			}{{0, 1}, {kept - time.Second, 1}, {time.Second, 2}} {
				<-time.After(step.wait)
				_, err := ts.get(t.Context())
				require.NoError(t, err)
				require.Equal(t, step.fetches, src.fetches.Load(), "life %v", life)
			}
		})
	}
}

// TestManyRefusalsRenewOnce has a platform that gives the same value again, so
// that comparing values would renew for each caller.
func TestManyRefusalsRenewOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := &source{life: 2 * time.Hour, same: true}
		ts := src.tokens()
		bad, err := ts.get(t.Context())
		require.NoError(t, err)
		for range 10 {
			tok, err := ts.renew(t.Context(), bad)
			require.NoError(t, err)
			require.NotEqual(t, bad.gen, tok.gen)
		}
		require.EqualValues(t, 2, src.fetches.Load())
	})
}

func TestFailedFetchIsNotKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := &source{err: errors.New("down")}
		ts := src.tokens()
		_, err := ts.get(t.Context())
		require.ErrorIs(t, err, src.err)
		src.err = nil
		_, err = ts.get(t.Context())
		require.NoError(t, err)
	})
}

func TestHungFetchEndsByItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ts := &tokens{fetch: func(ctx context.Context) (string, time.Duration, error) {
			<-ctx.Done()
			return "", 0, context.Cause(ctx)
		}}
		begin := time.Now()
		_, err := ts.get(t.Context())
		require.ErrorIs(t, err, errTimeout)
		require.Equal(t, tokenTimeout, time.Since(begin))
	})
}

func TestLifeIsReadLeniently(t *testing.T) {
	for s, want := range map[string]time.Duration{
		"7200": 2 * time.Hour, "7200.5": 7200*time.Second + 500*time.Millisecond,
		"": 0, "0": 0, "-1": 0, "NaN": 0, "soon": 0, "1e300": tokenCeiling, "Inf": tokenCeiling,
	} {
		require.Equal(t, want, parseLife(s), s)
	}
}
