package backoff

import (
	"math"
	"math/rand/v2"
	"time"
)

// Jitter tells how a wait is spread, so that many callers that failed together
// do not come back together.
type Jitter uint8

// Kinds of jitter.
const (
	None         Jitter = iota // the step itself
	Full                       // anywhere between 0 and the step
	Proportional               // the step, more or less by at most Spread of it
)

// Defaults of a Policy.
const (
	defaultBase   = time.Second
	defaultMax    = time.Minute
	defaultFactor = 2
	defaultSpread = 0.2
)

// Policy is a schedule of waits. The zero value goes from 1 s to 1 min, doubling,
// without jitter. A Policy is never changed by its methods and may be used by any
// number of goroutines if Rand may.
type Policy struct {
	// Base is the first step; 0 means 1 s.
	Base time.Duration
	// Max is the ceiling of the steps; 0 means 1 min, or Base if that is more.
	Max time.Duration
	// Factor is by how much a step is longer than the one before; less than 1
	// means 2, and 1 keeps the steps alike.
	Factor float64
	// Steps, if any, replaces Base, Max and Factor: a fixed schedule whose last
	// step repeats.
	Steps []time.Duration
	// Jitter spreads the steps; the zero value does not.
	Jitter Jitter
	// Spread is the part of a step by which Proportional may miss it; 0 means 0.2,
	// and more than 1 means 1.
	Spread float64
	// Least is the shortest wait of a step that has reached the ceiling. It bounds
	// the long-run rate of Full, which has no other bound; 0 sets none.
	Least time.Duration
	// Rand gives a number in [0,1); nil means math/rand/v2. Tests seed it.
	Rand func() float64
}

// Seeded gives a source for Policy.Rand that repeats itself for a seed. It is not
// safe for concurrent use.
func Seeded(seed uint64) func() float64 {
	return rand.New(rand.NewPCG(seed, seed)).Float64
}

// Step is the wait after failures failures in a row, before jitter. The first
// failure is 1; anything less counts as 1.
func (p Policy) Step(failures int) time.Duration {
	n := max(failures, 1) - 1
	if len(p.Steps) > 0 {
		return max(0, p.Steps[min(n, len(p.Steps)-1)])
	}
	base, ceiling, factor := p.bounds()
	step := float64(base) * math.Pow(factor, float64(n))
	if step >= float64(ceiling) { // also when the power is infinite
		return ceiling
	}
	return time.Duration(step)
}

// Delay is Step with jitter.
func (p Policy) Delay(failures int) time.Duration {
	step := p.Step(failures)
	switch p.Jitter {
	case Full:
		least := p.leastOf(step)
		return least + time.Duration(p.random()*float64(step-least))
	case Proportional:
		spread := p.Spread
		if spread <= 0 {
			spread = defaultSpread
		}
		off := min(spread, 1) * (2*p.random() - 1)
		return max(0, p.leastOf(step), time.Duration(float64(step)*(1+off)))
	default:
		return step
	}
}

// bounds gives Base, Max and Factor with their defaults.
func (p Policy) bounds() (base, ceiling time.Duration, factor float64) {
	base, ceiling, factor = p.Base, p.Max, p.Factor
	if base <= 0 {
		base = defaultBase
	}
	if ceiling <= 0 {
		ceiling = max(defaultMax, base)
	}
	if !(factor >= 1) { // also when it is not a number
		factor = defaultFactor
	}
	return min(base, ceiling), ceiling, factor
}

// leastOf is the shortest wait that a step may become.
func (p Policy) leastOf(step time.Duration) time.Duration {
	if p.Least <= 0 || step < p.ceiling() {
		return 0
	}
	return min(p.Least, step)
}

// ceiling is the last step of the schedule.
func (p Policy) ceiling() time.Duration {
	if n := len(p.Steps); n > 0 {
		return p.Steps[n-1]
	}
	_, ceiling, _ := p.bounds()
	return ceiling
}

func (p Policy) random() float64 {
	if p.Rand == nil {
		return rand.Float64()
	}
	return p.Rand()
}

// Backoff counts failures in a row against a Policy. The zero value is ready for
// use. It is not safe for concurrent use.
type Backoff struct {
	Policy   Policy
	failures int
}

// Next counts one more failure and gives the wait before the next try.
func (b *Backoff) Next() time.Duration {
	if b.failures < math.MaxInt {
		b.failures++
	}
	return b.Policy.Delay(b.failures)
}

// Failures is how often Next was called since the start or the last Reset.
func (b *Backoff) Failures() int { return b.failures }

// Reset forgets the failures. Call it when a try has proved to work, not when it
// has merely begun.
func (b *Backoff) Reset() { b.failures = 0 }
