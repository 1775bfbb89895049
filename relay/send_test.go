package relay_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/penstock-io/penstock/message"
	"github.com/penstock-io/penstock/relay"
	"github.com/penstock-io/penstock/router"
)

func outbound(id, conversation string) message.Outbound {
	return message.Outbound{
		ID: message.ID(id), Conversation: message.ConversationID(conversation),
		Reply: message.Reply{Text: id},
	}
}

func TestSendIsFollowedToItsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKit(t, relay.Config{Handler: router.Echo{}})
		k.sender.parts = 3
		k.sender.fails = []error{nil, sendError(message.NextAgain, 0, message.LandedNo)}
		s, err := k.lane.Send(t.Context(), outbound("s1", "a"))
		require.NoError(t, err)
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err = s.Wait(short)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		r, err := s.Wait(t.Context())
		require.NoError(t, err)
		require.Equal(t, "r", r.ID)
		require.Equal(t, []string{"s1#1", "s1#2", "s1#3"}, k.sender.texts())
		k.stop(time.Second)
	})
}

func TestSendIsFoundFromTheMessageThatItAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKit(t, relay.Config{Handler: router.Echo{}})
		o := outbound("", "a")
		o.Text, o.InReplyTo = "a reply", "m1"
		s, err := k.lane.Send(t.Context(), o)
		require.NoError(t, err)
		require.True(t, s.ID().IsReplyTo("m1"))
		require.False(t, s.ID().IsReplyTo("m"))
		require.False(t, s.ID().IsReplyTo(""))
		other, err := k.lane.Send(t.Context(), o)
		require.NoError(t, err)
		require.NotEqual(t, s.ID(), other.ID(), "the same words twice are two replies")
		k.stop(time.Second)
	})
}

func TestSendWithTheSameIDIsNotDoubled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKit(t, relay.Config{Handler: router.Echo{}})
		_, err := k.lane.Send(t.Context(), outbound("s1", "a"))
		require.NoError(t, err)
		_, err = k.lane.Send(t.Context(), outbound("s1", "a"))
		require.ErrorIs(t, err, relay.ErrKnown)
		synctest.Wait()
		require.Equal(t, []string{"s1#1"}, k.sender.texts())
		k.stop(time.Second)
		_, err = k.lane.Send(t.Context(), outbound("s2", "a"))
		require.ErrorIs(t, err, relay.ErrClosed)
	})
}

func TestSendThatDiesOrIsStoppedTellsItsWaiter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKit(t, relay.Config{Handler: router.Echo{}})
		k.sender.fails = []error{
			sendError(message.NextNever, 0, message.LandedNo),
			sendError(message.NextWait, time.Hour, message.LandedNo),
		}
		dead, err := k.lane.Send(t.Context(), outbound("s1", "a"))
		require.NoError(t, err)
		_, err = dead.Wait(t.Context())
		var de *relay.DeadError
		require.ErrorAs(t, err, &de)
		require.Equal(t, "refused", de.Reason)
		late, err := k.lane.Send(t.Context(), outbound("s2", "a"))
		require.NoError(t, err)
		synctest.Wait()
		k.stop(time.Second)
		_, err = late.Wait(t.Context())
		require.ErrorIs(t, err, relay.ErrClosed)
	})
}

func TestSendFromAHandlerLeavesBeforeItsReplies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var k *kit
		k = newKit(t, relay.Config{Handler: router.HandlerFunc(
			func(ctx context.Context, m *message.Inbound) (router.Result, error) {
				_, err := k.lane.Send(ctx, outbound("thinking", string(m.Conversation.ID)))
				return router.Result{Replies: []message.Reply{{Text: "done"}}}, err
			})})
		k.offer("m1", "a")
		synctest.Wait()
		require.Equal(t, []string{"thinking#1", "done#1"}, k.sender.texts())
		k.stop(time.Second)
	})
}
