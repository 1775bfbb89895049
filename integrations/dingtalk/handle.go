package dingtalk

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/penstock-io/penstock/integrations/dingtalk/internal/payload"
	"github.com/penstock-io/penstock/internal/wire"
	"github.com/penstock-io/penstock/message"
)

// When the gateway gives up waiting for an acknowledgement.
const (
	robotWithin = 60 * time.Second
	eventWithin = 3 * time.Second
	syncWithin  = 2 * time.Second
	// answerWithin leaves the answer time to travel.
	answerWithin = 1800 * time.Millisecond
)

// handle serves one message of the gateway. It never blocks.
func (s *session) handle(ctx context.Context, b []byte) {
	now := time.Now()
	s.hear(now)
	f, err := payload.DecodeFrame(b)
	if err != nil {
		s.badFrame(len(b))
		return
	}
	s.served.Store(s.heard.Load())
	s.c.count.lastFrame.Store(now.UnixNano())
	if !s.live {
		s.live = true
		s.in.Live()
	}
	switch f.Type {
	case payload.TypeSystem:
		s.c.count.systems.Add(1)
		s.system(&f)
	case payload.TypeCallback:
		s.c.count.callbacks.Add(1)
		s.c.count.lastCallback.Store(now.UnixNano())
		s.push(ctx, &f, now, s.c.takes(f.Topic))
	case payload.TypeEvent:
		// The topic of an event is "*" or another word; only its type counts.
		s.c.count.events.Add(1)
		s.push(ctx, &f, now, !s.c.cfg.NoEvents)
	default:
		s.c.count.unknown.Add(1)
		s.unhandled(&f)
	}
}

// badFrame counts a message that is no frame. Nothing can be answered to it. The
// first of a session is logged, so that a mad peer cannot fill the log.
func (s *session) badFrame(size int) {
	s.c.count.badFrames.Add(1)
	if !s.warned {
		s.warned = true
		s.c.log().Warn("message of the gateway is no frame, skipped", "bytes", size)
	}
}

// system serves the gateway's own frames. Unknown ones are signs of life, and
// are answered as the known ones are.
func (s *session) system(f *payload.Frame) {
	if f.Topic == payload.TopicDisconnect {
		s.disconnect(f)
	}
	if f.MessageID == "" {
		return
	}
	data := ""
	if f.Topic != payload.TopicDisconnect {
		data = f.Data
	}
	if s.send(wire.Control, f.MessageID, reply{http.StatusOK, "OK", data}) != nil {
		s.c.count.pongsDropped.Add(1)
	}
}

// disconnect tells the core to bring up the next session.
func (s *session) disconnect(f *payload.Frame) {
	if !s.retire() {
		return
	}
	var d struct{ Reason string }
	_ = json.Unmarshal([]byte(f.Data), &d)
	s.c.log().Info("gateway asks to redial", "reason", s.c.hide.excerpt([]byte(d.Reason)))
	s.in.Retire(retireWithin)
}

// pong sends a ping or a pong. For want of room it is dropped: what fills the
// lane proves as much.
func (s *session) pong(op wire.Op, data []byte) {
	if s.sock.Send(wire.Control, op, data) != nil {
		s.c.count.pongsDropped.Add(1)
	}
}

// unhandled answers a frame that we have not subscribed to.
func (s *session) unhandled(f *payload.Frame) {
	s.c.count.unhandled.Add(1)
	if f.MessageID == "" {
		s.c.count.noMessageID.Add(1)
		return
	}
	_ = s.sendAck(f.MessageID, reply{http.StatusNotFound, "no handler for this topic", ""})
}

// push offers a frame to the core. The debt is noted before the look at leaving,
// so that a session that is told to leave either sees the debt or is seen.
func (s *session) push(ctx context.Context, f *payload.Frame, now time.Time, wanted bool) {
	if !wanted {
		s.unhandled(f)
		return
	}
	s.owed.Add(1)
	if s.leaving.Load() {
		s.c.count.droppedStopping.Add(1)
		s.settled()
		return
	}
	if err := s.in.Offer(ctx, s.delivery(f, now)); err != nil {
		s.c.count.droppedClosed.Add(1)
		s.settled()
	}
}

func (s *session) delivery(f *payload.Frame, now time.Time) message.Delivery {
	m, defect := payload.Inbound(f, s.c.cfg.Installation, now)
	if defect != "" {
		s.c.count.defects.Add(1)
	}
	if f.MessageID == "" {
		s.c.count.noMessageID.Add(1)
	}
	a := &ack{s: s, id: f.MessageID}
	within := robotWithin
	switch {
	case f.Type == payload.TypeEvent:
		a.kind, within = ackEvent, eventWithin
	case isSync(f.Topic):
		a.kind, within = ackSync, syncWithin
	}
	if a.kind == ackSync && m != nil && m.AnswerBy.IsZero() {
		m.AnswerBy = now.Add(answerWithin)
	}
	return message.Delivery{Message: m, Ack: a, AckBy: now.Add(within), Defect: defect}
}

// isSync tells whether the gateway waits for a handler's answer.
func isSync(topic string) bool {
	return topic == payload.TopicCard || topic == payload.TopicDynamic || topic == payload.TopicPlugin
}
