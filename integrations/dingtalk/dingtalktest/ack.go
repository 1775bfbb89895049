package dingtalktest

import (
	"encoding/json"
	"net/http"
	"time"

	"github.com/penstock-io/penstock/message"
)

// Ack is one answer of the client, as it came.
type Ack struct {
	Frame   message.FrameID
	Message message.ID // the stable id of what was pushed, where it has one
	Topic   string
	Code    int
	Text    string // the envelope's message
	Data    string // decoded; an object stands as it came
	At      time.Time
	Latency time.Duration // since the push of this frame
	// Session brought the answer, PushedOn carried the push.
	Session  int
	PushedOn int
	// Late: after the time that the platform waits.
	Late bool
	// Duplicate: the message had its outcome already.
	Duplicate bool
	// Unknown: no such frame was pushed; of the other fields only those that came
	// with the answer are set, and Raw is the whole of it.
	Unknown bool
	Raw     string
}

// reply is the envelope of an answer.
type reply struct {
	code    int
	id      message.FrameID
	message string
	data    string
}

// decodeReply reads an answer, leniently: every client writes its own dialect.
func decodeReply(raw []byte) (reply, bool) {
	var env struct {
		Code    json.Number                `json:"code"`
		Headers map[string]json.RawMessage `json:"headers"`
		Message json.RawMessage            `json:"message"`
		Data    json.RawMessage            `json:"data"`
	}
	if json.Unmarshal(raw, &env) != nil {
		return reply{}, false
	}
	code, err := env.Code.Int64()
	return reply{
		code:    int(code),
		id:      message.FrameID(loose(env.Headers[headerMessageID])),
		message: loose(env.Message),
		data:    loose(env.Data),
	}, err == nil
}

// loose is the value of a JSON string, or anything else as it stands.
func loose(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	return string(raw)
}

// refused tells whether an answer to an event asks for another push.
func (r reply) refused() bool {
	if r.code != http.StatusOK {
		return true
	}
	var body struct {
		Status string `json:"status"`
	}
	return json.Unmarshal([]byte(r.data), &body) == nil && body.Status == "LATER"
}

// answered takes an answer from a socket.
func (a *App) answered(s *Session, raw []byte, now time.Time) {
	r, ok := decodeReply(raw)
	a.mu.Lock()
	if !ok {
		s.info.BadReplies++
		a.mu.Unlock()
		return
	}
	if s.answeredSystemLocked(r) {
		a.mu.Unlock()
		return
	}
	ack := a.matchLocked(s, r, now)
	if ack.Unknown {
		ack.Raw = string(raw)
	}
	a.acks.put(ack)
	a.notifyLocked()
	a.mu.Unlock()
	if hook := a.gw.cfg.OnAck; hook != nil {
		hook(ack)
	}
}

// answeredSystemLocked takes the answer to a SYSTEM frame.
func (s *Session) answeredSystemLocked(r reply) bool {
	asked, ok := s.systems[r.id]
	if !ok {
		// The bare disconnect has no id, and neither has its answer.
		return r.id == "" && s.state == StateRetiring
	}
	delete(s.systems, r.id)
	switch {
	case asked.topic != topicPing:
	case r.data == asked.data && r.code == http.StatusOK:
		s.info.Pongs++
	default:
		s.info.BadPongs++
	}
	s.app.notifyLocked()
	return true
}

// matchLocked finds what was answered and acts on it.
func (a *App) matchLocked(s *Session, r reply, now time.Time) Ack {
	ack := Ack{
		Frame: r.id, Code: r.code, Text: r.message, Data: r.data,
		At: now, Session: s.id,
	}
	p := a.frames[r.id]
	if p == nil {
		ack.Unknown = true
		return ack
	}
	ack.Message, ack.Topic, ack.Duplicate = p.f.id, p.f.topic, p.settled
	for _, try := range p.tries {
		if try.Frame == r.id {
			ack.Latency, ack.PushedOn = now.Sub(try.At), try.Session
		}
	}
	limit := a.timeout(p.f.kind)
	ack.Late = limit > 0 && ack.Latency > limit
	switch {
	case p.settled:
	case p.f.kind == kindEvent && r.refused():
		if !p.waiting {
			a.failLocked(p)
		}
	default:
		p.ack = ack
		a.settleLocked(p, nil)
	}
	return ack
}
