package integrations_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/penstock-io/penstock/integrations"
)

// successor is a fake on the same gateway, with other credentials say.
func (f *fake) successor(acts ...act) *fake {
	return &fake{gate: f.gate, profile: f.profile, acts: acts}
}

func TestReplaceLeavesTheOldSessionOnceTheNewIsLive(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		f := newFake(steady)
		slow := steady
		slow.liveAt = 20 * time.Second
		next := f.successor(slow)
		r := launch(t, f, nil)
		r.pass(time.Hour)
		require.NoError(t, r.Replace(next))
		r.pass(19 * time.Second)
		require.Len(t, r.gate.alive(), 2)
		r.pass(time.Second)
		log := r.gate.log()
		require.Equal(t, time.Hour+20*time.Second, log[0].cancel.Sub(r.start))
		require.Same(t, next, log[1].conn)
		require.Len(t, log, 2)
		require.Equal(t, r.start, r.Status().Since, "the installation stayed connected")
	})
}

func TestReplaceKeepsWhatWorksWhenTheNewIsRefused(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		f := newFake(lasting(2*time.Hour, integrations.Lost))
		r := launch(t, f, nil)
		r.pass(time.Hour)
		require.NoError(t, r.Replace(f.successor(failing(integrations.Refused))))
		synctest.Wait()
		r.requireState(integrations.StateDegraded)
		require.Len(t, r.gate.alive(), 1)
		r.pass(time.Hour)
		r.requireState(integrations.StateParked)
		require.NoError(t, r.Replace(f.successor(steady)))
		synctest.Wait()
		r.requireState(integrations.StateReady)
	})
}

func TestReplaceEndsASessionThatIsNotLive(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		f := newFake(act{liveAt: never, retireAt: never, lives: never})
		slow := steady
		slow.liveAt = time.Minute
		r := launch(t, f, nil)
		require.NoError(t, r.Replace(f.successor(slow)))
		synctest.Wait()
		log := r.gate.log()
		require.Equal(t, r.start, log[0].cancel)
		require.Equal(t, r.start, log[1].at)
	})
}

func TestReplaceEndsAWait(t *testing.T) {
	for _, why := range []integrations.Why{integrations.Refused, integrations.Displaced} {
		t.Run(why.String(), func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				f := newFake(failing(why))
				r := launch(t, f, nil)
				r.pass(time.Minute)
				require.NoError(t, r.Replace(f.successor(steady)))
				synctest.Wait()
				require.Equal(t, time.Minute, r.begun(1))
				r.requireState(integrations.StateReady)
				require.Zero(t, r.Status().Failures)
			})
		})
	}
}

func TestReplaceInTheMiddleOfAnOverlap(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		f := newFake(act{retireAt: time.Hour, within: time.Hour, lives: never}, steady)
		r := launch(t, f, nil)
		r.pass(time.Hour + time.Minute)
		require.Len(t, r.gate.alive(), 2)
		require.NoError(t, r.Replace(f.successor(steady)))
		synctest.Wait()
		require.Equal(t, 2, r.gate.peak())
		require.Len(t, r.gate.log(), 3)
		require.Len(t, r.gate.alive(), 1)
	})
}

func TestReplaceRefusesNil(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		r := launch(t, newFake(steady), nil)
		require.ErrorIs(t, r.Replace(nil), integrations.ErrConnector)
		r.pass(time.Hour)
		require.Len(t, r.gate.log(), 1)
	})
}

func TestReplaceBeforeRun(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		f := newFake(steady)
		next := f.successor(steady)
		next.profile.Platform = "slack"
		r := launch(t, f, nil)
		r.stop()
		require.NoError(t, r.Replace(next))
		require.Equal(t, "slack", string(r.Status().Platform))
		stop := r.again()
		require.Same(t, next, r.gate.log()[1].conn)
		require.Equal(t, "slack", string(r.Status().Platform))
		stop()
	})
}
