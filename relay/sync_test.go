package relay_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/penstock-io/penstock/message"
	"github.com/penstock-io/penstock/relay"
	"github.com/penstock-io/penstock/router"
	"github.com/penstock-io/penstock/store"
)

func card(id, conversation string) *message.Inbound {
	m := text(id, conversation)
	m.Kind = message.KindCard
	return m
}

// slow answers after the time that the message's text tells.
var slow = router.HandlerFunc(func(_ context.Context, m *message.Inbound) (router.Result, error) {
	d, err := time.ParseDuration(m.Text)
	if err == nil {
		<-time.After(d)
	}
	if m.Kind == message.KindCard {
		return router.Result{Answer: json.RawMessage(`{"ok":true}`)}, nil
	}
	return router.Result{}, nil
})

func TestSynchronousAnswerGoesOutInTheAck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKit(t, relay.Config{Handler: slow})
		a := k.offerMessage(card("1s", "c1"))
		synctest.Wait()
		require.Empty(t, a.got())
		pass(time.Second)
		require.Equal(t, []message.Verdict{message.Accept}, a.got())
		require.JSONEq(t, `{"ok":true}`, a.body)
		k.stop(time.Second)
		require.Empty(t, k.sender.texts())
	})
}

func TestSynchronousMessageDoesNotWaitBehindItsConversation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKit(t, relay.Config{Handler: slow})
		k.offer("1h", "c1")
		synctest.Wait()
		a := k.offerMessage(card("10ms", "c1"))
		pass(20 * time.Millisecond)
		require.JSONEq(t, `{"ok":true}`, a.body)
		k.stop(2 * time.Hour)
	})
}

func TestLateAnswerChangesTheCard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKit(t, relay.Config{Handler: slow})
		a := k.offerMessage(card("10s", "c1"))
		pass(1799 * time.Millisecond)
		require.Empty(t, a.got())
		pass(2 * time.Millisecond)
		require.Equal(t, []message.Verdict{message.Accept}, a.got())
		require.Empty(t, a.body)
		pass(10 * time.Second)
		require.Len(t, k.sender.sent, 1)
		require.Equal(t, message.FormatCard, k.sender.sent[0].Format)
		require.JSONEq(t, `{"ok":true}`, string(k.sender.sent[0].Card))
		require.EqualValues(t, 1, k.relay.Stats().LateAnswer)
		k.stop(time.Second)
	})
}

func TestSynchronousMessageThatCannotBeStored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &recorder{}
		k := newKit(t, relay.Config{Handler: h})
		k.store.failOn(func(store.Op) bool { return true })
		a := k.offerMessage(card("m1", "c1"))
		pass(10 * time.Second)
		require.Equal(t, []message.Verdict{message.Retry}, a.got())
		require.Empty(t, h.got())
		k.store.failOn(nil)
		k.stop(time.Second)
	})
}

func TestSynchronousHandlerThatFails(t *testing.T) {
	for name, c := range map[string]struct {
		err  error
		want message.Verdict
		runs int
	}{
		"for now": {errors.New("not now"), message.Accept, 8},
		"for good": {
			&router.Error{Permanent: true, Err: errors.New("never")}, message.Retry, 1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := &recorder{handle: func(context.Context, *message.Inbound) (router.Result, error) {
					return router.Result{}, c.err
				}}
				k := newKit(t, relay.Config{Handler: h})
				a := k.offerMessage(card("m1", "c1"))
				pass(time.Hour)
				require.Equal(t, []message.Verdict{c.want}, a.got())
				require.Len(t, h.got(), c.runs)
				k.stop(time.Second)
			})
		})
	}
}

func TestFullSynchronousLaneFallsBackToTheQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKit(t, relay.Config{
			Handler: slow, SyncWorkers: 1, Inbound: relay.Queue{Workers: 1, PerKey: 2, Pending: 2},
		})
		acks := []*ack{}
		for _, id := range []string{"1000ms", "1001ms", "1002ms", "1003ms"} {
			acks = append(acks, k.offerMessage(card(id, "c1")))
		}
		pass(time.Minute)
		for _, a := range acks {
			require.Equal(t, []message.Verdict{message.Accept}, a.got())
		}
		require.EqualValues(t, 4, k.relay.Stats().Done)
		k.stop(time.Second)
	})
}

// A platform that pushes a message again, under whatever frame, is told what it was
// told before, or would have been.
func TestACopyGetsTheSameAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKit(t, relay.Config{Handler: slow, SyncWithin: 2 * time.Second})
		first := k.offerMessage(card("1s", "c1"))
		during := k.offerMessage(card("1s", "c1")) // before the first is stored
		pass(500 * time.Millisecond)
		waiting := k.offerMessage(card("1s", "c1"))
		synctest.Wait()
		require.Empty(t, waiting.got())
		pass(500 * time.Millisecond)
		after := k.offerMessage(card("1s", "c1"))
		synctest.Wait()
		for _, a := range []*ack{first, during, waiting, after} {
			require.Equal(t, []message.Verdict{message.Accept}, a.got())
			require.JSONEq(t, `{"ok":true}`, a.body)
		}

		late := k.offerMessage(card("3s", "c2"))
		pass(1900 * time.Millisecond)
		copied := k.offerMessage(card("3s", "c2"))
		pass(200 * time.Millisecond)
		require.Equal(t, []message.Verdict{message.Accept}, late.got())
		require.Equal(t, []message.Verdict{message.Accept}, copied.got())
		require.Empty(t, late.body+copied.body, "nothing is known yet")
		pass(time.Second)
		again := k.offerMessage(card("3s", "c2"))
		synctest.Wait()
		require.JSONEq(t, `{"ok":true}`, again.body)
		require.EqualValues(t, 5, k.relay.Stats().Duplicates)
		k.stop(time.Minute)
	})
}
