package openapi

import (
	"slices"
	"strings"
	"unicode"

	"github.com/penstock-io/penstock/message"
)

const (
	// mentionsMax is how many people DingTalk lets one message mention.
	mentionsMax = 50
	// titleRunes keeps a title to what a chat list shows of it.
	titleRunes = 60
	// plainTitle stands in for the title that markdown must have when nothing in
	// the text can serve.
	plainTitle = "Reply"
)

// webhookBody is what the webhook takes. Mentions need the id in the text too.
func (s *Sender) webhookBody(o *message.Outbound) []byte {
	if o.Format == message.FormatVendor {
		return o.Card
	}
	ids := s.mentions(o)
	b := make([]byte, 0, len(o.Text)+len(o.Text)/8+512)
	b = append(b, '{')
	if o.Format == message.FormatMarkdown {
		b = appendField(b, "msgtype", "markdown")
		b = append(appendName(b, "markdown"), '{')
		b = appendField(b, "title", titleOf(o))
		b = appendField(b, "text", withMentions(o.Text, "\n\n", ids))
	} else {
		b = appendField(b, "msgtype", "text")
		b = append(appendName(b, "text"), '{')
		b = appendField(b, "content", withMentions(o.Text, " ", ids))
	}
	b = append(b, '}')
	if len(ids) > 0 || o.MentionAll {
		b = append(appendName(b, "at"), '{')
		b = appendStrings(appendName(b, "atUserIds"), ids)
		b = append(appendName(b, "isAtAll"), "false}"...)
		if o.MentionAll {
			b = append(b[:len(b)-len("false}")], "true}"...)
		}
	}
	return append(b, '}')
}

// msgParam is the template's parameter that the robot API takes, and msgKey the
// template. Robot templates cannot mention anybody.
func msgParam(o *message.Outbound) (msgKey string, param []byte) {
	b := make([]byte, 0, len(o.Text)+len(o.Text)/8+256)
	b = append(b, '{')
	if o.Format == message.FormatMarkdown {
		b = appendField(b, "title", titleOf(o))
		return "sampleMarkdown", append(appendField(b, "text", o.Text), '}')
	}
	return "sampleText", append(appendField(b, "content", o.Text), '}')
}

// template is msgParam for every format.
func template(o *message.Outbound) (msgKey string, param []byte, err error) {
	if o.Format == message.FormatVendor {
		return vendorTemplate(o.Card)
	}
	msgKey, param = msgParam(o)
	return msgKey, param, nil
}

// robotBody is what the robot API takes on its two routes.
func robotBody(t *Target, key string, param []byte) []byte {
	b := make([]byte, 0, len(param)+len(param)/8+512)
	b = append(b, '{')
	b = appendField(b, "robotCode", t.RobotCode)
	if t.Direct {
		b = appendStrings(appendName(b, "userIds"), []message.UserID{t.StaffID})
	} else {
		b = appendField(b, "openConversationId", string(t.Conversation))
	}
	b = appendField(b, "msgKey", key)
	return append(appendField(b, "msgParam", string(param)), '}')
}

// withMentions adds "@id" for each id that the text does not hold already.
func withMentions(text, sep string, ids []message.UserID) string {
	var missing []string
	for _, id := range ids {
		if at := "@" + string(id); !strings.Contains(text, at) {
			missing = append(missing, at)
		}
	}
	if len(missing) == 0 {
		return text
	}
	return text + sep + strings.Join(missing, " ")
}

// mentions gives the people to mention: each once, at most fifty, and only as
// many as leave most of a body for the text. An id that is not plain is not one.
func (s *Sender) mentions(o *message.Outbound) []message.UserID {
	var ids []message.UserID
	room := s.cfg.MaxBody / 4
	for _, id := range o.Mentions {
		cost := 2*len(id) + len(`"",`) + len(` @`)
		if len(ids) == mentionsMax || cost > room {
			break
		}
		if plain(string(id)) && !slices.Contains(ids, id) {
			ids = append(ids, id)
			room -= cost
		}
	}
	return ids
}

// plain tells whether s is printable ASCII without anything that JSON escapes.
func plain(s string) bool {
	return s != "" && strings.IndexFunc(s, func(r rune) bool {
		return r <= ' ' || r >= unicode.MaxASCII || r == '"' || r == '\\'
	}) < 0
}

// titleOf gives the title that markdown must have: the reply's own, else its
// first line that holds words, without the marks of markdown.
func titleOf(o *message.Outbound) string {
	if t := clip(o.Title); t != "" {
		return t
	}
	for line := range strings.Lines(o.Text) {
		if t := clip(strings.Trim(line, "#>*_`~|=- \t\r\n")); t != "" {
			return t
		}
	}
	return plainTitle
}

// clip makes s one short line of visible characters.
func clip(s string) string {
	var b strings.Builder
	runes := 0
	for _, r := range strings.TrimSpace(s) {
		if runes == titleRunes {
			break
		}
		if !unicode.IsPrint(r) {
			r = ' '
		}
		b.WriteRune(r)
		runes++
	}
	return strings.TrimSpace(b.String())
}
