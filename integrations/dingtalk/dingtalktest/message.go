package dingtalktest

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"strconv"
	"time"

	"github.com/penstock-io/penstock/message"
)

// The people and places of messages that name none.
const (
	corp           = "ding00examplecorp00"
	defaultGroup   = "cidTestGroup0001/AAAAAAAAAAAAAAAAAAAAAAAAA="
	defaultDirect  = "cidTestSingle0001+AAAAAAAAAAAAAAAAAAAAAAAA="
	defaultSender  = "$:LWCP_v1:$testSender0001"
	defaultStaff   = "staff0001"
	defaultNick    = "Test User"
	defaultRobotID = "$:LWCP_v1:$testBot0001"
)

// Robot is a message that a person writes to the bot. Zero fields get plausible
// values.
type Robot struct {
	// ID is the stable id, the same in every push. Default: a new one.
	ID           message.ID
	Conversation message.ConversationID
	// Direct makes it a chat of two; else it is a group in which the bot was
	// mentioned.
	Direct bool
	// Type is the msgtype. Default: text.
	Type string
	// Text is the content of a text message. In groups the platform leaves a
	// space where the mention was; it is not added here.
	Text string
	// Content is the content of other types; it is encoded as JSON.
	Content any
	Sender  message.UserID
	Staff   message.UserID
	Nick    string
	// Host is whose chat the bot hosts; it makes the message a delegated one.
	Host message.UserID
	// Fields are added to the payload and replace what is there; nil removes.
	Fields map[string]any
}

// Text is a text message to the bot in a group.
func Text(conversation message.ConversationID, text string) Robot {
	return Robot{Conversation: conversation, Text: text}
}

// frame makes it a CALLBACK that is pushed once more when it is not answered.
func (m Robot) frame(s scope) (frame, error) {
	topic := TopicRobot
	if m.Host != "" {
		topic = TopicDelegate
	}
	m = m.withDefaults(s)
	f, err := callback(s, topic, m.payload(s))
	f.kind, f.id = kindRobot, m.ID
	return f, err
}

// withDefaults fills in who and where, so that a payload lacks nothing that the
// platform always sends.
func (m Robot) withDefaults(s scope) Robot {
	if m.ID == "" {
		m.ID = message.ID(fmt.Sprintf("msgTest%012dAAAA==", s.serial))
	}
	if m.Direct {
		set(&m.Conversation, defaultDirect)
	}
	set(&m.Conversation, defaultGroup)
	set(&m.Type, "text")
	set(&m.Sender, defaultSender)
	set(&m.Staff, defaultStaff)
	set(&m.Nick, defaultNick)
	return m
}

// payload is the inner document.
func (m Robot) payload(s scope) map[string]any {
	expires := s.now.Add(s.app.gw.cfg.WebhookLife)
	p := map[string]any{
		"senderPlatform":            "Mac",
		"conversationId":            m.Conversation,
		"chatbotCorpId":             corp,
		"chatbotUserId":             defaultRobotID,
		"openThreadId":              m.Conversation,
		"msgId":                     m.ID,
		"senderNick":                m.Nick,
		"isAdmin":                   false,
		"senderStaffId":             m.Staff,
		"senderCorpId":              corp,
		"senderId":                  m.Sender,
		"sessionWebhookExpiredTime": expires.UnixMilli(),
		"sessionWebhook":            s.app.Webhook(m.Conversation, expires),
		"createAt":                  s.now.UnixMilli(),
		"conversationType":          "1",
		"robotCode":                 s.app.cred.RobotCode,
		"msgtype":                   m.Type,
	}
	if !m.Direct {
		p["conversationType"] = "2"
		p["conversationTitle"] = "Test group"
		p["isInAtList"] = true
		p["atUsers"] = []any{map[string]any{"dingtalkId": defaultRobotID}}
	}
	if m.Content != nil {
		p["content"] = m.Content
	} else if m.Type == "text" {
		p["text"] = map[string]any{"content": m.Text}
	}
	if m.Host != "" {
		p["hostingContext"] = map[string]any{"userId": m.Host, "nick": "Test Owner"}
	}
	maps.Copy(p, m.Fields)
	maps.DeleteFunc(p, func(_ string, v any) bool { return v == nil })
	return p
}

// Webhook makes a sessionWebhook of a conversation. It needs no message to have
// been pushed, and works until it expires or [App.ExpireWebhooks] is called.
func (a *App) Webhook(c message.ConversationID, expires time.Time) string {
	q := url.Values{"session": {a.session(c, expires)}}
	return a.gw.URL() + "/robot/sendBySession?" + q.Encode()
}

