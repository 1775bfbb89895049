package edge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/penstock-io/penstock/internal/wire"
	"github.com/penstock-io/penstock/message"
	"github.com/penstock-io/penstock/router"
)

// Errors that a handler returns in a [router.Error]; those with a wait have one.
var (
	errAbsent    = errors.New("the consumer has no connection that takes messages now")
	errAway      = errors.New("no connection of the consumer subscribes to this now")
	errNoAnswer  = errors.New("the consumer did not answer in time")
	errLost      = errors.New("the consumer's connection ended before it answered")
	errFailed    = errors.New("the consumer answered")
	errLater     = errors.New("the consumer asked to be told later")
	errUnhandled = errors.New("the consumer has no handler for this")
	errTooLarge  = errors.New("the message is too large for a frame")
	errDeserted  = errors.New("no connection subscribes to this any more")
)

// handler gives messages to one consumer.
type handler struct {
	srv  *Server
	name string
}

// Handler gives the handler that sends messages to the consumer of that name. It
// may be made before the consumer is there and after it has gone: messages wait
// then. Handle blocks until the consumer has answered, and returns what it answered
// in Result.Answer when the platform waits for it.
func (s *Server) Handler(consumer string) router.Handler { return handler{s, consumer} }

// Handle implements router.Handler.
func (h handler) Handle(ctx context.Context, m *message.Inbound) (router.Result, error) {
	c := h.srv.consumer(h.name)
	if c == nil {
		h.srv.count.outcomes.add(outcomeAbsent)
		return router.Result{}, h.fail(&ending{outcome: outcomeAbsent})
	}
	if !h.srv.enough(m.Installation, c) {
		c.short.Store(true)
		h.srv.count.outcomes.add(outcomeAbsent)
		return router.Result{}, h.fail(&ending{outcome: outcomeAbsent})
	}
	defer c.freed()
	defer h.srv.shares.give(m.Installation, c)
	d := c.begin(msgKey{m.Installation, m.ID}, m.Kind == message.KindEvent)
	e := h.push(ctx, c, d, m)
	h.srv.count.outcomes.add(e.outcome)
	if good(e.outcome) {
		c.finish(d)
		return h.result(m, &e.answer), nil
	}
	c.giveUp(d)
	if e.outcome == outcomeCanceled {
		return router.Result{}, fmt.Errorf("consumer %q: %w", h.name, context.Cause(ctx))
	}
	return router.Result{}, h.fail(&e)
}

// enough counts a call in if its consumer leaves enough workers to the others.
func (s *Server) enough(in message.InstallationID, c *consumer) bool {
	limit := 0
	if s.several.Load() {
		limit = s.cfg.Workers
	}
	return s.shares.take(in, c, limit)
}

// result takes the answer over if the platform waits for it.
func (h handler) result(m *message.Inbound, a *answer) (res router.Result) {
	switch {
	case !m.Synchronous() || a.data == "":
	case !json.Valid([]byte(a.data)):
		h.srv.count.strays.add(strayBadAnswer)
	default:
		res.Answer = json.RawMessage(a.data)
	}
	return res
}

// fail makes the error of an ending.
func (h handler) fail(end *ending) error {
	e := &router.Error{}
	var cause error
	switch end.outcome {
	case outcomeUnwanted:
		return fmt.Errorf("consumer %q has not subscribed: %w", h.name, router.ErrNoRoute)
	case outcomeAbsent:
		e.Unreached, cause = true, errAbsent
	case outcomeAway:
		e.Unreached, cause = true, errAway
	case outcomeTimeout:
		e.Reason, cause = router.ReasonTimeout, errNoAnswer
	case outcomeLost:
		e.Reason, cause = router.ReasonNetwork, errLost
	case outcomeUnhandled:
		e.Permanent, e.Reason, cause = true, router.ReasonStatus, errUnhandled
	case outcomeDeserted:
		e.Permanent, e.Reason, cause = true, router.ReasonUnreached, errDeserted
	case outcomeOversize:
		e.Permanent, e.Reason, cause = true, router.ReasonStatus, errTooLarge
	case outcomeLater:
		e.Reason, cause = router.ReasonStatus, errLater
	default:
		e.Reason, cause = router.ReasonStatus, fmt.Errorf("%w %d", errFailed, end.answer.code)
		if end.answer.text != "" {
			cause = fmt.Errorf("%w: %s", cause, end.answer.text)
		}
	}
	e.Err = fmt.Errorf("consumer %q: %w", h.name, cause)
	return e
}

