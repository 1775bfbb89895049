package dingtalktest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/penstock-io/penstock/message"
)

// Frame types and topics.
const (
	TypeSystem   = "SYSTEM"
	TypeEvent    = "EVENT"
	TypeCallback = "CALLBACK"

	TopicRobot    = "/v1.0/im/bot/messages/get"
	TopicDelegate = "/v1.0/im/bot/messages/delegate"
	TopicCard     = "/v1.0/card/instances/callback"
	TopicQuery    = "/v1.0/card/dynamicData/get"
	TopicPlugin   = "/v1.0/graph/api/invoke"
	TopicEvents   = "*"

	topicPing       = "ping"
	topicDisconnect = "disconnect"
)

// Header names that the gateway fills in.
const (
	headerMessageID  = "messageId"
	headerTime       = "time"
	headerConnection = "connectionId"
)

// kind decides what an unanswered push leads to.
type kind uint8

const (
	kindOther kind = iota // recorded, nothing more
	kindRobot             // pushed once more
	kindEvent             // pushed again on a schedule, then kept as failed
	kindSync              // somebody waits for the answer, for a short time
)

// Message is something to push: [Robot], [Event], [Card], [Query], [Plugin] or
// [Frame].
type Message interface {
	frame(s scope) (frame, error)
}

// scope is what a message may draw on while it becomes a frame.
type scope struct {
	app    *App
	now    time.Time
	serial uint64
}

// frame is a message that only lacks what differs from push to push. It is
// immutable.
type frame struct {
	kind    kind
	typ     string
	topic   string
	id      message.ID
	tag     string            // callback tag in the list of failed events
	headers map[string]string // empty value: leave it out
	data    []byte            // JSON as it stands in the frame
	inner   string            // what data holds, decoded
	anyway  bool
}

// Frame is a push built by hand, for what the platform is not known to send.
type Frame struct {
	Type  string // default: CALLBACK
	Topic string
	Data  string // becomes a JSON string
	// RawData stands in the frame as it is, in place of Data.
	RawData json.RawMessage
	// ID is the stable id; it is recorded only.
	ID message.ID
	// Headers are added to the usual ones and replace them; an empty value leaves
	// one out. Without messageId no answer can be matched.
	Headers map[string]string
	// Subscribed pushes only to sockets that asked for the topic.
	Subscribed bool
}

func (m Frame) frame(scope) (frame, error) {
	f := frame{
		typ: m.Type, topic: m.Topic, id: m.ID, headers: m.Headers,
		data: m.RawData, inner: m.Data, anyway: !m.Subscribed,
	}
	set(&f.typ, TypeCallback)
	if f.data == nil {
		f.data = quote(m.Data)
	}
	return f, nil
}

// push is what differs from push to push.
type push struct {
	frameID    message.FrameID
	connection string
	at         time.Time
}

// render appends the frame as it goes over the wire.
func (f *frame) render(dst []byte, p push) []byte {
	h := map[string]string{
		"topic":          f.topic,
		"contentType":    "application/json",
		headerMessageID:  string(p.frameID),
		headerTime:       strconv.FormatInt(p.at.UnixMilli(), 10),
		headerConnection: p.connection,
	}
	maps.Copy(h, f.headers)
	maps.DeleteFunc(h, func(_, v string) bool { return v == "" })
	dst = append(dst, `{"specVersion":"1.0","type":`...)
	dst = append(dst, quote(f.typ)...)
	dst = append(dst, `,"headers":{`...)
	for i, k := range slices.Sorted(maps.Keys(h)) {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, quote(k)...)
		dst = append(dst, ':')
		dst = append(dst, quote(h[k])...)
	}
	dst = append(dst, `},"data":`...)
	dst = append(dst, f.data...)
	return append(dst, '}')
}

// marshal encodes without escaping what HTML would need escaped, as the platform
// does. v holds no type that cannot be encoded, except what callers hand in.
func marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, fmt.Errorf("encode: %w", err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// quote makes a JSON string.
func quote(s string) []byte {
	b, err := marshal(s)
	if err != nil {
		return []byte(`""`) // strings can always be encoded
	}
	return b
}

// callback makes the frame of a CALLBACK topic.
func callback(s scope, topic string, payload any) (frame, error) {
	inner, err := marshal(payload)
	if err != nil {
		return frame{}, err
	}
	return frame{
		kind: kindSync, typ: TypeCallback, topic: topic,
		headers: map[string]string{"appId": s.app.uuid()},
		inner:   string(inner),
		data:    quote(string(inner)),
	}, nil
}
