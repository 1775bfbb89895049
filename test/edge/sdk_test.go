package edge_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/penstock-io/penstock/integrations/dingtalk/dingtalktest"
)

var chats = []string{"a", "b", "c"}

func TestABotOnTheVendorsSDK(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.push(chats, 1, 2) // before there is a bot
	w.sdkBot()
	w.connections(1)
	w.push(chats, 3, 5)
	_, err := w.app().AwaitSent(w.ctx(), 15)
	require.NoError(t, err)
	for _, c := range chats {
		require.Equal(t, numbers("echo: ", 5), w.said()[c], c)
	}

	require.Contains(t, w.press(), `"pressed":"ok"`, "the bot's answer is in the acknowledgement")
	p, err := w.app().Push(dingtalktest.Event{})
	require.NoError(t, err)
	_, err = p.Wait(w.ctx())
	require.NoError(t, err)
	w.eventually(func() bool {
		n, _ := w.svc.Metric(`edge_outcomes_total{outcome="answered"}`)
		return n == 17
	})
	w.stop()
}

// A restart of the service: the bot stays, and dials again.
func TestARestartLosesNothingAndKeepsOrder(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.sdkBot()
	w.connections(1)
	w.push(chats, 1, 10)
	_, err := w.app().AwaitSent(w.ctx(), 5) // in the middle of it
	require.NoError(t, err)
	w.stop()
	w.push(chats, 11, 15) // the vendor holds it
	w.start()
	w.push(chats, 16, 20)
	_, err = w.app().AwaitSent(w.ctx(), 60)
	require.NoError(t, err)
	for _, c := range chats {
		require.Equal(t, numbers("echo: ", 20), w.said()[c], "%s: nothing is lost, doubled or overtaken", c)
	}
	w.connections(1)
	w.stop()
}

// A reload that withdraws the bot's credentials asks it to leave; it dials again.
func TestABotThatIsAskedToLeaveComesBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.sdkBot()
	w.connections(1)
	w.push(chats, 1, 3)
	w.leaveAndComeBack()
	w.push(chats, 4, 6)
	_, err := w.app().AwaitSent(w.ctx(), 18)
	require.NoError(t, err)
	for _, c := range chats {
		require.Equal(t, numbers("echo: ", 6), w.said()[c], c)
	}
	n, _ := w.svc.Metric(`edge_closed_total{reason="asked"}`)
	require.EqualValues(t, 1, n)
	w.stop()
}

func TestTwoBotsShareTheLoadAndOneMayDie(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	one, two := w.sdkBot(), w.sdkBot()
	w.connections(2)
	w.push(chats, 1, 4)
	_, err := w.app().AwaitSent(w.ctx(), 12)
	require.NoError(t, err)
	require.Positive(t, one.out.count())
	require.Positive(t, two.out.count())
	w.push(chats, 5, 20)
	_, err = w.app().AwaitSent(w.ctx(), 20)
	require.NoError(t, err)
	one.kill()
	w.push(chats, 21, 25)
	w.eventually(func() bool { return w.heard(25) })
	for _, c := range chats {
		require.Equal(t, numbers("echo: ", 25), firsts(w.said()[c]), c)
	}
	require.LessOrEqual(t, w.app().Stats().Sent, 76, "at most the message that was out comes again")
	w.connections(1)
	w.stop()
}