// push sends the message on one connection after the other until one takes it, and
// waits for its answer.
func (h handler) push(
	ctx context.Context, c *consumer, d *delivery, m *message.Inbound,
) ending {
	select {
	case e := <-d.told: // it came after the last try was over
		return e
	default:
	}
	want := want{
		conv: convKey{m.Installation, m.Conversation.ID}, sub: subscriptionOf(m),
		urgent: m.Synchronous(),
	}
	data := ""
	var tried []*peer
	for {
		f := c.place(ctx, d, want, tried)
		switch {
		case f.outcome != "":
			return ending{outcome: f.outcome}
		case !f.send:
			return h.await(ctx, d, f.peer)
		}
		if data == "" { // not before it is needed: many tries find no room
			data = h.data(c, m)
		}
		err := h.send(m, want.sub, f.carrier, data)
		switch {
		case err == nil:
			return h.await(ctx, d, f.peer)
		case errors.Is(err, wire.ErrTooLarge):
			return ending{outcome: outcomeOversize}
		case errors.Is(err, wire.ErrBudget): // until it has answered more
			c.short.Store(true)
			return ending{outcome: outcomeAbsent}
		case !errors.Is(err, wire.ErrClosed):
			f.peer.cut(closedSlow) // frames by the thousand wait: it does not read
		}
		tried = append(tried, f.peer)
	}
}

// maxBuffer bounds the buffers that are kept for the next frame.
const maxBuffer = 64 << 10

var buffers = sync.Pool{New: func() any { return new([]byte) }}

// send hands a frame to its connection, which keeps it until it is answered.
func (h handler) send(m *message.Inbound, sub subscription, f carrier, data string) error {
	buf := buffers.Get().(*[]byte)
	b := appendPush((*buf)[:0], m, sub, f, data)
	err := f.peer.sock.Try(wire.Frame{
		Lane: wire.LaneFor(len(b)), Op: wire.Text, Payload: b, ID: f.frame,
	})
	if err == nil {
		h.srv.count.pushes.Add(1)
	}
	if *buf = b; cap(b) <= maxBuffer {
		buffers.Put(buf)
	}
	return err
}

// data is the message's document with a reply address of ours.
func (h handler) data(c *consumer, m *message.Inbound) string {
	raw := string(m.Raw)
	if h.srv.cfg.PassWebhook || !hasWebhook(raw) {
		return raw
	}
	expires := time.Now().Add(h.srv.cfg.ReplyWithin)
	target, err := h.srv.cfg.Outbox.Address(m)
	token := ""
	if err == nil {
		token, err = h.srv.seal(c, session{
			Installation: m.Installation, Conversation: m.Conversation.ID,
			Message: m.ID, Target: target, Expires: expires.Unix(),
		})
	}
	if err != nil {
		// A token that is not good: the platform's own address would leak instead.
		h.srv.log.Warn("a message has no reply address", "consumer", c.name,
			"installation", string(m.Installation), "message_id", string(m.ID), "error", err)
	}
	return rewrite(raw, h.srv.base()+pathReply+"?session="+token, expires)
}

// await waits for what ends a push.
func (h handler) await(ctx context.Context, d *delivery, p *peer) ending {
	cfg := &h.srv.cfg
	timer := time.NewTimer(cfg.AckWithin)
	defer timer.Stop()
	gone, outcome := p.gone, outcomeTimeout
	for {
		select {
		case e := <-d.told:
			return e
		case <-gone:
			if why := p.why.Load(); why != nil && *why == closedSlow {
				return ending{outcome: outcomeLost} // it has others
			}
			// The consumer may answer on its next connection, if it has not died too.
			gone, outcome = nil, outcomeLost
			timer.Reset(cfg.RejoinWithin)
		case <-timer.C:
			return ending{outcome: outcome}
		case <-ctx.Done():
			return ending{outcome: outcomeCanceled}
		}
	}
}
