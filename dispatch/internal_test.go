package dispatch

import (
	"context"
	"math"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func nothing(context.Context, *Task[string, int]) Outcome { return Done() }

func TestConfigDefaults(t *testing.T) {
	type config = Config[string, int]
	const timeout = 2 * time.Minute
	for _, c := range []struct {
		name       string
		give, want config
		noTimeout  bool
	}{
		{
			"zero",
			config{},
			config{Workers: 8, PerKey: 256, Pending: 2048, Spares: 8, Timeout: timeout},
			false,
		},
		{
			"spares follow workers",
			config{Workers: 3},
			config{Workers: 3, PerKey: 256, Pending: 2048, Spares: 3, Timeout: timeout},
			false,
		},
		{
			"given",
			config{Workers: 1, PerKey: 2, Pending: 3, Spares: 4, Timeout: 5},
			config{Workers: 1, PerKey: 2, Pending: 3, Spares: 4, Timeout: 5},
			false,
		},
		{
			"none",
			config{Spares: -1, Timeout: -1},
			config{Workers: 8, PerKey: 256, Pending: 2048, Spares: 0, Timeout: -1},
			true,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.give.Run = nothing
			d, err := New(c.give)
			require.NoError(t, err)
			got := d.cfg
			got.Run = nil
			require.Equal(t, c.want, got)
			require.Equal(t, c.noTimeout, d.clock.timeout == 0)
		})
	}
}

func TestConfigRefusals(t *testing.T) {
	type config = Config[string, int]
	for _, c := range []struct {
		field string
		give  config
	}{
		{"Run", config{}},
		{"Workers", config{Run: nothing, Workers: -1}},
		{"PerKey", config{Run: nothing, PerKey: -1}},
		{"Pending", config{Run: nothing, Pending: -1}},
	} {
		t.Run(c.field, func(t *testing.T) {
			d, err := New(c.give)
			require.ErrorIs(t, err, ErrConfig)
			require.ErrorContains(t, err, c.field+": ")
			require.Nil(t, d)
		})
	}
}

func TestHoldHeapIsSorted(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var h holdHeap[string, int]
		var want []int64
		for _, at := range rapid.SliceOf(rapid.Int64Range(0, 50)).Draw(t, "times") {
			if at%5 == 0 && len(want) > 0 { // pops among the pushes
				slices.Sort(want)
				require.Equal(t, want[0], h.pop().at)
				want = want[1:]
			}
			h.push(hold[string, int]{at: at})
			want = append(want, at)
		}
		slices.Sort(want)
		for _, at := range want {
			require.Equal(t, at, h.pop().at)
		}
		require.Empty(t, h)
	})
}

func TestClockDoesNotOverflow(t *testing.T) {
	c := &clock{}
	require.Equal(t, int64(15), c.after(5, 10))
	require.Equal(t, int64(never), c.after(5, math.MaxInt64))
	require.Equal(t, int64(never), c.after(never-1, 1))
}

// The free list of lanes is bounded, and lanes come out of it clean.
func TestKeyMapReusesLanes(t *testing.T) {
	var m keyMap[int, int]
	lanes := make(map[int]*lane[int, int])
	for k := range spareLanes + 10 {
		lanes[k] = m.add(k)
	}
	for k, l := range lanes {
		m.remove(k, l)
	}
	require.Equal(t, spareLanes, m.spare)
	require.True(t, m.wasteful())
	l := m.add(1)
	require.Equal(t, lane[int, int]{}, *l)
	require.Equal(t, spareLanes-1, m.spare)
	m.shrink()
	require.Zero(t, m.spare)
	require.Same(t, l, m.lanes[1])
	require.False(t, m.wasteful())
}

// No timer is left when there is nothing to wait for, after every way to get there.
func TestNoTimerIsLeft(t *testing.T) {
	for name, end := range map[string]func(*Dispatcher[string, int]){
		"drained": func(*Dispatcher[string, int]) {},
		"killed":  func(d *Dispatcher[string, int]) { d.Kill() },
		"given up": func(d *Dispatcher[string, int]) {
			ctx, cancel := context.WithCancel(context.Background())
			cancel()
			d.DrainAndClose(ctx)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d, err := New(Config[string, int]{Run: func(_ context.Context, t *Task[string, int]) Outcome {
					<-time.After(time.Second)
					if t.Job == 2 && t.Runs == 1 {
						return Hold(time.Minute)
					}
					return Done()
				}})
				require.NoError(t, err)
				for job := range 4 {
					require.NoError(t, d.Enqueue(string(rune('a'+job)), job))
				}
				<-time.After(1500 * time.Millisecond)
				require.NoError(t, d.Enqueue("e", 5))
				synctest.Wait()
				require.NotEqual(t, int64(never), armed(d))
				end(d)
				if name == "given up" {
					require.Equal(t, int64(never), armed(d), "the run that goes on is nobody's")
				}
				require.NoError(t, d.Drain(t.Context()))
				require.Equal(t, int64(never), armed(d))
			})
		})
	}
}

func armed(d *Dispatcher[string, int]) int64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.armed
}
