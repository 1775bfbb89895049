package integrationtest

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/penstock-io/penstock/integrations"
	"github.com/penstock-io/penstock/message"
)

func liveAndMessages(b *bench) {
	require.NotEmpty(b.t, b.profile.Platform, "Profile has no platform")
	l := b.dial()
	d := l.deliver("message-1")
	b.await("Live is called", l.live, b.env.Patience)
	require.Equal(b.t, chat, d.Message.Conversation.ID)
	require.Equal(b.t, b.profile.Platform, d.Message.Platform)
	require.NotEmpty(b.t, d.Message.Raw, "the payload is not kept")
	require.Equal(b.t, b.profile, b.conn.Profile(), "Profile is not constant")
}

func orderIsKept(b *bench) {
	l := b.dial()
	for i := range 20 {
		l.push(message.ID(fmt.Sprint("message-", i)))
	}
	for i := range 20 {
		l.next(message.ID(fmt.Sprint("message-", i)))
	}
}

func redelivery(b *bench) {
	l := b.dial()
	l.settle(l.deliver("message-1"), message.Accept)
	l.deliver("message-1") // whether it is a copy is for the core to say
}

func droppedLink(b *bench) {
	l := b.dial()
	l.deliver("message-1")
	b.Drop(l.number)
	require.Error(b.t, l.ended(integrations.Lost, b.env.Patience).Err, "a loss without a cause")
}

func stopIsStopped(b *bench) {
	l := b.dial()
	l.settle(l.deliver("message-1"), message.Accept)
	l.cancel()
	l.ended(integrations.Stopped, b.env.Patience)
	b.eventually("the gateway sees the socket close", func() bool { return len(b.Sessions()) == 0 })
}

func doneContext(b *bench) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	l := b.run(ctx, false)
	l.ended(integrations.Stopped, b.env.Grace)
	require.Equal(b.t, 1, b.dial().number, "a session was opened before")
}

func stopInTime(b *bench) {
	l := b.dial()
	l.deliver("message-1") // never settled
	l.cancel()
	l.ended(integrations.Stopped, b.env.Grace)
}

func oneSession(b *bench) {
	l := b.dial()
	l.deliver("message-1")
	b.Drop(l.number)
	l.ended(integrations.Lost, b.env.Patience)
	require.Empty(b.t, b.Sessions(), "it redialled by itself")
	require.NotEqual(b.t, l.number, b.dial().number)
}

// closedCore lets every offer fail: the session may end or go on, but acks
// nothing.
func closedCore(b *bench) {
	l := b.run(context.Background(), true)
	b.eventually("the gateway has a session", func() bool {
		if open := b.Sessions(); len(open) > 0 {
			l.number = open[0]
		}
		return l.number != 0
	})
	l.push("message-1")
	b.await("Live is called", l.live, b.env.Patience)
	l.cancel()
	l.ended(integrations.Stopped, b.env.Grace)
	if b.profile.Ack == integrations.AckEach {
		require.Zero(b.t, b.Acks(l.number, "message-1"), "what the core refused was acked")
	}
}

func ackWhenSettled(b *bench) {
	l := b.dial()
	first := l.deliver("message-1")
	second := l.deliver("message-2")
	l.settle(second, message.Accept)
	l.acked("message-2")
	require.Zero(b.t, b.Acks(l.number, "message-1"), "it was acked before it was settled")
	l.settle(first, message.Accept)
	l.acked("message-1")
}

func verdicts(b *bench) {
	l := b.dial()
	l.settle(l.deliver("dropped"), message.Drop)
	l.acked("dropped")
	l.settle(l.deliver("retried"), message.Retry)
	l.fence()
	require.Zero(b.t, b.Acks(l.number, "retried"), "what may be pushed again was acked")
}

func settleTwice(b *bench) {
	l := b.dial()
	d := l.deliver("message-1")
	l.settle(d, message.Accept)
	_ = d.Ack.Settle(message.Accept, nil) // whether it is an error is not promised
	_ = d.Ack.Settle(message.Retry, nil)
	l.fence()
	require.Equal(b.t, 1, b.Acks(l.number, "message-1"))
}

