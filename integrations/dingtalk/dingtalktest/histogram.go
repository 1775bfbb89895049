package dingtalktest

import (
	"math"
	"math/bits"
	"time"
)

// subBits is how finely a power of two is divided: 32 steps, an error of 3 %.
const subBits = 5

// histogram counts durations in steps that grow with them.
type histogram struct {
	counts [(65 - subBits) << subBits]int
	total  int
	max    time.Duration
}

func (h *histogram) add(d time.Duration) {
	d = max(d, 0)
	h.counts[step(uint64(d))]++
	h.total++
	h.max = max(h.max, d)
}

// step is the index of a value's step.
func step(v uint64) int {
	if v < 1<<subBits {
		return int(v)
	}
	shift := bits.Len64(v) - subBits - 1
	return (shift+1)<<subBits | int(v>>shift)&(1<<subBits-1)
}

// top is the largest value of a step.
func top(i int) uint64 {
	if i < 1<<subBits {
		return uint64(i)
	}
	shift := i>>subBits - 1
	return (uint64(1<<subBits|i&(1<<subBits-1))+1)<<shift - 1
}

// quantile is a bound that the share q of all durations does not exceed; 0 when
// there are none.
func (h *histogram) quantile(q float64) time.Duration {
	want := int(math.Ceil(q * float64(h.total)))
	seen := 0
	for i, n := range h.counts {
		if seen += n; seen >= want && seen > 0 {
			return min(time.Duration(top(i)), h.max)
		}
	}
	return h.max
}
