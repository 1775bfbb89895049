package dingtalk

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"sync/atomic"

	"github.com/penstock-io/penstock/internal/jsonscan"
	"github.com/penstock-io/penstock/internal/wire"
	"github.com/penstock-io/penstock/message"
)

// ErrSessionOver means that the session that brought a frame has ended, so that
// its acknowledgement cannot be sent. The gateway pushes the frame again.
var ErrSessionOver = errors.New("the session of this frame is over")

// ackKind tells what a frame's sender expects to read.
type ackKind uint8

const (
	ackRobot ackKind = iota // content ignored; silence asks for another push
	ackSync                 // the handler's answer
	ackEvent                // a status
)

// ack settles one delivery. It is bound to its session for good.
type ack struct {
	s    *session
	id   string // headers.messageId, may be empty
	kind ackKind
	done atomic.Bool
}

// Contents of acknowledgements.
const (
	dataRobot   = `{"response":null}`
	dataEmpty   = `{"response":{}}`
	dataSuccess = `{"status":"SUCCESS","message":"success"}`
	dataLater   = `{"status":"LATER","message":"not stored, push again later"}`
)

// Settle implements message.Ack.
func (a *ack) Settle(v message.Verdict, body []byte) error {
	if !a.done.CompareAndSwap(false, true) {
		return nil
	}
	defer a.s.settled()
	if a.id == "" || (v == message.Retry && a.kind == ackRobot) {
		return nil
	}
	code, text, data := http.StatusOK, "OK", dataRobot
	switch {
	case a.kind == ackEvent && v == message.Retry:
		data = dataLater
	case a.kind == ackEvent:
		data = dataSuccess
	case a.kind == ackSync && v == message.Retry:
		code, text, data = http.StatusInternalServerError, "internal error", ""
	case a.kind == ackSync:
		data = a.s.answerData(body)
	}
	return a.s.sendAck(a.id, reply{code, text, data})
}

// answerData is the content of the acknowledgement of a synchronous frame. A
// handler's answer may come whole or as what stands under "response".
func (s *session) answerData(body []byte) string {
	if body = bytes.TrimSpace(body); len(body) == 0 {
		return dataEmpty
	}
	if !json.Valid(body) {
		s.c.count.badAnswers.Add(1)
		s.c.log().Warn("answer of a handler is not JSON, an empty one is sent")
		return dataEmpty
	}
	var whole map[string]json.RawMessage
	if json.Unmarshal(body, &whole) == nil {
		if _, ok := whole["response"]; ok {
			return string(body)
		}
	}
	return `{"response":` + string(body) + `}`
}

// reply is an answer to a frame.
type reply struct {
	code       int
	text, data string
}

// ackRoom holds the usual acknowledgement, so that it needs no memory of its own.
const ackRoom = 512

// sendAck hands an acknowledgement to the socket. An error means that it does not
// leave.
func (s *session) sendAck(id string, r reply) error {
	err := s.send(wire.Normal, id, r)
	if err == nil {
		s.c.count.acks.Add(1)
		return nil
	}
	if errors.Is(err, wire.ErrFull) {
		// Thousands of acknowledgements wait: the peer has stopped reading, and on
		// a new session it will push again what it has not seen acknowledged.
		s.sock.Fail(errNotReading)
	}
	s.c.count.acksLate.Add(1)
	return ErrSessionOver
}

func (s *session) send(l wire.Lane, id string, r reply) error {
	var room [ackRoom]byte
	return s.sock.Send(l, wire.Text, appendReply(room[:0], id, r))
}

// appendReply adds the response envelope for the frame with the given id.
func appendReply(b []byte, id string, r reply) []byte {
	b = append(b, `{"code":`...)
	b = strconv.AppendInt(b, int64(r.code), 10)
	b = append(b, `,"headers":{"messageId":`...)
	b = jsonscan.AppendString(b, id)
	b = append(b, `,"contentType":"application/json"},"message":`...)
	b = jsonscan.AppendString(b, r.text)
	b = append(b, `,"data":`...)
	b = jsonscan.AppendString(b, r.data)
	return append(b, '}')
}
