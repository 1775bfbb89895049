package payload

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"strconv"
	"time"

	"github.com/penstock-io/penstock/internal/jsonscan"
	"github.com/penstock-io/penstock/message"
)

// Platform is the name under which messages of this platform go.
const Platform message.Platform = "dingtalk"

// Defects: why a payload cannot be handled.
const (
	DefectEmpty          = "empty"           // no data at all
	DefectNotJSON        = "not_json"        // data that is no JSON
	DefectNotObject      = "not_object"      // JSON, but no object
	DefectTooDeep        = "too_deep"        // JSON nested past jsonscan.MaxDepth
	DefectNoConversation = "no_conversation" // a chat message that belongs to no chat
	DefectUnknownTopic   = "unknown_topic"   // a frame that KindOf does not know
)

// KindOf tells what a frame brings; known is false if it brings no message, or
// one of a topic that has no meaning here. An EVENT is told by its type alone:
// its topic differs from one document to the next.
func KindOf(f *Frame) (kind message.Kind, known bool) {
	switch f.Type {
	case TypeEvent:
		return message.KindEvent, true
	case TypeCallback:
		kind, known = callbackKinds[f.Topic]
		return kind, known
	default:
		return "", false
	}
}

var callbackKinds = map[string]message.Kind{
	TopicRobot:    message.KindMessage,
	TopicDelegate: message.KindDelegate,
	TopicCard:     message.KindCard,
	TopicDynamic:  message.KindQuery,
	TopicPlugin:   message.KindPlugin,
}

// Inbound turns a CALLBACK or EVENT frame of a known topic into a message. A
// payload that cannot be handled gives a message that holds what could be read,
// with the reason as defect ("not_json", "no_conversation", ...); defect is empty
// otherwise.
//
// The message's strings are pieces of f.Data, which is also its Raw. Its ID,
// FrameID and conversation id are apart, in a small piece of memory of their own,
// as they live longer than the message: in queues, dedup windows and acks.
func Inbound(
	f *Frame, inst message.InstallationID, now time.Time,
) (m *message.Inbound, defect string) {
	m = &message.Inbound{
		Schema:       message.Schema,
		Installation: inst,
		Platform:     Platform,
		Topic:        f.Topic,
		ReceivedAt:   now,
		AppID:        f.AppID,
		Raw:          message.Raw(f.Data),
	}
	kind, known := KindOf(f)
	m.Kind = kind
	err := readKind(m, f)
	setIDs(m, f)
	switch {
	case !known:
		return m, DefectUnknownTopic
	case f.Data == "":
		return m, DefectEmpty
	case err != nil:
		return m, defectOf(err)
	case m.Conversation.ID == "":
		return m, DefectNoConversation
	default:
		return m, ""
	}
}

func readKind(m *message.Inbound, f *Frame) error {
	m.Conversation.Type = message.ChatNone
	switch m.Kind {
	case message.KindMessage, message.KindDelegate:
		return readRobot(m, f.Data)
	case message.KindCard, message.KindQuery:
		return readCard(m, f)
	case message.KindPlugin:
		return readPlugin(m, f)
	case message.KindEvent:
		return readEvent(m, f)
	default:
		return nil
	}
}

func defectOf(err error) string {
	switch {
	case errors.Is(err, jsonscan.ErrTooDeep):
		return DefectTooDeep
	case errors.Is(err, jsonscan.ErrNotObject):
		return DefectNotObject
	default:
		return DefectNotJSON
	}
}

// setIDs falls back to the frame's id and gives the ids a memory of their own.
func setIDs(m *message.Inbound, f *Frame) {
	id := cmp.Or(string(m.ID), f.MessageID)
	all := f.MessageID + id + string(m.Conversation.ID)
	rest := all[len(f.MessageID):]
	m.FrameID = message.FrameID(all[:len(f.MessageID)])
	m.ID = message.ID(rest[:len(id)])
	m.Conversation.ID = message.ConversationID(rest[len(id):])
}

// readEvent takes what the headers tell. Events of one organisation are one
// conversation: what happened first is handled first.
func readEvent(m *message.Inbound, f *Frame) error {
	m.Topic = cmp.Or(f.EventType, f.Topic)
	m.Conversation.ID = message.ConversationID("events:" + f.EventCorpID)
	m.ID = eventID(f)
	m.SentAt = unixMilli(cmp.Or(f.BornTime, f.SentAt))
	doc := jsonscan.ReadObject(f.Data)
	for doc.Next() {
		if f.BornTime != 0 {
			continue
		}
		switch doc.Key() {
		case "timeStamp", "timestamp":
			setTime(&m.SentAt, doc.Value())
		}
	}
	return doc.Err()
}

// eventID tells events without an id apart by type, time and content. Without the
// time it gives none: equal content does not mean that it is the same event.
func eventID(f *Frame) message.ID {
	if f.EventID != "" || f.BornTime == 0 {
		return message.ID(f.EventID)
	}
	sum := sha256.Sum256([]byte(f.Data))
	return message.ID("event:" + f.EventType + ":" + strconv.FormatInt(f.BornTime, 10) +
		":" + hex.EncodeToString(sum[:16]))
}

// maxMilli is the last instant that a JSON time can hold.
const maxMilli = 253_402_300_799_999

// unixMilli reads a time; what is no time that can be written down again is zero.
func unixMilli(ms int64) time.Time {
	if ms <= 0 || ms > maxMilli {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}

// setTime sets t if v holds a time.
func setTime(t *time.Time, v jsonscan.Value) {
	ms, _ := v.Int()
	if at := unixMilli(ms); !at.IsZero() {
		*t = at
	}
}