func settleConcurrently(b *bench) {
	l := b.dial()
	var wg sync.WaitGroup
	for i := range 32 {
		d := l.deliver(message.ID(fmt.Sprint("message-", i)))
		for range 2 {
			wg.Go(func() { _ = d.Ack.Settle(message.Accept, nil) })
		}
	}
	wg.Wait()
	l.fence()
	for i := range 32 {
		require.Equal(b.t, 1, b.Acks(l.number, message.ID(fmt.Sprint("message-", i))))
	}
}

func settleAfterEnd(b *bench) {
	l := b.dial()
	d := l.deliver("message-1")
	b.Drop(l.number)
	l.ended(integrations.Lost, b.env.Patience)
	next := b.dial()
	require.NotPanics(b.t, func() {
		require.Error(b.t, d.Ack.Settle(message.Accept, nil), "an ack that cannot be sent")
	})
	next.fence()
	require.Zero(b.t, b.Acks(next.number, "message-1"), "an ack was sent on another session")
}

func owedAcks(b *bench) {
	l := b.dial()
	d := l.deliver("message-1")
	l.cancel()
	select {
	case <-l.over:
		require.Fail(b.t, "it ended while an ack was owed")
	case <-time.After(b.env.Grace / 10):
	}
	l.settle(d, message.Accept)
	l.acked("message-1")
	l.ended(integrations.Stopped, b.env.Grace)
}

func ackOnItsSession(b *bench) {
	first, second := b.dial(), b.dial()
	one, two := first.deliver("message-1"), second.deliver("message-2")
	second.settle(two, message.Accept)
	first.settle(one, message.Accept)
	first.acked("message-1")
	second.acked("message-2")
	require.Zero(b.t, b.Acks(second.number, "message-1"))
	require.Zero(b.t, b.Acks(first.number, "message-2"))
}

func manySessions(b *bench) {
	n := 8
	if most := b.profile.MaxSessions; most > 0 {
		n = min(n, most)
	}
	var all []*link
	for range n {
		all = append(all, b.dial())
	}
	var wg sync.WaitGroup
	for _, l := range all {
		d := l.deliver("message-1")
		wg.Go(func() { _ = d.Ack.Settle(message.Accept, nil) })
	}
	wg.Wait()
	for _, l := range all {
		l.acked("message-1")
		require.Equal(b.t, 1, b.Acks(l.number, "message-1"))
	}
}

func retireOverlaps(b *bench) {
	old := b.dial()
	owed := old.deliver("message-1")
	b.Gateway.(Retirer).Retire(old.number)
	b.await("Retire is called", old.retire, b.env.Patience)
	next := b.dial()
	require.True(b.t, slices.Contains(b.Sessions(), old.number), "the old session was not kept")
	next.settle(next.deliver("message-2"), message.Accept)
	old.settle(owed, message.Accept)
	old.acked("message-1")
	next.acked("message-2")
	require.Zero(b.t, b.Acks(next.number, "message-1"))
}

func retireIsAsked(b *bench) {
	l := b.dial()
	l.settle(l.deliver("message-1"), message.Accept)
	b.Gateway.(Retirer).Retire(l.number)
	b.await("Retire is called", l.retire, b.env.Patience)
	l.ended(integrations.Asked, b.env.Patience)
}

func refused(b *bench) {
	b.Gateway.(Refuser).Refuse()
	end := b.run(context.Background(), false).ended(integrations.Refused, b.env.Patience)
	require.NotEmpty(b.t, end.Code, "a refusal without a code")
	require.Error(b.t, end.Err, "a refusal without a cause")
}

func limited(b *bench) {
	const after = 17 * time.Second
	b.Gateway.(Limiter).Limit(after)
	end := b.run(context.Background(), false).ended(integrations.Limited, b.env.Patience)
	require.GreaterOrEqual(b.t, end.After, after)
}

// garbage may cost the session, but neither a panic nor the next session.
func garbage(b *bench) {
	l := b.dial()
	l.deliver("message-1")
	b.Gateway.(Garbler).Garble(l.number)
	if b.Push(l.number, "message-2", chat) == nil && l.survives("message-2") {
		return
	}
	l.ended(integrations.Lost, b.env.Patience)
	b.dial().deliver("message-2")
}

func silentLink(b *bench) {
	l := b.dial()
	l.deliver("message-1")
	b.Gateway.(Staller).Stall(l.number)
	l.ended(integrations.Lost, b.env.Patience)
}
