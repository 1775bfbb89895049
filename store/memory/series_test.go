package memory

import (
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/penstock-io/penstock/store"
)

// TestSeriesModel compares a series with a map over random puts, with gaps in the
// numbers, and removals.
func TestSeriesModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var s series[int]
		m := map[store.Seq]int{}
		last := store.Seq(0)
		seq := func() store.Seq {
			return store.Seq(rapid.IntRange(-1, int(last)+40).Draw(t, "seq"))
		}
		t.Repeat(map[string]func(*rapid.T){
			"put": func(t *rapid.T) {
				for range rapid.IntRange(1, 50).Draw(t, "many") {
					last += store.Seq(rapid.SampledFrom([]int{1, 1, 1, 5, 70}).Draw(t, "gap"))
					s.put(last, int(last)*10)
					m[last] = int(last) * 10
				}
			},
			"remove": func(*rapid.T) {
				n := seq()
				s.remove(n)
				delete(m, n)
			},
			"remove some": func(t *rapid.T) {
				until := seq()
				for _, n := range slices.Sorted(maps.Keys(m)) {
					if n <= until && n%7 != 0 {
						s.remove(n)
						delete(m, n)
					}
				}
			},
			"": func(t *rapid.T) { compareSeries(t, &s, m, seq()) },
		})
	})
}

func compareSeries(t *rapid.T, s *series[int], m map[store.Seq]int, seq store.Seq) {
	keys := slices.Sorted(maps.Keys(m))
	require.Equal(t, len(m), s.len)
	want, ok := m[seq]
	got := s.get(seq)
	require.Equal(t, ok, got != nil)
	if ok {
		require.Equal(t, want, *got)
	}
	first, v := s.first()
	if len(keys) == 0 {
		require.Nil(t, v)
	} else {
		require.Equal(t, keys[0], first)
		require.Equal(t, m[first], *v)
	}
	i, found := slices.BinarySearch(keys, seq)
	if found {
		i++
	}
	var above []store.Seq
	for n, v := range s.above(seq) {
		require.Equal(t, m[n], *v)
		above = append(above, n)
	}
	require.True(t, slices.Equal(keys[i:], above), "above %d: %v, not %v", seq, above, keys[i:])
	var back []store.Seq
	for n := range s.backward() {
		back = append(back, n)
	}
	slices.Reverse(back)
	require.True(t, slices.Equal(keys, back))
	for i, c := range s.chunks {
		require.True(t, c.used != 0 || i == len(s.chunks)-1, "an empty chunk is kept")
	}
}

func TestSteadySeriesAllocatesLittle(t *testing.T) {
	var s series[int]
	n := store.Seq(0)
	allocs := testing.AllocsPerRun(100, func() {
		for range 10 * chunkLen {
			n++
			s.put(n, 1)
			s.remove(n - 3)
		}
	})
	require.LessOrEqual(t, allocs, 10.0, "for ten chunks")
}
