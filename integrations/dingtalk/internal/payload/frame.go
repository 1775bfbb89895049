package payload

import (
	"errors"
	"strings"
	"sync"

	"github.com/penstock-io/penstock/internal/jsonscan"
)

// Frame types.
const (
	TypeSystem   = "SYSTEM"
	TypeEvent    = "EVENT"
	TypeCallback = "CALLBACK"
)

// Topics of SYSTEM and CALLBACK frames.
const (
	TopicPing       = "ping"
	TopicDisconnect = "disconnect"
	TopicRobot      = "/v1.0/im/bot/messages/get"
	TopicDelegate   = "/v1.0/im/bot/messages/delegate"
	TopicCard       = "/v1.0/card/instances/callback"
	TopicDynamic    = "/v1.0/card/dynamicData/get"
	TopicPlugin     = "/v1.0/graph/api/invoke"
)

// ErrNotFrame means that the bytes are no frame at all: not a JSON object.
var ErrNotFrame = errors.New("not a frame")

// Frame is a decoded envelope. All strings are copies: the bytes it was read
// from may be used again. Fields that were missing or odd are zero. The strings
// share one piece of memory, so each of them keeps all of Data in memory.
type Frame struct {
	Type        string
	Topic       string
	MessageID   string
	EventID     string
	EventType   string
	EventCorpID string
	AppID       string
	// BornTime is the event's time, SentAt the push's, in unix milliseconds.
	BornTime int64
	SentAt   int64
	// Data is the inner document: unescaped when it came as a JSON string, as it
	// stands when it came as an object.
	Data string
}

// DecodeFrame reads an envelope. The only error is ErrNotFrame.
func DecodeFrame(b []byte) (Frame, error) {
	p := packs.Get().(*pack)
	defer p.release()
	// The view ends with this function: what leaves it is a number or a copy.
	e, err := p.readEnvelope(jsonscan.View(b))
	if err != nil {
		return Frame{}, ErrNotFrame
	}
	return p.frame(&e), nil
}

// envelope holds the pieces of a frame where they stand in its text.
type envelope struct {
	kind, topic, messageID          jsonscan.Value
	eventID, eventType, eventCorpID jsonscan.Value
	appID                           jsonscan.Value
	bornTime, sentAt                jsonscan.Value
}

// maxPack bounds the buffers that are kept for the next frame.
const maxPack = 64 << 10

// pack is a buffer to put a frame's strings together in, the inner document first.
type pack struct{ buf []byte }

var packs = sync.Pool{New: func() any { return &pack{buf: make([]byte, 0, 4<<10)} }}

func (p *pack) release() {
	if cap(p.buf) <= maxPack {
		packs.Put(p)
	}
}

func (p *pack) readEnvelope(text string) (envelope, error) {
	var e envelope
	p.buf = p.buf[:0]
	m := jsonscan.ReadObject(text)
	for m.Next() {
		switch m.Key() {
		case "type":
			e.kind = m.Value()
		case "headers", "header": // both spellings are documented
			e.readHeaders(m.Value())
		case "data":
			p.readData(&m)
		case "time":
			if !e.sentAt.Exists() {
				e.sentAt = m.Value()
			}
		}
	}
	return e, m.Err()
}

// readData keeps the inner document. A value that is no string is one as it
// stands.
func (p *pack) readData(m *jsonscan.Members) {
	p.buf = m.AppendText(p.buf[:0])
	switch v := m.Value(); v.Kind() {
	case jsonscan.Object, jsonscan.Array:
		p.buf = append(p.buf, v.Raw()...)
	}
}

func (e *envelope) readHeaders(v jsonscan.Value) {
	for m := v.Members(); m.Next(); {
		switch m.Key() {
		case "topic":
			e.topic = m.Value()
		case "messageId":
			e.messageID = m.Value()
		case "time":
			e.sentAt = m.Value()
		case "eventId":
			e.eventID = m.Value()
		case "eventType":
			e.eventType = m.Value()
		case "eventCorpId":
			e.eventCorpID = m.Value()
		case "appId", "eventUnifiedAppId": // of callbacks, of events
			e.appID = m.Value()
		case "eventBornTime":
			e.bornTime = m.Value()
		}
	}
}

// frame copies the pieces behind the inner document, and all of it into one
// string.
func (p *pack) frame(e *envelope) Frame {
	var f Frame
	f.BornTime, _ = e.bornTime.Int()
	f.SentAt, _ = e.sentAt.Int()
	words := [...]jsonscan.Value{
		e.kind, e.topic, e.messageID, e.eventID, e.eventType, e.eventCorpID, e.appID,
	}
	ends := [1 + len(words)]int{len(p.buf)}
	for i, word := range words {
		p.buf = word.AppendText(p.buf)
		ends[i+1] = len(p.buf)
	}
	all := string(p.buf)
	f.Data = all[:ends[0]]
	for i, to := range [...]*string{
		&f.Type, &f.Topic, &f.MessageID, &f.EventID, &f.EventType, &f.EventCorpID,
		&f.AppID,
	} {
		*to = all[ends[i]:ends[i+1]]
	}
	return f
}

// maxReason bounds what is kept of a reason, in bytes.
const maxReason = 200

// DisconnectReason gives the reason that the data of a disconnect frame holds, cut
// to a length that suits a log line. It is empty if there is none.
func DisconnectReason(data string) string {
	reason := ""
	for m := jsonscan.ReadObject(data); m.Next(); {
		if m.Key() == "reason" {
			reason = m.Value().Text()
		}
	}
	if len(reason) > maxReason {
		reason = strings.ToValidUTF8(reason[:maxReason], "")
	}
	return strings.Clone(reason)
}
