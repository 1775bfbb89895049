package edge

import (
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/penstock-io/penstock/internal/jsonscan"
	"github.com/penstock-io/penstock/message"
)

// Types and topics of frames.
const (
	typeSystem      = "SYSTEM"
	typeEvent       = "EVENT"
	typeCallback    = "CALLBACK"
	topicPing       = "ping"
	topicDisconnect = "disconnect"
	topicAll        = "*"
)

// subscription is what a connection wants to be sent.
type subscription struct {
	Type  string `json:"type"`
	Topic string `json:"topic"`
}

// subscriptionOf is what a connection must want to be sent m. Events are
// subscribed to all together.
func subscriptionOf(m *message.Inbound) subscription {
	if m.Kind == message.KindEvent {
		return subscription{typeEvent, topicAll}
	}
	return subscription{typeCallback, m.Topic}
}

// header is a member of a frame's headers.
type header struct{ name, value string }

// appendFrame adds a frame as the vendor writes it, without headers that are empty.
func appendFrame(b []byte, sub subscription, id, data string, more ...header) []byte {
	b = append(b, `{"specVersion":"1.0","type":`...)
	b = jsonscan.AppendString(b, sub.Type)
	b = append(b, `,"headers":{"contentType":"application/json","messageId":`...)
	b = jsonscan.AppendString(b, id)
	b = append(b, `,"topic":`...)
	b = jsonscan.AppendString(b, sub.Topic)
	b = append(b, `,"time":"`...)
	b = strconv.AppendInt(b, time.Now().UnixMilli(), 10)
	b = append(b, '"')
	for _, h := range more {
		if h.value == "" {
			continue
		}
		b = jsonscan.AppendString(append(b, ','), h.name)
		b = jsonscan.AppendString(append(b, ':'), h.value)
	}
	b = append(b, `},"data":`...)
	return append(jsonscan.AppendString(b, data), '}')
}

// appendPush adds a message as the vendor would push it.
func appendPush(b []byte, m *message.Inbound, sub subscription, f carrier, data string) []byte {
	app, connection := header{"appId", m.AppID}, header{"connectionId", f.peer.id}
	if m.Kind != message.KindEvent {
		return appendFrame(b, sub, f.frame, data, connection, app)
	}
	app.name = "eventUnifiedAppId"
	more := []header{
		connection,
		app,
		{"eventId", string(m.ID)},
		{"eventType", m.Topic},
		{"eventCorpId", strings.TrimPrefix(string(m.Conversation.ID), "events:")},
	}
	if !m.SentAt.IsZero() {
		more = append(more, header{"eventBornTime", milli(m.SentAt)})
	}
	return appendFrame(b, sub, f.frame, data, more...)
}

func milli(t time.Time) string { return strconv.FormatInt(t.UnixMilli(), 10) }

// Members of a message that say where replies go.
const (
	webhookKey = "sessionWebhook"
	expiryKey  = "sessionWebhookExpiredTime"
)

// hasWebhook tells whether a document says where replies go.
func hasWebhook(doc string) bool {
	for m := jsonscan.ReadObject(doc); m.Next(); {
		if m.Key() == webhookKey {
			return true
		}
	}
	return false
}

// rewrite exchanges the reply address and its expiry, and leaves every other byte
// as it is. A document that is no JSON object comes back unchanged.
func rewrite(doc, webhook string, expires time.Time) string {
	var b strings.Builder
	b.Grow(len(doc) + len(webhook))
	done := 0
	m := jsonscan.ReadObject(doc)
	for m.Next() {
		v := m.Value()
		value := ""
		switch m.Key() {
		case webhookKey:
			value = `"` + webhook + `"` // a URL holds nothing that JSON spells otherwise
		case expiryKey:
			if value = milli(expires); v.Kind() == jsonscan.String {
				value = `"` + value + `"`
			}
		default:
			continue
		}
		end := m.End()
		b.WriteString(doc[done : end-len(v.Raw())])
		b.WriteString(value)
		done = end
	}
	if m.Err() != nil {
		return doc
	}
	b.WriteString(doc[done:])
	return b.String()
}

// answer is what a consumer said to a frame.
type answer struct {
	id   string
	code int
	// data is the inner document: unescaped if it came as a string, else as it is.
	data string
	// text is what a bad answer says of itself.
	text string
}

// readAnswer reads an answer leniently: numbers may be strings, and data an object.
// ok is false if it is none at all.
func readAnswer(b []byte) (a answer, ok bool) {
	code := false
	m := jsonscan.ReadObject(jsonscan.View(b))
	for m.Next() {
		switch v := m.Value(); m.Key() {
		case "code":
			n, isNumber := v.Int()
			a.code, code = int(n), isNumber
		case "headers":
			a.id = strings.Clone(messageID(v))
		case "data":
			a.data = strings.Clone(document(v))
		case "message":
			a.text = v.Text()
		}
	}
	if a.code == http.StatusOK {
		a.text = ""
	}
	a.text = strings.Clone(quoted(a.text))
	return a, code && m.Err() == nil
}

// maxQuoted bounds what is looked at of a bot's own words.
const maxQuoted = 4 << 10

// quoted cuts a bot's words between two of them, so that no half of a secret is left
// that would not be known for one.
func quoted(text string) string {
	if len(text) <= maxQuoted {
		return text
	}
	return text[:strings.LastIndexByte(text[:maxQuoted], ' ')+1]
}

// maxExcerpt is how much of a bot's own words is quoted, in bytes.
const maxExcerpt = 200

// query is what follows a URL's question mark, or the name of a secret, however they
// are spelt: reply addresses and tickets have their secrets there, and errors of web
// clients quote them.
var query = regexp.MustCompile(`(?i)(\?|%3f|\\u003f|(session|ticket|secret|token)\W{0,3}(=|:|%3d|\\u003d))[^\s"'<>]*`)

// excerpt makes a bot's words fit to be logged: one line, without secrets, short.
func excerpt(text string) string {
	if text == "" {
		return ""
	}
	text = query.ReplaceAllString(strings.Join(strings.Fields(strings.ToValidUTF8(text, "?")), " "), "?…")
	text = strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return '?'
	}, text)
	if len(text) > maxExcerpt {
		text = strings.ToValidUTF8(text[:maxExcerpt], "") + "…"
	}
	return text
}

func messageID(headers jsonscan.Value) (id string) {
	for m := headers.Members(); m.Next(); {
		if m.Key() == "messageId" {
			id = m.Value().Text()
		}
	}
	return id
}

func document(v jsonscan.Value) string {
	switch v.Kind() {
	case jsonscan.Object, jsonscan.Array:
		return v.Raw()
	default:
		return v.Text()
	}
}

// later tells whether the answer to an event asks for it again.
func (a *answer) later() bool {
	later := false
	for m := jsonscan.ReadObject(a.data); m.Next(); {
		if m.Key() == "status" {
			later = m.Value().Text() == "LATER"
		}
	}
	return later
}
