package payload

import (
	"errors"
	"time"

	"github.com/penstock-io/penstock/message"
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
// from may be used again. Fields that were missing or odd are zero.
type Frame struct {
	Type        string
	Topic       string
	MessageID   string
	EventID     string
	EventType   string
	EventCorpID string
	// BornTime is the event's time, SentAt the push's, in unix milliseconds.
	BornTime int64
	SentAt   int64
	// Data is the inner document: unescaped when it came as a JSON string, as it
	// stands when it came as an object.
	Data string
}

// DecodeFrame reads an envelope. The only error is ErrNotFrame.
func DecodeFrame(b []byte) (Frame, error) {
	return Frame{}, ErrNotFrame
}

// Inbound turns a CALLBACK or EVENT frame of a known topic into a message. A
// payload that cannot be handled gives a message that holds what could be read,
// with the reason as defect ("not_json", "no_conversation", ...); defect is empty
// otherwise.
func Inbound(f *Frame, inst message.InstallationID, now time.Time) (m *message.Inbound, defect string) {
	return nil, "not_json"
}
