package integrations_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/penstock-io/penstock/integrations"
	"github.com/penstock-io/penstock/message"
)

// inBubble runs a test on a clock of its own.
func inBubble(t *testing.T, f func(*testing.T)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, f)
}

func TestSupervisorStaysConnected(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		r := launch(t, newFake(steady), nil)
		r.requireState(integrations.StateReady)
		r.pass(100 * time.Hour)
		st := r.Status()
		require.Equal(t, integrations.StateReady, st.State)
		require.Equal(t, r.start, st.Since)
		require.Equal(t, r.start, st.LastFrame)
		require.EqualValues(t, 1, st.Opened)
		require.Equal(t, 1, st.Sessions)
		require.Equal(t, 1, st.Live)
		require.Zero(t, st.NextOpen)
	})
}

func TestStartingUntilLive(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		slow := steady
		slow.liveAt = 6 * time.Second
		r := launch(t, newFake(slow), nil)
		r.pass(5 * time.Second)
		r.requireState(integrations.StateStarting)
		r.pass(2 * time.Second)
		r.requireState(integrations.StateReady)
		require.Len(t, r.gate.log(), 1, "a slow handshake was given up")
	})
}

func TestLostIsRedialledWithinTheFirstStep(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		end := integrations.End{Why: integrations.Lost, Code: "eof", Err: errors.New("link broke")}
		f := newFake(act{retireAt: never, lives: time.Hour, end: end}, steady)
		r := launch(t, f, nil)
		r.pass(time.Hour)
		r.pass(time.Second)
		require.LessOrEqual(t, r.begun(1), time.Hour+time.Second)
		st := r.Status()
		require.Equal(t, integrations.StateReady, st.State)
		require.Equal(t, "link broke", st.LastError)
		require.Equal(t, "eof", st.LastCode)
		require.Equal(t, r.start.Add(time.Hour), st.LastErrorAt)
		require.EqualValues(t, 1, st.Ends[integrations.Lost])
		require.Equal(t, 1, r.gate.peak())
	})
}

func TestLostWaitsAtLeastAfter(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		end := integrations.End{Why: integrations.Lost, After: time.Minute}
		r := launch(t, newFake(act{liveAt: never, retireAt: never, end: end}, steady), nil)
		r.pass(62 * time.Second)
		require.GreaterOrEqual(t, r.begun(1), time.Minute)
	})
}

func TestEveryFailureDoublesTheCeiling(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		r := launch(t, newFake(failing(integrations.Lost)), nil)
		r.pass(time.Hour)
		log := r.gate.log()
		ceiling := time.Second
		for i := 1; i < len(log); i++ {
			gap := log[i].at.Sub(log[i-1].at)
			require.LessOrEqual(t, gap, ceiling, "wait %d", i)
			if ceiling == time.Minute {
				require.GreaterOrEqual(t, gap, 30*time.Second, "wait %d", i)
			}
			ceiling = min(2*ceiling, time.Minute)
		}
		require.Greater(t, len(log), 60)
		r.requireState(integrations.StateDegraded)
		require.Equal(t, r.start, r.Status().Since)
		require.Equal(t, len(log), r.Status().Failures)
		require.True(t, r.Status().NextOpen.After(time.Now()))
	})
}

func TestRefusedAHundredTimesThenAccepted(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		acts := make([]act, 100)
		for i := range acts {
			acts[i] = failing(integrations.Lost)
		}
		r := launch(t, newFake(append(acts, steady)...), nil)
		r.pass(100 * time.Minute)
		require.Len(t, r.gate.log(), 101)
		r.requireState(integrations.StateReady)
	})
}

func TestAcceptThenDropIsNotAStorm(t *testing.T) {
	for _, why := range []integrations.Why{
		integrations.Lost, integrations.Asked, integrations.Stale,
		integrations.Limited, integrations.Stopped, integrations.Why(99),
	} {
		t.Run(why.String(), func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				r := launch(t, newFake(lasting(300*time.Millisecond, why)), func(c *integrations.Config) {
					n := byte(0)
					c.Cursor = func(context.Context) (integrations.Cursor, error) {
						n++ // every session finds another position stale
						return integrations.Cursor{n}, nil
					}
				})
				r.pass(10 * time.Minute)
				require.LessOrEqual(t, len(r.gate.log()), 30)
				require.Greater(t, len(r.gate.log()), 10)
			})
		})
	}
}

