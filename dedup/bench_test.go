package dedup_test

import (
	"strconv"
	"testing"

	"github.com/penstock-io/penstock/dedup"
)

// key has the shape that the relay uses.
type key struct{ installation, id string }

func keys(n int) []key {
	ks := make([]key, n)
	for i := range ks {
		ks[i] = key{"bot-1", "msgExample" + strconv.Itoa(i) + "=="}
	}
	return ks
}

// BenchmarkClaimCommit is the life of a new id, in a full window: two calls, one
// id committed and the oldest one forgotten.
func BenchmarkClaimCommit(b *testing.B) {
	for _, size := range []int{1_000, 200_000} {
		b.Run(strconv.Itoa(size), func(b *testing.B) {
			w, err := dedup.New[key](dedup.Config{Max: size})
			if err != nil {
				b.Fatal(err)
			}
			ks := keys(2 * size)
			for _, k := range ks {
				w.Claim(k)
				w.Commit(k)
			}
			b.ReportAllocs()
			b.ResetTimer()
			for i := range b.N {
				k := ks[i%len(ks)]
				w.Claim(k)
				w.Commit(k)
			}
		})
	}
}

func BenchmarkSeen(b *testing.B) {
	const size = 200_000
	w, err := dedup.New[key](dedup.Config{Max: size})
	if err != nil {
		b.Fatal(err)
	}
	ks := keys(size)
	for _, k := range ks {
		w.Claim(k)
		w.Commit(k)
	}
	b.ReportAllocs()
	b.ResetTimer()
	for i := range b.N {
		if w.Claim(ks[i%size]) != dedup.Seen {
			b.Fatal("forgotten")
		}
	}
}
