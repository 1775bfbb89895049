package sqlite

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/penstock-io/penstock/store"
)

// TestIndexModel compares the index with a map, on hashes that often fall together.
func TestIndexModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := newIndex()
		model := map[uint64][]int64{}
		last := int64(1<<commitBits - 20) // numbers pass the bits that are kept
		hash := rapid.Custom(func(t *rapid.T) uint64 {
			return rapid.Uint64Range(0, 2).Draw(t, "part")<<56 | rapid.Uint64Range(0, 40).Draw(t, "tag")<<32
		})
		for range rapid.IntRange(1, 400).Draw(t, "steps") {
			h := hash.Draw(t, "hash")
			if h>>32&(1<<tagBits-1) == 0 {
				h |= 1 << 32 // both stand for one
			}
			if n := model[h]; len(n) > 0 && rapid.Bool().Draw(t, "remove") {
				x.remove(h, n[0])
				model[h] = n[1:]
			} else {
				last++
				x.add(h, last)
				model[h] = append(n, last)
			}
			x.remove(h, last+1000) // not there
			got := x.candidates(h, last, nil)
			slices.Sort(got)
			require.Equal(t, model[h], append([]int64{}, got...))
		}
		n := 0
		for h, want := range model {
			n += len(want)
			got := x.candidates(h, last, nil)
			slices.Sort(got)
			require.ElementsMatch(t, want, got)
		}
		require.Equal(t, n, x.len)
	})
}

// TestIndexGivesMemoryBack fills and empties it.
func TestIndexGivesMemoryBack(t *testing.T) {
	x := newIndex()
	const many = 200_000
	slots := func() (n int) {
		for i := range x.parts {
			n += len(x.parts[i].slots)
		}
		return n
	}
	for i := range uint64(many) {
		x.add(i*0x9e3779b97f4a7c15, int64(i))
	}
	full := slots()
	require.Less(t, full*8/many, 24, "bytes an id")
	for i := range uint64(many) {
		x.remove(i*0x9e3779b97f4a7c15, int64(i))
	}
	require.Zero(t, x.len)
	require.Less(t, slots(), full/10)
}

// TestNumbersModel compares the set with a map, over a table that is read in parts.
func TestNumbersModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		number := rapid.Map(rapid.IntRange(1, 3*pageLen), func(n int) store.Seq { return store.Seq(n) })
		table := map[store.Seq]bool{}
		for _, n := range rapid.SliceOfN(number, 0, 50).Draw(t, "table") {
			table[n] = true
		}
		loads := map[store.Seq]int{}
		s := numbers{stored: 2 * pageLen, load: func(first store.Seq, put func(store.Seq)) error {
			loads[first]++
			for n := range table {
				if n >= first && n < first+pageLen {
					put(n)
				}
			}
			return nil
		}}
		for n := range table { // the table has none above stored
			if n > s.stored {
				delete(table, n)
			}
		}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			n := number.Draw(t, "number")
			has, err := s.has(n)
			require.NoError(t, err)
			require.Equal(t, table[n], has)
			switch {
			case has:
				s.drop(n)
				delete(table, n)
			case n > s.stored:
				require.NoError(t, s.prepare(n, n))
				s.put(n)
				table[n] = true
			}
			low, high := number.Draw(t, "low"), number.Draw(t, "high")
			if s.gap(low, high) {
				for m := range table {
					require.False(t, m > low && m < high, "%d is between %d and %d", m, low, high)
				}
			}
		}
		s.sweep()
		for first, p := range s.pages {
			require.False(t, p.empty(), "page %d", first)
		}
	})
}
