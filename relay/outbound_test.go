package relay_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
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

// answering replies to each message with its id.
var answering = router.HandlerFunc(
	func(_ context.Context, m *message.Inbound) (router.Result, error) {
		return router.Result{Replies: []message.Reply{{Text: string(m.ID)}}}, nil
	})

func sendError(next message.Next, after time.Duration, landed message.Landed) error {
	return &message.SendError{
		Next: next, After: after, Landed: landed, Code: "test", Err: errors.New("refused"),
	}
}

func TestRepliesLeaveInOrderAndAFailingHeadHoldsItsConversation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKit(t, relay.Config{Handler: answering})
		k.sender.fails = []error{sendError(message.NextAgain, 0, message.LandedNo)}
		k.offer("a1", "a")
		synctest.Wait()
		k.offer("a2", "a")
		k.offer("b1", "b")
		synctest.Wait()
		require.Equal(t, []string{"b1#1"}, k.sender.texts())
		pass(6 * time.Second)
		require.Equal(t, []string{"b1#1", "a1#1", "a2#1"}, k.sender.texts())
		require.Equal(t, message.Target("to a"), k.sender.sent[1].Target)
		k.stop(time.Second)
		require.EqualValues(t, 3, k.relay.Stats().Sent)
		require.EqualValues(t, 1, k.relay.Stats().Resends)
	})
}

func TestSendIsTriedFiveTimesThenDead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKit(t, relay.Config{Handler: answering})
		for range 5 {
			k.sender.fails = append(k.sender.fails, sendError(message.NextAgain, 0, message.LandedNo))
		}
		k.offer("a1", "a")
		k.offer("a2", "a")
		pass(12 * time.Minute)
		require.Equal(t, 4, k.sender.tries())
		pass(3 * time.Minute)
		require.Equal(t, 6, k.sender.tries())
		require.Equal(t, []string{"a2#1"}, k.sender.texts())
		require.EqualValues(t, 1, k.relay.Stats().Discarded["attempts"])
		k.stop(time.Second)
	})
}

func TestPlatformThatSaysWaitIsObeyedWithoutUsingAnAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKit(t, relay.Config{Handler: answering, SendAttempts: 1})
		k.sender.fails = []error{
			sendError(message.NextWait, time.Minute, message.LandedNo),
			sendError(message.NextWait, time.Minute, message.LandedNo),
		}
		k.offer("a1", "a")
		k.offer("a2", "a")
		pass(59 * time.Second)
		require.Equal(t, 1, k.sender.tries())
		pass(2 * time.Second)
		require.Equal(t, 2, k.sender.tries())
		pass(118 * time.Second)
		require.Equal(t, 2, k.sender.tries(), "the second wait is not longer than the first")
		pass(2 * time.Second)
		require.Equal(t, []string{"a1#1", "a2#1"}, k.sender.texts())
		k.stop(time.Second)
	})
}

func TestPartsAfterAFailedOneAreNotSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKit(t, relay.Config{Handler: answering})
		k.sender.parts = 4
		k.sender.fails = []error{nil, sendError(message.NextNever, 0, message.LandedNo)}
		k.offer("a1", "a")
		k.offer("a2", "a")
		pass(time.Second)
		require.Equal(t, []string{"a1#1", "a2#1", "a2#2", "a2#3", "a2#4"}, k.sender.texts())
		s := k.relay.Stats()
		require.EqualValues(t, 1, s.Discarded["refused"])
		require.EqualValues(t, 2, s.Discarded["part_failed"])
		k.stop(time.Second)
	})
}

func TestThrottledPartDelaysTheRestAndDoublesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKit(t, relay.Config{Handler: answering})
		k.sender.parts = 4
		wait := sendError(message.NextWait, time.Minute, message.LandedNo)
		k.sender.fails = []error{nil, wait, wait}
		k.offer("a1", "a")
		k.offer("b1", "b")
		pass(time.Hour)
		var a []string
		for _, o := range k.sender.sent {
			if o.Conversation == "a" {
				a = append(a, o.Text)
			}
		}
		require.Equal(t, []string{"a1#1", "a1#2", "a1#3", "a1#4"}, a)
		k.stop(time.Second)
	})
}

func TestParkedInstallationSendsNothingAndSaysWhy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKit(t, relay.Config{Handler: answering})
		k.sender.fails = []error{sendError(message.NextPark, 0, message.LandedNo)}
		k.offer("a1", "a")
		synctest.Wait()
		k.offer("b1", "b")
		synctest.Wait()
		require.Equal(t, 1, k.sender.tries())
		require.ErrorContains(t, k.lane.Trouble(), "refused")
		pass(6 * time.Minute)
		require.ElementsMatch(t, []string{"a1#1", "b1#1"}, k.sender.texts())
		require.NoError(t, k.lane.Trouble())
		k.stop(time.Second)
	})
}