func TestEndlessRetireIsNotAStorm(t *testing.T) {
	for name, liveAt := range map[string]time.Duration{"live": 0, "before live": never} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				asks := act{liveAt: liveAt, lives: 10 * time.Second, end: integrations.End{Why: integrations.Asked}}
				r := launch(t, newFake(asks), nil)
				r.pass(10 * time.Minute)
				require.LessOrEqual(t, len(r.gate.log()), 30)
				require.LessOrEqual(t, r.gate.peak(), 2)
			})
		})
	}
}

func TestUsedSessionsAreReplacedAtOnceThoughTheyLivedShort(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		asks := lasting(time.Second, integrations.Asked)
		asks.offers = true
		r := launch(t, newFake(asks), nil)
		r.pass(100 * time.Second)
		require.Len(t, r.gate.log(), 101)
		r.pass(time.Hour)
		require.Less(t, len(r.gate.log()), 600, "it goes on without end")
	})
}

func TestUsedSessionsThatEndAtOnceAreKeptApart(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		asks := lasting(time.Millisecond, integrations.Asked)
		asks.offers = true
		r := launch(t, newFake(asks), nil)
		r.pass(time.Second)
		require.Len(t, r.gate.log(), 11)
	})
}

func TestBackoffRestsOnlyOnASessionThatLived(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		acts := []act{}
		for range 8 {
			acts = append(acts, failing(integrations.Lost))
		}
		silent := act{liveAt: never, retireAt: never, lives: time.Hour}
		short := lasting(29*time.Second, integrations.Lost)
		long := lasting(31*time.Second, integrations.Lost)
		r := launch(t, newFake(append(acts, silent, short, long, steady)...), nil)
		r.pass(3 * time.Hour)
		log := r.gate.log()
		require.Len(t, log, 12)
		require.GreaterOrEqual(t, log[9].at.Sub(log[8].ended), 30*time.Second, "after a silent one")
		require.GreaterOrEqual(t, log[10].at.Sub(log[9].ended), 30*time.Second, "after a short one")
		require.LessOrEqual(t, log[11].at.Sub(log[10].ended), time.Second, "after a good one")
		require.Zero(t, r.Status().Failures)
	})
}

func TestRetireOverlaps(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		old := act{
			retireAt: time.Hour, within: 10 * time.Second, lives: time.Hour + 10*time.Second,
			end: integrations.End{Why: integrations.Asked},
		}
		r := launch(t, newFake(old, steady), nil)
		r.pass(time.Hour)
		require.Equal(t, time.Hour, r.begun(1), "the successor waited")
		require.Len(t, r.gate.alive(), 2)
		r.requireState(integrations.StateReady)
		r.pass(10 * time.Second)
		require.Zero(t, r.gate.log()[0].cancel, "the old session was cut short")
		require.Len(t, r.gate.alive(), 1)
		st := r.Status()
		require.Equal(t, integrations.StateReady, st.State)
		require.Equal(t, r.start, st.Since, "a planned redial is not a change of state")
		require.EqualValues(t, 1, st.Ends[integrations.Asked])
		require.Empty(t, st.LastError)
	})
}

func TestFirstEarlyRetireIsServedAtOnce(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		early := act{retireAt: time.Second, within: 10 * time.Second, lives: 11 * time.Second}
		r := launch(t, newFake(early, steady), nil)
		r.pass(time.Second)
		require.Equal(t, time.Second, r.begun(1))
	})
}

func TestAskedEndIsRedialledAtOnce(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		r := launch(t, newFake(lasting(time.Hour, integrations.Asked), steady), nil)
		r.pass(time.Hour)
		require.Equal(t, time.Hour, r.begun(1))
		require.Equal(t, 1, r.gate.peak())
	})
}

func TestFailingSuccessorLeavesTheOldOneAlone(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		old := act{retireAt: time.Hour, within: time.Second, lives: 2 * time.Hour}
		bad := failing(integrations.Lost)
		r := launch(t, newFake(old, bad, bad, bad, bad, steady), nil)
		r.pass(time.Hour)
		r.requireState(integrations.StateDegraded)
		require.Equal(t, 1, r.Status().Live)
		r.pass(15 * time.Second)
		require.Len(t, r.gate.log(), 6)
		require.LessOrEqual(t, r.gate.peak(), 2)
		r.requireState(integrations.StateReady)
		r.pass(time.Minute)
		require.NotZero(t, r.gate.log()[0].cancel, "the old one outstayed its end and its grace")
	})
}

