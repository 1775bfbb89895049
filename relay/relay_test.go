package relay_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/penstock-io/penstock/message"
	"github.com/penstock-io/penstock/relay"
	"github.com/penstock-io/penstock/router"
	"github.com/penstock-io/penstock/store"
	"github.com/penstock-io/penstock/store/memory"
)

func TestAckComesAfterCommitAndBeforeHandler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		block := make(chan struct{})
		h := &recorder{handle: func(context.Context, *message.Inbound) (router.Result, error) {
			<-block
			return router.Result{}, nil
		}}
		k := newKit(t, relay.Config{Handler: h})
		release := k.store.stall()
		a := k.offer("m1", "c1")
		synctest.Wait()
		require.Empty(t, a.got(), "acknowledged before the commit")
		release()
		synctest.Wait()
		require.Equal(t, []message.Verdict{message.Accept}, a.got())
		require.Equal(t, []string{"m1"}, h.got())
		close(block)
		k.stop(time.Second)
		require.EqualValues(t, 1, k.relay.Stats().Done)
	})
}

func TestFailedAppendIsNotAcknowledgedAndMayComeAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &recorder{}
		k := newKit(t, relay.Config{Handler: h})
		k.store.failOn(func(op store.Op) bool { _, ok := op.(*store.Append); return ok })
		a := k.offer("m1", "c1")
		synctest.Wait()
		require.Equal(t, []message.Verdict{message.Retry}, a.got())
		require.ErrorIs(t, k.lane.Trouble(), errDisk)
		k.store.failOn(nil)
		again := k.offer("m1", "c1")
		synctest.Wait()
		require.Equal(t, []message.Verdict{message.Accept}, again.got())
		require.NoError(t, k.lane.Trouble())
		require.Equal(t, []string{"m1"}, h.got())
		k.stop(time.Second)
		require.EqualValues(t, 1, k.relay.Stats().Refused["store_failed"])
	})
}

func TestCopyWaitsForTheFirst(t *testing.T) {
	for name, fails := range map[string]bool{"committed": false, "failed": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := &recorder{}
				k := newKit(t, relay.Config{Handler: h})
				release := k.store.stall()
				if fails {
					k.store.failOn(func(store.Op) bool { return true })
				}
				first, second := k.offer("m1", "c1"), k.offer("m1", "c1")
				synctest.Wait()
				require.Empty(t, second.got(), "acknowledged while the first was not durable")
				release()
				synctest.Wait()
				want := []message.Verdict{message.Accept}
				if fails {
					want = []message.Verdict{message.Retry}
				}
				require.Equal(t, want, first.got())
				require.Equal(t, want, second.got())
				k.store.failOn(nil)
				k.stop(time.Second)
				require.Equal(t, !fails, slices.Equal(h.got(), []string{"m1"}))
			})
		})
	}
}

func TestDuplicateIsAcknowledgedAndNotHandled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &recorder{}
		// A front that forgets at once: the store is the authority.
		k := newKit(t, relay.Config{Handler: h, DedupIDs: 1})
		for _, id := range []string{"m1", "m2", "m1", "m1"} {
			a := k.offer(id, "c1")
			synctest.Wait()
			require.Equal(t, []message.Verdict{message.Accept}, a.got(), id)
		}
		k.stop(time.Second)
		require.Equal(t, []string{"m1", "m2"}, h.got())
		require.EqualValues(t, 2, k.relay.Stats().Duplicates)
	})
}

func TestMessageWithoutIDIsNeverADuplicate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &recorder{}
		k := newKit(t, relay.Config{Handler: h})
		k.offer("", "c1")
		k.offer("", "c1")
		synctest.Wait()
		require.Len(t, h.got(), 2)
		k.stop(time.Second)
	})
}

func TestFullQueuesKeepOrderAndLoseNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &recorder{handle: func(context.Context, *message.Inbound) (router.Result, error) {
			<-time.After(time.Second)
			return router.Result{}, nil
		}}
		k := newKit(t, relay.Config{
			Handler: h, Inbound: relay.Queue{Workers: 2, PerKey: 2, Pending: 5},
		})
		const conversations, each = 7, 40
		for n := range each {
			for c := range conversations {
				a := k.offer(fmt.Sprintf("%d/%d", c, n), fmt.Sprint(c))
				synctest.Wait()
				require.Equal(t, []message.Verdict{message.Accept}, a.got())
			}
		}
		require.Positive(t, k.relay.Stats().Spilled)
		pass(conversations * each * time.Second)
		require.Len(t, h.got(), conversations*each)
		next := map[string]int{}
		for _, id := range h.got() {
			c, n, _ := strings.Cut(id, "/")
			require.Equal(t, fmt.Sprint(next[c]), n, "conversation %s", c)
			next[c]++
		}
		require.Zero(t, k.relay.Stats().Spilled)
		k.stop(time.Second)
	})
}

func TestRetryHoldsItsConversationOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &recorder{handle: func(_ context.Context, m *message.Inbound) (router.Result, error) {
			if m.ID == "bad" && m.Attempt < 3 {
				return router.Result{}, errors.New("not now")
			}
			return router.Result{}, nil
		}}
		k := newKit(t, relay.Config{Handler: h})
		k.offer("bad", "c1")
		k.offer("after", "c1")
		k.offer("other", "c2")
		synctest.Wait()
		require.ElementsMatch(t, []string{"bad", "other"}, h.got())
		pass(10 * time.Second)
		require.Equal(t, []string{"bad", "bad", "after"}, h.got()[len(h.got())-3:])
		k.stop(time.Second)
		require.EqualValues(t, 2, k.relay.Stats().Retries)
		require.EqualValues(t, 3, k.relay.Stats().Done)
	})
}

func TestPoisonBecomesDeadLetterAndTheConversationGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &recorder{handle: func(_ context.Context, m *message.Inbound) (router.Result, error) {
			if m.ID == "poison" {
				panic("cannot digest this")
			}
			return router.Result{}, nil
		}}
		k := newKit(t, relay.Config{Handler: h, Attempts: 4})
		k.offer("poison", "c1")
		k.offer("next", "c1")
		pass(time.Hour)
		require.Equal(t, []string{"poison", "poison", "poison", "poison", "next"}, h.got())
		require.Equal(t, []int{1, 2, 3, 4, 1}, h.attempts)
		require.EqualValues(t, 1, k.relay.Stats().Dead["attempts"])
		dead, err := k.store.DeadLetters(t.Context(), 10)
		require.NoError(t, err)
		require.Len(t, dead, 1)
		require.Equal(t, 4, dead[0].Attempts)
		k.stop(time.Second)
	})
}

func TestPermanentFailureIsNotTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &recorder{handle: func(context.Context, *message.Inbound) (router.Result, error) {
			return router.Result{}, &router.Error{Permanent: true, Err: errors.New("no")}
		}}
		k := newKit(t, relay.Config{Handler: h})
		k.offer("m1", "c1")
		pass(time.Hour)
		require.Equal(t, []string{"m1"}, h.got())
		require.EqualValues(t, 1, k.relay.Stats().Dead["permanent"])
		k.stop(time.Second)
	})
}

func TestRetryAfterIsObeyed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &recorder{handle: func(_ context.Context, m *message.Inbound) (router.Result, error) {
			if m.Attempt == 1 {
				return router.Result{}, &router.Error{After: time.Minute, Err: errors.New("busy")}
			}
			return router.Result{}, nil
		}}
		k := newKit(t, relay.Config{Handler: h})
		k.offer("m1", "c1")
		pass(59 * time.Second)
		require.Len(t, h.got(), 1)
		pass(2 * time.Second)
		require.Len(t, h.got(), 2)
		k.stop(time.Second)
	})
}

func TestUnroutedMessage(t *testing.T) {
	for policy, dead := range map[relay.NoRoute]int64{relay.NoRouteDone: 0, relay.NoRouteDead: 1} {
		t.Run(string(policy), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				empty, err := router.New(nil)
				require.NoError(t, err)
				k := newKit(t, relay.Config{Handler: empty, NoRoute: policy})
				k.offer("m1", "c1")
				synctest.Wait()
				k.stop(time.Second)
				s := k.relay.Stats()
				require.EqualValues(t, 1, s.NoRoute)
				require.EqualValues(t, dead, s.Dead["no_route"])
				require.EqualValues(t, 1-dead, s.Done)
			})
		})
	}
}

func TestDefectIsAcknowledgedAndKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &recorder{}
		k := newKit(t, relay.Config{Handler: h})
		a := &ack{}
		require.NoError(t, k.lane.Accept(t.Context(), message.Delivery{
			Message: text("m1", ""), Ack: a, Defect: "no_conversation",
		}))
		synctest.Wait()
		require.Equal(t, []message.Verdict{message.Accept}, a.got())
		require.Empty(t, h.got())
		dead, err := k.store.DeadLetters(t.Context(), 10)
		require.NoError(t, err)
		require.Len(t, dead, 1)
		require.Contains(t, dead[0].Reason, "no_conversation")
		k.stop(time.Second)
	})
}

// Nothing runs twice because of a disk that fails for a while.
func TestOutcomeIsKeptUntilItCanBeStored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &recorder{handle: func(_ context.Context, m *message.Inbound) (router.Result, error) {
			return router.Result{Replies: []message.Reply{{Text: "answer"}}}, nil
		}}
		k := newKit(t, relay.Config{Handler: h})
		k.store.failOn(func(op store.Op) bool { _, ok := op.(*store.Finish); return ok })
		k.offer("m1", "c1")
		synctest.Wait()
		require.Equal(t, []string{"m1"}, h.got())
		pass(time.Minute)
		k.offer("m2", "c1")
		k.store.failOn(nil)
		pass(5 * time.Second)
		require.Equal(t, []string{"m1", "m2"}, h.got())
		require.Equal(t, []int{1, 1}, h.attempts)
		require.Equal(t, []string{"answer#1", "answer#1"}, k.sender.texts(), "a reply was doubled or lost")
		k.stop(time.Second)
	})
}

// A failure and a refusal are kept as well; an outcome that no commit takes makes a
// dead letter.
func TestFailureIsKeptUntilItCanBeStored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &recorder{handle: func(_ context.Context, m *message.Inbound) (router.Result, error) {
			if m.Attempt == 1 && m.ID == "fails" {
				return router.Result{}, errors.New("not now")
			}
			return router.Result{}, &router.Error{Permanent: true, Err: errors.New("never")}
		}}
		k := newKit(t, relay.Config{Handler: h})
		k.store.failOn(func(op store.Op) bool { _, ok := op.(*store.Append); return !ok })
		k.offer("fails", "c1")
		k.offer("refused", "c2")
		pass(10 * time.Second)
		require.ElementsMatch(t, []string{"fails", "refused"}, h.got())
		k.store.failOn(nil)
		pass(10 * time.Second)
		require.ElementsMatch(t, []string{"fails", "refused", "fails"}, h.got())
		require.EqualValues(t, 2, k.relay.Stats().Dead["permanent"])
		k.stop(time.Second)
	})
}

func TestOutcomeThatNoStoreTakesIsADeadLetter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &recorder{}
		k := newKit(t, relay.Config{Handler: h})
		k.store.mu.Lock()
		k.store.fail = func(ops []store.Op) error {
			for _, op := range ops {
				if _, ok := op.(*store.Finish); ok {
					return store.ErrInvalid
				}
			}
			return nil
		}
		k.store.mu.Unlock()
		k.offer("m1", "c1")
		pass(time.Minute)
		require.Equal(t, []string{"m1"}, h.got())
		require.EqualValues(t, 1, k.relay.Stats().Dead["permanent"])
		k.stop(time.Second)
	})
}

