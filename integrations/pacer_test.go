package integrations_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/penstock-io/penstock/integrations"
)

func newPacer(t *testing.T, cfg integrations.PacerConfig) *integrations.Pacer {
	t.Helper()
	p, err := integrations.NewPacer(cfg)
	require.NoError(t, err)
	return p
}

// queue lets n callers wait for a turn that each holds for a while, and gives
// when they got it, once all did.
func queue(p *integrations.Pacer, n int, urgent bool, hold time.Duration) []time.Duration {
	start := time.Now()
	var mu sync.Mutex
	var at []time.Duration
	var wg sync.WaitGroup
	for range n {
		wg.Go(func() {
			done, err := p.Wait(context.Background(), urgent)
			if err != nil {
				return // shows as a missing time
			}
			mu.Lock()
			at = append(at, time.Since(start))
			mu.Unlock()
			<-time.After(hold)
			done()
			done()
		})
	}
	wg.Wait()
	return at
}

func TestPacerSpreadsAMassRedial(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := newPacer(t, integrations.PacerConfig{})
		at := queue(p, 2000, false, 100*time.Millisecond)
		require.Len(t, at, 2000)
		for i := range at {
			later, _ := slices.BinarySearch(at, at[i]+time.Second)
			require.LessOrEqual(t, later-i, 101, "a second has the rate and the burst at most")
		}
		require.InDelta(t, 39, at[1999].Seconds(), 1.5)
		waiting, inFlight := p.Load()
		require.Zero(t, waiting)
		require.Zero(t, inFlight)
	})
}

func TestPacerBoundsWhatIsUnderWay(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := newPacer(t, integrations.PacerConfig{InFlight: 4, Hold: time.Minute})
		at := queue(p, 12, false, 10*time.Second)
		require.Equal(t, []time.Duration{0, 0, 0, 0}, at[:4])
		require.Equal(t, 10*time.Second, at[4])
		require.Equal(t, 20*time.Second, at[11])
	})
}

func TestPacerDoesNotWaitForSilentGateways(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := newPacer(t, integrations.PacerConfig{InFlight: 4, Hold: 2 * time.Second})
		at := queue(p, 8, false, time.Hour)
		require.Equal(t, 2*time.Second, at[7])
	})
}

func TestPacerLetsPlannedRedialsFirst(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := newPacer(t, integrations.PacerConfig{})
		var storm []time.Duration
		var wg sync.WaitGroup
		wg.Go(func() { storm = queue(p, 2000, false, 5*time.Second) })
		<-time.After(time.Second)
		planned := queue(p, 50, true, 5*time.Second)
		require.Equal(t, time.Duration(0), planned[49]-planned[0])
		wg.Wait()
		require.Len(t, storm, 2000)
	})
}

func TestPacerSpreadsPlannedRedialsToo(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := newPacer(t, integrations.PacerConfig{})
		at := queue(p, 2000, true, time.Second)
		require.InDelta(t, 7.8, at[1999].Seconds(), 0.2, "within the ten seconds of a notice")
		require.Greater(t, at[1000], 3*time.Second)
	})
}

func TestPacerWaitObeysTheContext(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := newPacer(t, integrations.PacerConfig{InFlight: 1, Hold: time.Hour})
		done, err := p.Wait(t.Context(), false)
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err = p.Wait(ctx, false)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		waiting, inFlight := p.Load()
		require.Zero(t, waiting)
		require.Equal(t, 1, inFlight)
		done()
		done()
		_, inFlight = p.Load()
		require.Zero(t, inFlight)
	})
}

// TestPacerLosesNoTurn cancels callers at the instant in which their turn comes.
func TestPacerLosesNoTurn(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := newPacer(t, integrations.PacerConfig{Rate: 1, Burst: 1})
		var wg sync.WaitGroup
		for i := range 100 {
			wg.Go(func() {
				after := time.Duration(i/3) * time.Second
				ctx, cancel := context.WithTimeout(context.Background(), after)
				defer cancel()
				if done, err := p.Wait(ctx, i%2 == 0); err == nil {
					done()
				}
			})
		}
		wg.Wait()
		synctest.Wait()
		waiting, inFlight := p.Load()
		require.Zero(t, waiting)
		require.Zero(t, inFlight)
	})
}

func TestNilPacerLetsEverybodyPass(t *testing.T) {
	t.Parallel()
	var p *integrations.Pacer
	done, err := p.Wait(t.Context(), false)
	require.NoError(t, err)
	done()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = p.Wait(ctx, true)
	require.ErrorIs(t, err, context.Canceled)
	waiting, inFlight := p.Load()
	require.Zero(t, waiting+inFlight)
}

func TestSupervisorsShareAPacer(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := newPacer(t, integrations.PacerConfig{Rate: 10, Burst: 1})
		gate := &gateway{}
		var rigs []*rig
		for range 50 {
			f := &fake{gate: gate, acts: []act{lasting(time.Hour, integrations.Asked), steady}}
			rigs = append(rigs, launch(t, f, func(c *integrations.Config) { c.Pacer = p }))
		}
		rigs[0].pass(10 * time.Second)
		log := gate.log()
		require.Len(t, log, 50)
		for i := 1; i < 50; i++ {
			require.GreaterOrEqual(t, log[i].at.Sub(log[i-1].at), 99*time.Millisecond)
		}
		for _, r := range rigs {
			r.stop()
		}
	})
}

func TestSupervisorStopsWhileItWaitsForItsTurn(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := newPacer(t, integrations.PacerConfig{InFlight: 1, Hold: time.Hour})
		_, err := p.Wait(t.Context(), false)
		require.NoError(t, err)
		r := launch(t, newFake(steady), func(c *integrations.Config) { c.Pacer = p })
		r.pass(time.Minute)
		r.requireState(integrations.StateStarting)
		require.Empty(t, r.gate.log())
		r.stop()
		waiting, _ := p.Load()
		require.Zero(t, waiting)
	})
}

func TestOpenedGivesTheTurnBack(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := newPacer(t, integrations.PacerConfig{Hold: time.Hour})
		silent := act{liveAt: time.Minute, retireAt: never, lives: never}
		r := launch(t, newFake(silent), func(c *integrations.Config) { c.Pacer = p })
		_, inFlight := p.Load()
		require.Equal(t, 1, inFlight)
		integrations.Opened(r.gate.log()[0].in)
		_, inFlight = p.Load()
		require.Zero(t, inFlight)
		r.requireState(integrations.StateStarting)
		r.pass(time.Minute)
		r.requireState(integrations.StateReady)
	})
}