func TestOutstayingSessionWaitsForALiveSuccessor(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		old := act{retireAt: time.Minute, within: 10 * time.Second, lives: never}
		slow := steady
		slow.liveAt = time.Hour
		r := launch(t, newFake(old, slow), nil)
		r.pass(time.Hour)
		require.Len(t, r.gate.alive(), 2)
		r.pass(2 * time.Minute)
		log := r.gate.log()
		require.Equal(t, time.Hour+time.Minute, log[0].cancel.Sub(r.start))
	})
}

func TestSuccessorThatIsAskedTooGetsRoom(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		lingering := act{retireAt: time.Minute, within: time.Hour, lives: never, grace: 3 * time.Second}
		r := launch(t, newFake(lingering, lingering, steady), nil)
		r.pass(2*time.Minute + 2*time.Second)
		log := r.gate.log()
		require.Len(t, log, 2)
		require.Equal(t, 2*time.Minute, log[0].cancel.Sub(r.start), "the oldest makes room")
		r.pass(time.Second)
		require.Equal(t, 2*time.Minute+3*time.Second, r.begun(2))
		require.Equal(t, 2, r.gate.peak())
	})
}

func TestExclusivePlatformNeverOverlaps(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		old := act{retireAt: time.Hour, within: time.Minute, lives: never, grace: 2 * time.Second}
		f := newFake(old, steady)
		f.profile.MaxSessions = 1
		r := launch(t, f, nil)
		r.pass(time.Hour + 2*time.Second)
		require.Equal(t, time.Hour+2*time.Second, r.begun(1))
		require.Equal(t, 1, r.gate.peak())
		next := newFake(steady)
		next.gate, next.profile = f.gate, f.profile
		require.NoError(t, r.Replace(next))
		synctest.Wait()
		require.Len(t, r.gate.log(), 3)
		require.Equal(t, 1, r.gate.peak())
	})
}

func TestLimitedWaitsAsTold(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		limited := failing(integrations.Limited)
		limited.end.After = 17 * time.Second
		r := launch(t, newFake(limited, limited, steady), nil)
		r.pass(17*time.Second - 1)
		require.Len(t, r.gate.log(), 1)
		r.pass(time.Second + 1)
		require.Len(t, r.gate.log(), 2)
		r.pass(19 * time.Second)
		log := r.gate.log()
		require.Len(t, log, 3)
		require.GreaterOrEqual(t, log[2].at.Sub(log[1].at), 17*time.Second)
	})
}

func TestRefusedIsParkedAndProbed(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		refused := failing(integrations.Refused)
		refused.end.Code, refused.end.Err = "auth_failed", errors.New("wrong secret")
		r := launch(t, newFake(refused, refused, steady), nil)
		r.requireState(integrations.StateParked)
		r.pass(5*time.Minute - 1)
		require.Len(t, r.gate.log(), 1)
		r.pass(time.Minute + 1)
		require.Len(t, r.gate.log(), 2)
		st := r.Status()
		require.Equal(t, integrations.StateParked, st.State)
		require.Equal(t, r.start, st.Since)
		require.Equal(t, "auth_failed", st.LastCode)
		require.Equal(t, "wrong secret", st.LastError)
		r.pass(6 * time.Minute)
		r.requireState(integrations.StateReady)
	})
}

func TestResumeProbesAtOnce(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		r := launch(t, newFake(failing(integrations.Refused), steady), nil)
		r.pass(time.Second)
		r.Resume()
		synctest.Wait()
		r.requireState(integrations.StateReady)
		r.Resume() // nothing is needed any more
		r.pass(time.Hour)
		require.Len(t, r.gate.log(), 2)
	})
}

func TestDisplacedDoesNotFight(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		r := launch(t, newFake(lasting(time.Hour, integrations.Displaced), steady), nil)
		r.pass(1000 * time.Hour)
		r.requireState(integrations.StateDisplaced)
		require.Len(t, r.gate.log(), 1)
		require.Zero(t, r.Status().NextOpen)
		r.Resume()
		synctest.Wait()
		r.requireState(integrations.StateReady)
	})
}