func TestShutdownReturnsAtItsDeadlineAndNamesWhatItCutOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		block := make(chan struct{})
		h := &recorder{handle: func(_ context.Context, m *message.Inbound) (router.Result, error) {
			if m.ID == "stuck" {
				<-block // ignores its context
			}
			return router.Result{}, nil
		}}
		k := newKit(t, relay.Config{Handler: h})
		k.offer("stuck", "c1")
		k.offer("behind", "c1")
		k.offer("fine", "c2")
		synctest.Wait()
		began := time.Now()
		rep := k.stop(time.Second)
		require.LessOrEqual(t, time.Since(began), 1100*time.Millisecond)
		require.False(t, rep.Drained)
		var ids []message.ID
		for _, u := range rep.Unfinished {
			ids = append(ids, u.ID)
		}
		require.ElementsMatch(t, []message.ID{"stuck", "behind"}, ids)
		require.EqualValues(t, 2, rep.Inbox)
		require.ErrorIs(t, k.lane.Accept(t.Context(), message.Delivery{Message: text("x", "c"), Ack: &ack{}}),
			relay.ErrClosed)
		require.Equal(t, rep, k.relay.Shutdown(t.Context()), "a later call gives another report")
		close(block)
	})
}

func TestStopWithADurableStoreWaitsOnlyForWhatRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem, err := memory.New(memory.Config{})
		require.NoError(t, err)
		h := &recorder{handle: func(_ context.Context, m *message.Inbound) (router.Result, error) {
			if m.ID == "fails" {
				return router.Result{}, &router.Error{After: time.Hour, Err: errors.New("not now")}
			}
			<-time.After(time.Second)
			return router.Result{Replies: []message.Reply{{Text: "reply"}}}, nil
		}}
		k := newKitOn(t, relay.Config{Handler: h, Durable: true}, mem)
		began := time.Now()
		for _, id := range []string{"runs", "waits-1", "waits-2"} {
			k.offer(id, "c1")
		}
		k.offer("fails", "c2")
		k.offer("behind", "c2")
		pass(10 * time.Millisecond) // what was gathered is committed
		rep := k.stop(time.Minute)
		require.Equal(t, time.Second, time.Since(began))
		require.True(t, rep.Drained)
		require.Empty(t, rep.Unfinished)
		require.ElementsMatch(t, []string{"runs", "fails"}, h.got())
		require.EqualValues(t, 4, rep.Inbox)
		require.EqualValues(t, 1, rep.Outbox, "a reply that had not started is left")

		k = newKitOn(t, relay.Config{Handler: h, Durable: true}, mem)
		pass(2 * time.Hour)
		require.Equal(t, []string{"waits-1", "waits-2"}, only(h.got(), "waits"))
		k.stop(time.Second)
	})
}

func only(ids []string, prefix string) (out []string) {
	for _, id := range ids {
		if strings.HasPrefix(id, prefix) {
			out = append(out, id)
		}
	}
	return out
}

func TestWhatAnEarlierRunLeftRunsFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem, err := memory.New(memory.Config{})
		require.NoError(t, err)
		block := make(chan struct{})
		stuck := router.HandlerFunc(func(ctx context.Context, _ *message.Inbound) (router.Result, error) {
			<-ctx.Done()
			return router.Result{}, ctx.Err()
		})
		k := newKitOn(t, relay.Config{Handler: stuck}, mem)
		k.offer("old-1", "c1")
		k.offer("old-2", "c1")
		k.stop(time.Second)

		h := &recorder{handle: func(context.Context, *message.Inbound) (router.Result, error) {
			<-block
			return router.Result{}, nil
		}}
		k = newKitOn(t, relay.Config{Handler: h}, mem)
		k.offer("new", "c1")
		k.offer("old-2", "c1")
		close(block)
		synctest.Wait()
		require.Equal(t, []string{"old-1", "old-2", "new"}, h.got())
		k.stop(time.Second)
	})
}

func TestConfigNamesTheField(t *testing.T) {
	mem, err := memory.New(memory.Config{})
	require.NoError(t, err)
	h := router.Echo{}
	for want, cfg := range map[string]relay.Config{
		"Handler":   {Store: mem},
		"Store":     {Handler: h},
		"RetryMax":  {Handler: h, Store: mem, RetryBase: time.Minute, RetryMax: time.Second},
		"NoRoute":   {Handler: h, Store: mem, NoRoute: "lost"},
		"Uncertain": {Handler: h, Store: mem, Uncertain: "maybe"},
		"SendTTL":   {Handler: h, Store: mem, SendTTL: -1},
	} {
		_, err := relay.New(cfg)
		require.ErrorContains(t, err, want)
	}
}
