package integrations_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/penstock-io/penstock/integrations"
	"github.com/penstock-io/penstock/message"
)

// again runs the supervisor of a rig that was stopped once more.
func (r *rig) again() (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- r.Run(ctx) }()
	synctest.Wait()
	return func() {
		cancel()
		require.NoError(r.t, <-done)
	}
}

func TestRunWaitsForItsSessions(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		owing := act{retireAt: time.Hour, within: time.Hour, lives: never, grace: 3 * time.Second}
		r := launch(t, newFake(owing), nil)
		r.pass(time.Hour)
		require.Len(t, r.gate.alive(), 2)
		begun := time.Now()
		r.stop()
		require.Equal(t, 3*time.Second, time.Since(begun))
		require.Empty(t, r.gate.alive())
		st := r.Status()
		require.Equal(t, integrations.StateStopped, st.State)
		require.Zero(t, st.Sessions)
		require.Zero(t, st.Live)
		require.EqualValues(t, 2, st.Ends[integrations.Stopped])
		require.Empty(t, st.LastError, "a stop is not an error")
	})
}

func TestRunStopsWhileItWaits(t *testing.T) {
	for _, why := range []integrations.Why{
		integrations.Lost, integrations.Refused, integrations.Displaced,
	} {
		t.Run(why.String(), func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				r := launch(t, newFake(failing(why)), nil)
				begun := time.Now()
				r.stop()
				require.Zero(t, time.Since(begun))
				require.Zero(t, r.Status().NextOpen)
			})
		})
	}
}

func TestRunIsRefusedWhileItRunsAndAllowedAfterwards(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		r := launch(t, newFake(steady), nil)
		require.ErrorIs(t, r.Run(context.Background()), integrations.ErrRunning)
		r.stop()
		stop := r.again()
		r.requireState(integrations.StateReady)
		require.EqualValues(t, 2, r.Status().Opened, "counters go on")
		stop()
	})
}

func TestRunWithAContextThatIsDone(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		r := launch(t, newFake(steady), nil)
		r.stop()
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		require.NoError(t, r.Run(ctx))
		require.Len(t, r.gate.log(), 1)
		r.requireState(integrations.StateStopped)
	})
}

func TestStatesAreToldInOrder(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var mu sync.Mutex
		var got []integrations.State
		slow := lasting(time.Hour, integrations.Lost)
		slow.liveAt = time.Second
		f := newFake(slow, failing(integrations.Refused), lasting(time.Hour, integrations.Displaced))
		r := launch(t, f, func(c *integrations.Config) {
			c.OnState = func(st integrations.Status) {
				mu.Lock()
				defer mu.Unlock()
				got = append(got, st.State)
			}
		})
		r.pass(10 * time.Hour)
		require.Equal(t, integrations.StateDisplaced, r.Status().State)
		r.stop()
		require.Equal(t, []integrations.State{
			integrations.StateStarting, integrations.StateReady, integrations.StateDegraded,
			integrations.StateParked, integrations.StateReady, integrations.StateDisplaced,
			integrations.StateStopped,
		}, got)
	})
}

func TestHookMayCallBack(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var s *integrations.Supervisor
		f := newFake(failing(integrations.Displaced), steady)
		s, err := integrations.NewSupervisor(integrations.Config{
			Connector: f,
			Sink:      func(context.Context, message.Delivery) error { return nil },
			OnState: func(st integrations.Status) {
				if st.State == integrations.StateDisplaced && s.Status().State == st.State {
					s.Resume()
				}
			},
		})
		require.NoError(t, err)
		r := &rig{Supervisor: s, t: t, gate: f.gate}
		stop := r.again()
		r.requireState(integrations.StateReady)
		stop()
	})
}

// TestRunUnderStress calls everything at once, for the race detector.
func TestRunUnderStress(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		f := newFake(
			lasting(time.Second, integrations.Lost), lasting(time.Second, integrations.Asked),
			failing(integrations.Refused), act{retireAt: time.Second, lives: never},
		)
		r := launch(t, f, nil)
		r.stop()
		for range 20 {
			stop := r.again()
			var wg sync.WaitGroup
			for range 4 {
				wg.Go(func() {
					for range 10 {
						r.Status()
						r.Resume()
						if err := r.Replace(f.successor(f.acts...)); err != nil {
							t.Error(err)
						}
						<-time.After(300 * time.Millisecond)
					}
				})
			}
			<-time.After(time.Second)
			stop()
			wg.Wait()
			require.Empty(t, r.gate.alive())
		}
		require.LessOrEqual(t, r.gate.peak(), 2)
	})
}

func TestNothingRunsBeforeRun(t *testing.T) {
	f := newFake(steady)
	s, err := integrations.NewSupervisor(integrations.Config{
		Installation: "support",
		Connector:    f,
		Sink:         func(context.Context, message.Delivery) error { return nil },
	})
	require.NoError(t, err)
	require.Equal(t, integrations.StateStopped, s.Status().State)
	require.Equal(t, message.InstallationID("support"), s.Status().Installation)
	s.Resume()
	require.Empty(t, f.gate.log())
}

func ExampleSupervisor() {
	connected := make(chan struct{})
	s, err := integrations.NewSupervisor(integrations.Config{
		Installation: "support",
		Connector:    newFake(steady), // a platform's connector
		Sink:         func(context.Context, message.Delivery) error { return nil },
		OnState: func(st integrations.Status) {
			fmt.Println(st.Installation, "is", st.State)
			if st.State == integrations.StateReady {
				close(connected)
			}
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- s.Run(ctx) }()
	<-connected
	stop()
	fmt.Println(<-done)
	// Unordered output:
	// support is starting
	// support is ready
	// support is stopped
	// <nil>
}
