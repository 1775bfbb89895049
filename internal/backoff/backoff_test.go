package backoff_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/penstock-io/penstock/internal/backoff"
)

func steps(p backoff.Policy, n int) []time.Duration {
	out := make([]time.Duration, n)
	for i := range out {
		out[i] = p.Step(i + 1)
	}
	return out
}

func TestStep(t *testing.T) {
	const s = time.Second
	tests := []struct {
		name   string
		policy backoff.Policy
		want   []time.Duration
	}{
		{
			"zero value",
			backoff.Policy{},
			[]time.Duration{s, 2 * s, 4 * s, 8 * s, 16 * s, 32 * s, 60 * s, 60 * s},
		},
		{"ceiling", backoff.Policy{Base: 2 * s, Max: 5 * s}, []time.Duration{2 * s, 4 * s, 5 * s, 5 * s}},
		{"factor", backoff.Policy{Factor: 3}, []time.Duration{s, 3 * s, 9 * s, 27 * s, 60 * s}},
		{"constant", backoff.Policy{Factor: 1}, []time.Duration{s, s, s}},
		{"bad factor", backoff.Policy{Factor: math.NaN()}, []time.Duration{s, 2 * s}},
		{"base above default ceiling", backoff.Policy{Base: 90 * s}, []time.Duration{90 * s, 90 * s}},
		{"base above ceiling", backoff.Policy{Base: 9 * s, Max: s}, []time.Duration{s, s}},
		{
			"fixed",
			backoff.Policy{Steps: []time.Duration{5 * s, 25 * s, 2 * time.Minute}},
			[]time.Duration{5 * s, 25 * s, 2 * time.Minute, 2 * time.Minute},
		},
		{"fixed, negative", backoff.Policy{Steps: []time.Duration{-s}}, []time.Duration{0}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			require.Equal(t, tt.want, steps(tt.policy, len(tt.want)))
		})
	}
}

func TestStepTakesAnyCount(t *testing.T) {
	var p backoff.Policy
	require.Equal(t, time.Second, p.Step(0))
	require.Equal(t, time.Second, p.Step(-5))
	require.Equal(t, time.Minute, p.Step(math.MaxInt))
}

func TestDelayFollowsRand(t *testing.T) {
	const s = time.Second
	at := func(x float64) func() float64 { return func() float64 { return x } }
	full := func(x float64) backoff.Policy {
		return backoff.Policy{Jitter: backoff.Full, Least: 30 * s, Rand: at(x)}
	}
	near := func(x, spread float64) backoff.Policy {
		return backoff.Policy{Jitter: backoff.Proportional, Spread: spread, Rand: at(x)}
	}
	tests := []struct {
		name     string
		policy   backoff.Policy
		failures int
		want     time.Duration
	}{
		{"none", backoff.Policy{Rand: at(0.9)}, 3, 4 * s},
		{"full, low", full(0), 3, 0},
		{"full, high", full(0.75), 3, 3 * s},
		{"full, low at the ceiling", full(0), 7, 30 * s},
		{"full, middle at the ceiling", full(0.5), 7, 45 * s},
		{
			"full, least above the ceiling",
			backoff.Policy{Jitter: backoff.Full, Max: s, Least: 9 * s, Rand: at(0)},
			1, s,
		},
		{"proportional, low", near(0, 0), 1, 800 * time.Millisecond},
		{"proportional, middle", near(0.5, 0), 1, s},
		{"proportional, wide", near(0, 7), 1, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			require.Equal(t, tt.want, tt.policy.Delay(tt.failures))
		})
	}
}

func TestSeededRepeats(t *testing.T) {
	draw := func() (out []time.Duration) {
		b := backoff.Backoff{Policy: backoff.Policy{Jitter: backoff.Full, Rand: backoff.Seeded(7)}}
		for range 10 {
			out = append(out, b.Next())
		}
		return out
	}
	first := draw()
	require.Equal(t, first, draw())
	require.NotEqual(t, first[8], first[9], "the ceiling is not spread")
}

func TestResetStartsOver(t *testing.T) {
	var b backoff.Backoff
	require.Equal(t, time.Second, b.Next())
	require.Equal(t, 2*time.Second, b.Next())
	require.Equal(t, 2, b.Failures())
	b.Reset()
	require.Zero(t, b.Failures())
	require.Equal(t, time.Second, b.Next())
}

func TestDelayStaysInBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := rapid.Int64Range(-1, int64(time.Hour))
		p := backoff.Policy{
			Base:   time.Duration(d.Draw(t, "base")),
			Max:    time.Duration(d.Draw(t, "max")),
			Factor: rapid.Float64Range(-1, 100).Draw(t, "factor"),
			Jitter: rapid.SampledFrom([]backoff.Jitter{backoff.None, backoff.Full}).Draw(t, "jitter"),
			Least:  time.Duration(d.Draw(t, "least")),
			Rand:   backoff.Seeded(rapid.Uint64().Draw(t, "seed")),
		}
		n := rapid.IntRange(-3, 1<<40).Draw(t, "failures")
		step, delay := p.Step(n), p.Delay(n)
		require.LessOrEqual(t, p.Step(n-1), step, "steps shrink")
		require.GreaterOrEqual(t, delay, time.Duration(0))
		require.LessOrEqual(t, delay, step)
		if p.Max > 0 {
			require.LessOrEqual(t, step, p.Max)
		}
	})
}

func ExampleBackoff() {
	b := backoff.Backoff{Policy: backoff.Policy{Base: time.Second, Max: 5 * time.Second}}
	fmt.Println(b.Next(), b.Next(), b.Next(), b.Next())
	b.Reset()
	fmt.Println(b.Next())
	// Output:
	// 1s 2s 4s 5s
	// 1s
}