func TestRetiringSessionThatOurSuccessorDisplacesIsNotAFight(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		old := act{retireAt: time.Hour, lives: time.Hour + 1, end: integrations.End{Why: integrations.Displaced}}
		r := launch(t, newFake(old, steady), nil)
		r.pass(2 * time.Hour)
		r.requireState(integrations.StateReady)
	})
}

func TestStaleStartsWithoutTheCursor(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var cursor atomic.Value
		cursor.Store(integrations.Cursor("seq-7"))
		f := newFake(lasting(time.Hour, integrations.Stale), lasting(time.Hour, integrations.Lost), steady)
		r := launch(t, f, func(c *integrations.Config) {
			c.Cursor = func(context.Context) (integrations.Cursor, error) {
				return cursor.Load().(integrations.Cursor), nil
			}
		})
		r.pass(time.Hour)
		require.Equal(t, time.Hour, r.begun(1))
		cursor.Store(integrations.Cursor("seq-9"))
		r.pass(time.Hour + time.Second)
		log := r.gate.log()
		require.Equal(t, integrations.Cursor("seq-7"), log[0].from)
		require.Nil(t, log[1].from)
		require.Equal(t, integrations.Cursor("seq-9"), log[2].from)
	})
}

func TestUnreadableCursorIsALostSession(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var works atomic.Bool
		r := launch(t, newFake(steady), func(c *integrations.Config) {
			c.Cursor = func(context.Context) (integrations.Cursor, error) {
				if !works.Load() {
					return nil, errors.New("disk is gone")
				}
				return nil, nil
			}
		})
		r.requireState(integrations.StateDegraded)
		require.Equal(t, "cursor_failed", r.Status().LastCode)
		works.Store(true)
		r.pass(time.Second)
		r.requireState(integrations.StateReady)
	})
}

func TestPanicIsALostSession(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var m map[string]int
		bug := func() (v any) {
			defer func() { v = recover() }()
			m["x"] = 1
			return nil
		}()
		r := launch(t, newFake(act{panics: "hunter2"}, act{panics: bug}, steady), nil)
		st := r.Status()
		require.Equal(t, "panic", st.LastCode)
		require.Equal(t, "connector panicked with a string", st.LastError)
		r.pass(3 * time.Second)
		require.Contains(t, r.Status().LastError, "assignment to entry in nil map")
		r.requireState(integrations.StateReady)
	})
}

func TestMaxAgeReplacesWithoutAGap(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		slow := steady
		slow.liveAt = 20 * time.Second
		r := launch(t, newFake(steady, slow), func(c *integrations.Config) { c.MaxAge = 10 * time.Hour })
		r.pass(10 * time.Hour)
		begun := r.begun(1)
		require.GreaterOrEqual(t, begun, 9*time.Hour)
		require.LessOrEqual(t, begun, 10*time.Hour)
		r.pass(20 * time.Second)
		log := r.gate.log()
		require.Equal(t, begun+20*time.Second, log[0].cancel.Sub(r.start))
		require.Equal(t, r.start, r.Status().Since)
	})
}

func TestOfferReachesTheSinkAndCountsAsAFrame(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		closed := errors.New("closed")
		var got []message.Delivery
		r := launch(t, newFake(steady), func(c *integrations.Config) {
			c.Sink = func(_ context.Context, d message.Delivery) error {
				got = append(got, d)
				return closed
			}
		})
		r.pass(time.Hour)
		d := message.Delivery{Defect: "not JSON"}
		require.ErrorIs(t, r.gate.log()[0].in.Offer(context.Background(), d), closed)
		require.Equal(t, []message.Delivery{d}, got)
		require.Equal(t, r.start.Add(time.Hour), r.Status().LastFrame)
	})
}

func TestSessionThatIsOverIsHarmless(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		r := launch(t, newFake(failing(integrations.Refused)), nil)
		before := r.Status()
		in := r.gate.log()[0].in
		in.Live()
		in.Retire(time.Second)
		integrations.Opened(in)
		err := in.Offer(context.Background(), message.Delivery{})
		require.ErrorIs(t, err, integrations.ErrSessionOver)
		r.pass(time.Second)
		require.Equal(t, before, r.Status())
		require.Len(t, r.gate.log(), 1)
	})
}