func TestNewSenderEndsParking(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKit(t, relay.Config{Handler: answering})
		k.sender.fails = []error{sendError(message.NextPark, 0, message.LandedNo)}
		k.offer("a1", "a")
		synctest.Wait()
		fresh := &sender{}
		k.lane.SetSender(fresh)
		require.NoError(t, k.lane.Trouble())
		k.offer("b1", "b")
		synctest.Wait()
		require.Equal(t, []string{"b1#1"}, fresh.texts())
		k.stop(time.Hour)
		require.Equal(t, []string{"b1#1", "a1#1"}, fresh.texts())
	})
}

func TestOldReplyIsNotSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKit(t, relay.Config{Handler: answering, SendTTL: time.Hour})
		k.sender.fails = []error{sendError(message.NextWait, 61*time.Minute, message.LandedNo)}
		k.offer("a1", "a")
		pass(2 * time.Hour)
		require.Equal(t, 1, k.sender.tries())
		require.EqualValues(t, 1, k.relay.Stats().Discarded["expired"])
		k.stop(time.Second)
	})
}

func TestUncertainSend(t *testing.T) {
	for policy, tries := range map[relay.Uncertain]int{
		relay.UncertainResend: 2, relay.UncertainDiscard: 1,
	} {
		t.Run(string(policy), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				k := newKit(t, relay.Config{Handler: answering, Uncertain: policy})
				k.sender.fails = []error{sendError(message.NextAgain, 0, message.LandedMaybe)}
				k.offer("a1", "a")
				pass(time.Minute)
				require.Equal(t, tries, k.sender.tries())
				require.EqualValues(t, 1, k.relay.Stats().Uncertain)
				k.stop(time.Second)
			})
		})
	}
}

func TestRatesSpreadSends(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKit(t, relay.Config{
			Handler:          answering,
			InstallationRate: relay.Rate{PerSecond: 10, Burst: 1},
			ConversationRate: relay.Rate{PerSecond: 1, Burst: 1},
		})
		for i := range 5 {
			k.offer(fmt.Sprint("a", i), "a")
			k.offer(fmt.Sprint("b", i), "b")
		}
		pass(2500 * time.Millisecond)
		require.Len(t, k.sender.texts(), 6)
		pass(10 * time.Second)
		require.Len(t, k.sender.texts(), 10)
		k.stop(time.Second)
	})
}

func TestAttemptIsRecordedBeforeTheRequestLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKit(t, relay.Config{Handler: answering})
		k.sender.until = func() {
			o, err := k.store.LoadOutbox(t.Context(), 1)
			require.NoError(t, err)
			require.Len(t, o, 1)
			require.Equal(t, store.StateSending, o[0].State)
			require.Equal(t, 1, o[0].Attempts)
		}
		k.offer("a1", "a")
		synctest.Wait()
		require.Equal(t, 1, k.sender.tries())
		k.stop(time.Second)
	})
}

func TestNothingIsSentWhileTheAttemptCannotBeRecorded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKit(t, relay.Config{Handler: answering})
		k.store.failOn(func(op store.Op) bool { _, ok := op.(*store.Begin); return ok })
		k.offer("a1", "a")
		pass(10 * time.Second)
		require.Zero(t, k.sender.tries())
		k.store.failOn(nil)
		pass(2 * time.Second)
		require.Equal(t, 1, k.sender.tries())
		k.stop(time.Second)
	})
}

func TestReceiptThatCannotBeStoredIsNotSentTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKit(t, relay.Config{Handler: answering})
		k.store.failOn(func(op store.Op) bool { _, ok := op.(*store.Sent); return ok })
		k.offer("a1", "a")
		pass(10 * time.Second)
		k.store.failOn(nil)
		pass(2 * time.Second)
		require.Equal(t, 1, k.sender.tries())
		require.EqualValues(t, 1, k.relay.Stats().Sent)
		k.stop(time.Second)
	})
}

func TestRepliesLeftByAnEarlierRunGoOutFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem, err := memory.New(memory.Config{})
		require.NoError(t, err)
		k := newKitOn(t, relay.Config{Handler: answering}, mem)
		k.sender.fails = []error{sendError(message.NextWait, time.Hour, message.LandedNo)}
		k.offer("a1", "a")
		k.offer("a2", "a")
		synctest.Wait()
		k.stop(time.Second)
		k = newKitOn(t, relay.Config{Handler: answering}, mem)
		k.offer("a3", "a")
		pass(2 * time.Hour)
		require.Equal(t, []string{"a1#1", "a2#1", "a3#1"}, k.sender.texts())
		k.stop(time.Second)
	})
}

func TestPanickingSendIsAnAttemptLikeAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKit(t, relay.Config{Handler: answering})
		var once sync.Once // the two sends go side by side
		k.sender.until = func() { once.Do(func() { panic("sender is broken") }) }
		k.offer("a1", "a")
		k.offer("b1", "b")
		pass(time.Minute)
		require.ElementsMatch(t, []string{"a1#1", "b1#1"}, k.sender.texts())
		require.EqualValues(t, 1, k.relay.Stats().Uncertain)
		k.stop(time.Second)
	})
}
