package payload

import (
	"strings"
	"unicode"

	"github.com/penstock-io/penstock/internal/jsonscan"
	"github.com/penstock-io/penstock/message"
)

// robot is a robot message on the way to a message.Inbound: the parts that need
// other parts to be understood, whatever order they come in.
type robot struct {
	chatType, msgType jsonscan.Value
	text, content     jsonscan.Value // one holds the body; which one depends on the type

	// Who was mentioned, and the bot's own id, by which it is told from the others.
	inAtList, atUsers, botID jsonscan.Value

	quoted, original jsonscan.Value // the older form of a quote, and the quoted id

	errorCode jsonscan.Value // why the body is missing
}

// readRobot reads a chat message, to the bot itself or to somebody it stands in
// for.
func readRobot(m *message.Inbound, data string) error {
	var r robot
	doc := jsonscan.ReadObject(data)
	for doc.Next() {
		if key, v := doc.Key(), doc.Value(); !r.take(key, v) {
			takePlain(m, key, v)
		}
	}
	r.finish(m)
	return doc.Err()
}

// take keeps a part for later.
func (r *robot) take(key string, v jsonscan.Value) bool {
	switch key {
	case "conversationType":
		r.chatType = v
	case "msgtype":
		r.msgType = v
	case "text":
		r.text = v
	case "content":
		r.content = v
	case "errorCode", "errCode": // the documentation has both
		r.errorCode = v
	case "isInAtList":
		r.inAtList = v
	case "atUsers":
		r.atUsers = v
	case "quoteMessage":
		r.quoted = v
	case "originalMsgId":
		r.original = v
	case "chatbotUserId":
		r.botID = v
	default:
		return false
	}
	return true
}

// takePlain sets what needs no other part.
func takePlain(m *message.Inbound, key string, v jsonscan.Value) {
	switch key {
	case "msgId":
		m.ID = message.ID(v.Text())
	case "conversationId":
		m.Conversation.ID = message.ConversationID(v.Text())
	case "conversationTitle":
		m.Conversation.Title = v.Text()
	case "senderId":
		m.Sender.ID = message.UserID(v.Text())
	case "senderStaffId":
		m.Sender.StaffID = message.UserID(v.Text())
	case "senderUnionId":
		m.Sender.UnionID = message.UserID(v.Text())
	case "senderNick":
		m.Sender.Name = v.Text()
	case "robotCode":
		m.RobotCode = v.Text()
	case "createAt", "createA": // the second is a documented misspelling
		setTime(&m.SentAt, v)
	}
}

func (r *robot) finish(m *message.Inbound) {
	bot := r.botID.Text()
	only := r.mentions(m, bot)
	m.Conversation.Type = r.chat(m)
	text, content := readParts(r.text), readParts(r.content)
	b := readBody(r.msgType.Text(), &text, &content, bot)
	m.Type, m.Text, m.Media = b.kind, b.text, b.media
	if only && strings.HasPrefix(m.Text, "@") {
		// In a card from another bot the mention is a run of text of its own and
		// comes first; with nobody but the bot mentioned, it is the bot's.
		m.Text = m.Text[b.lead:]
	}
	if m.Conversation.Type == message.ChatGroup {
		// The platform takes the bot's mention out and leaves the space after it.
		m.Text = strings.TrimLeftFunc(m.Text, unicode.IsSpace)
	}
	m.Quote = r.quote(firstValue(text.replied, content.replied, r.quoted), bot)
	if code := r.errorCode.Text(); code != "" && code != "0" {
		m.PlatformError = code
		m.Unreadable = m.Text == "" && len(m.Media) == 0
	}
}

// chat tells the type of the conversation. Where the platform does not say, a
// title or a mention tells a group.
func (r *robot) chat(m *message.Inbound) message.ChatType {
	switch r.chatType.Text() {
	case "1":
		return message.ChatDirect
	case "2":
		return message.ChatGroup
	}
	if m.Conversation.ID == "" {
		return message.ChatNone
	}
	if m.Conversation.Title != "" || m.MentionsBot || len(m.Mentions) > 0 {
		return message.ChatGroup
	}
	return message.ChatDirect
}

// mentions reads who was mentioned; only is set if the bot was and nobody else.
func (r *robot) mentions(m *message.Inbound, bot string) (only bool) {
	m.MentionsBot = r.inAtList.Truth()
	listed := false
	for list := r.atUsers.Elements(); list.Next(); {
		id, staff := readAt(list.Value())
		switch {
		case id != "" && id == bot:
			m.MentionsBot, listed = true, true
		case staff != "":
			m.Mentions = append(m.Mentions, message.UserID(staff))
		case id != "":
			m.Mentions = append(m.Mentions, message.UserID(id))
		}
	}
	return listed && len(m.Mentions) == 0
}

func readAt(v jsonscan.Value) (id, staff string) {
	for m := v.Members(); m.Next(); {
		switch m.Key() {
		case "dingtalkId":
			id = m.Value().Text()
		case "staffId":
			staff = m.Value().Text()
		}
	}
	return id, staff
}