// Event is something that happened on the platform.
type Event struct {
	ID   message.ID // the eventId; default: a new one
	Type string     // default: user_add_org
	// Data is encoded as JSON. Default: a small object.
	Data any
	// Topic is "*" or, on some frames of the platform, "dingTalk". Default: "*".
	Topic string
	// Born is when it happened. Default: now.
	Born time.Time
	// Headers are added to the usual ones and replace them; an empty value
	// leaves one out, as some old events lack their eventId.
	Headers map[string]string
}

// frame makes it an EVENT, which says what it is in its headers.
func (m Event) frame(s scope) (frame, error) {
	set(&m.Type, "user_add_org")
	set(&m.Topic, TopicEvents)
	set(&m.Born, s.now)
	if m.ID == "" {
		m.ID = message.ID(fmt.Sprintf("testevent%016d", s.serial))
	}
	if m.Data == nil {
		m.Data = map[string]any{"timeStamp": strconv.FormatInt(m.Born.UnixMilli(), 10)}
	}
	inner, err := marshal(m.Data)
	headers := map[string]string{
		"eventId":           string(m.ID),
		"eventType":         m.Type,
		"eventBornTime":     strconv.FormatInt(m.Born.UnixMilli(), 10),
		"eventCorpId":       corp,
		"eventUnifiedAppId": s.app.uuid(),
	}
	maps.Copy(headers, m.Headers)
	return frame{
		kind: kindEvent, typ: TypeEvent, topic: m.Topic, id: m.ID, tag: m.Type,
		headers: headers, inner: string(inner), data: quote(string(inner)),
	}, err
}

// Card is a person pressing something on a card. The answer is waited for.
type Card struct {
	Track        string                 // outTrackId; default: a new one
	User         message.UserID         // default: staff0001
	Conversation message.ConversationID // default: a group
	Actions      []string
	Params       map[string]any
	// Fields are added to the payload and replace what is there; nil removes.
	Fields map[string]any
}

// frame makes it a CALLBACK whose content is JSON inside JSON inside JSON.
func (m Card) frame(s scope) (frame, error) {
	set(&m.Track, fmt.Sprintf("track-test-%06d", s.serial))
	set(&m.User, defaultStaff)
	set(&m.Conversation, defaultGroup)
	content, err := marshal(map[string]any{
		"cardPrivateData": map[string]any{"actionIds": m.Actions, "params": m.Params},
	})
	if err != nil {
		return frame{}, err
	}
	p := map[string]any{
		"type": "actionCallback", "outTrackId": m.Track, "corpId": corp,
		"userId": m.User, "userIdType": 1, "spaceId": m.Conversation,
		"spaceType": "im", "extension": "{}", "content": string(content),
	}
	maps.Copy(p, m.Fields)
	maps.DeleteFunc(p, func(_ string, v any) bool { return v == nil })
	return callback(s, TopicCard, p)
}

// Query is a card asking for fresh data. The answer is waited for.
type Query struct {
	Track   string         // outTrackId; default: a new one
	User    message.UserID // default: staff0001
	Sources []string       // default: one
}

func (m Query) frame(s scope) (frame, error) {
	set(&m.Track, fmt.Sprintf("track-test-%06d", s.serial))
	set(&m.User, defaultStaff)
	if m.Sources == nil {
		m.Sources = []string{"ds-test-1"}
	}
	var requests []any
	for _, id := range m.Sources {
		requests = append(requests, map[string]any{"dynamicDataSourceId": id})
	}
	content, err := marshal(map[string]any{"dynamicDataSourceQueryRequests": requests})
	if err != nil {
		return frame{}, err
	}
	return callback(s, TopicQuery, map[string]any{
		"type": "dynamicDataCallback", "outTrackId": m.Track, "corpId": corp,
		"userId": m.User, "content": string(content),
	})
}

// Plugin is an AI plugin calling the bot, an HTTP request in a frame. The answer
// is waited for.
type Plugin struct {
	URI  string          // default: /v1/actions/example
	Body json.RawMessage // default: a small object
}

func (m Plugin) frame(s scope) (frame, error) {
	set(&m.URI, "/v1/actions/example")
	if m.Body == nil {
		m.Body = json.RawMessage(`{"userId":"staff0001","input":"hello"}`)
	}
	return callback(s, TopicPlugin, map[string]any{
		"requestLine": map[string]any{"method": "POST", "uri": m.URI},
		"headers": map[string]any{
			"Content-Type": "application/json", "x-plugin-id": "plugin-test",
			"x-plugin-version": "1.0.0", "x-ability-key": "ability-test",
		},
		"body": string(m.Body),
	})
}
