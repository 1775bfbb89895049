package integrations_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/penstock-io/penstock/integrations"
)

func TestOutstayingSessionIsClosedAfterItsGrace(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		old := act{retireAt: time.Hour, within: 10 * time.Second, lives: never}
		r := launch(t, newFake(old, steady), func(c *integrations.Config) { c.RetireGrace = 7 * time.Second })
		r.pass(2 * time.Hour)
		require.Equal(t, time.Hour+17*time.Second, r.gate.log()[0].cancel.Sub(r.start))
	})
}

func TestRoomIsMadeByTheOneThatIsNotLive(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		old := act{retireAt: time.Hour, within: 10 * time.Hour, lives: never}
		mute := act{liveAt: never, retireAt: time.Minute, within: time.Hour, lives: never}
		r := launch(t, newFake(old, mute, steady), nil)
		r.pass(time.Hour + time.Minute + 2*time.Second)
		log := r.gate.log()
		require.Len(t, log, 3)
		require.Zero(t, log[0].cancel, "the one that works was ended")
		require.NotZero(t, log[1].cancel)
		require.Equal(t, 2, r.gate.peak())
	})
}

func TestAgeLimitIsSpread(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		begun := map[time.Duration]bool{}
		for range 10 {
			r := launch(t, newFake(steady), func(c *integrations.Config) { c.MaxAge = 10 * time.Hour })
			r.pass(10 * time.Hour)
			begun[r.begun(1)] = true
			r.stop()
		}
		require.Greater(t, len(begun), 5, "sessions that began together end together")
	})
}

func TestPlannedRedialPassesAStorm(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := newPacer(t, integrations.PacerConfig{Rate: 1, Burst: 1})
		withPacer := func(c *integrations.Config) { c.Pacer = p }
		old := act{retireAt: time.Hour, within: 10 * time.Second, lives: never}
		r := launch(t, newFake(old, steady), withPacer)
		r.pass(time.Hour - time.Second)
		storm := make(chan int, 1)
		go func() { storm <- len(queue(p, 100, false, 0)) }()
		r.pass(time.Second)
		require.Equal(t, time.Hour, r.begun(1))
		require.Equal(t, 100, <-storm)
	})
}

func TestResumeForgivesNothingWhileASessionIsOpen(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		bad := failing(integrations.Lost)
		r := launch(t, newFake(bad, bad, bad, steady), nil)
		r.pass(8 * time.Second)
		r.requireState(integrations.StateReady)
		r.Resume()
		synctest.Wait()
		require.Equal(t, 3, r.Status().Failures)
		r.pass(minLife)
		require.Zero(t, r.Status().Failures)
	})
}

func TestReplaceStartsAfresh(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		f := newFake(failing(integrations.Refused))
		slow := steady
		slow.liveAt = time.Minute
		r := launch(t, f, nil)
		r.requireState(integrations.StateParked)
		require.NoError(t, r.Replace(f.successor(slow)))
		synctest.Wait()
		r.requireState(integrations.StateStarting)
	})
}

func TestInstallationThatWasLiveIsDegraded(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		f := newFake(lasting(time.Hour, integrations.Lost), failing(integrations.Lost))
		slow := steady
		slow.liveAt = time.Minute
		r := launch(t, f, nil)
		r.pass(time.Hour)
		require.NoError(t, r.Replace(f.successor(slow)))
		synctest.Wait()
		require.Zero(t, r.Status().Failures)
		r.requireState(integrations.StateDegraded)
	})
}
