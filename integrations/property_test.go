package integrations_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/penstock-io/penstock/integrations"
)

const minLife = 30 * time.Second

// times draws moments that lie before, on and behind the limits of the policy.
func times(t *rapid.T, label string) time.Duration {
	return rapid.OneOf(
		rapid.Just(time.Duration(0)),
		rapid.Just(minLife),
		rapid.Map(rapid.Int64Range(0, int64(2*time.Minute)), func(n int64) time.Duration {
			return time.Duration(n)
		}),
	).Draw(t, label)
}

// anyAct draws a session that ends by itself.
func anyAct(t *rapid.T) act {
	a := act{
		liveAt:   times(t, "live"),
		retireAt: times(t, "retire"),
		within:   times(t, "within"),
		lives:    times(t, "lives"),
		grace:    times(t, "grace") / 20,
	}
	if rapid.Bool().Draw(t, "quiet") {
		a.retireAt = never
	}
	if rapid.IntRange(0, 9).Draw(t, "outstays") == 0 {
		a.lives = never
		a.retireAt = times(t, "retire at last")
	}
	a.end.Why = integrations.Why(rapid.IntRange(0, int(integrations.Refused)).Draw(t, "why"))
	if a.end.Why == integrations.Displaced {
		a.end.Why = integrations.Lost // nothing follows it, and it has tests of its own
	}
	if rapid.Bool().Draw(t, "told") {
		a.end.After = times(t, "after")
	}
	return a
}

// earned tells whether a session that has ended proved that connecting works,
// before it asked for a successor.
func (o opening) earned(a act) bool {
	life := min(o.ended.Sub(o.at), a.retireAt)
	return a.liveAt <= min(a.lives, life) && life >= minLife
}

// TestAnyScript plays random sessions and then a steady one.
func TestAnyScript(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		acts := rapid.SliceOfN(rapid.Custom(anyAct), 1, 40).Draw(rt, "acts")
		f := newFake(append(acts, steady)...)
		if rapid.Bool().Draw(rt, "exclusive") {
			f.profile.MaxSessions = 1
		}
		var st integrations.Status
		var alive []opening
		synctest.Test(t, func(t *testing.T) {
			r := launch(t, f, nil)
			r.pass(12 * time.Hour)
			st, alive = r.Status(), r.gate.alive()
			r.stop()
		})
		log := f.gate.log()
		require.Equal(rt, integrations.StateReady, st.State)
		require.Len(rt, alive, 1)
		require.Equal(rt, log[len(log)-1].at, alive[0].at)
		require.Greater(rt, len(log), len(acts), "the steady one was not reached")
		require.LessOrEqual(rt, f.gate.peak(), 2-f.profile.MaxSessions)
		requireNoStorm(rt, log, acts)
	})
}

// requireNoStorm checks that sessions which prove nothing get ever rarer.
func requireNoStorm(t *rapid.T, log []opening, acts []act) {
	unproved := 0
	for i := range acts {
		if log[i].earned(acts[i]) {
			unproved = 0
			continue
		}
		if unproved++; unproved > 7 {
			gap := log[i+1].at.Sub(log[i].at)
			require.GreaterOrEqual(t, gap, minLife, "after %d that proved nothing", unproved)
		}
	}
}
