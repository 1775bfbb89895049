package payload

import (
	"cmp"
	"strings"

	"github.com/penstock-io/penstock/internal/jsonscan"
	"github.com/penstock-io/penstock/message"
)

// readCard reads a pressed card, or one that asks for data. Text is the ids of
// what was pressed or is asked for, with commas between them. Cards know a person
// by a staff id or a union id only, so that one stands for the opaque id, too.
func readCard(m *message.Inbound, f *Frame) error {
	var track, token, user, userType, content jsonscan.Value
	doc := jsonscan.ReadObject(f.Data)
	for doc.Next() {
		switch v := doc.Value(); doc.Key() {
		case "outTrackId":
			track = v
		case "conversationToken":
			token = v
		case "userId":
			user = v
		case "userIdType":
			userType = v
		case "content":
			content = v
		}
	}
	if m.Kind == message.KindCard {
		m.Type = message.TypeCard
	}
	m.SentAt = unixMilli(f.SentAt)
	m.Conversation.ID = conversation("card:", cmp.Or(track.Text(), token.Text(), f.MessageID))
	m.Sender.ID = message.UserID(user.Text())
	if userType.Text() == "2" {
		m.Sender.UnionID = m.Sender.ID
	} else {
		m.Sender.StaffID = m.Sender.ID
	}
	m.Text = strings.Join(cardIDs(open(content)), ",")
	return doc.Err()
}

func conversation(prefix, id string) message.ConversationID {
	return message.ConversationID(prefix + id)
}

// cardIDs gives the ids of the pressed actions or of the data that is asked for.
func cardIDs(content jsonscan.Value) []string {
	var ids []string
	for m := content.Members(); m.Next(); {
		switch m.Key() {
		case "cardPrivateData":
			ids = append(ids, actionIDs(open(m.Value()))...)
		case "dynamicDataSourceQueryRequests":
			for e := m.Value().Elements(); e.Next(); {
				ids = appendText(ids, member(e.Value(), "dynamicDataSourceId"))
			}
		}
	}
	return ids
}

func actionIDs(data jsonscan.Value) []string {
	var ids []string
	for e := member(data, "actionIds").Elements(); e.Next(); {
		ids = appendText(ids, e.Value())
	}
	return ids
}

func appendText(list []string, v jsonscan.Value) []string {
	if text := v.Text(); text != "" {
		list = append(list, text)
	}
	return list
}

// member gives one member of an object, the last of its name.
func member(v jsonscan.Value, name string) (found jsonscan.Value) {
	for m := v.Members(); m.Next(); {
		if m.Key() == name {
			found = m.Value()
		}
	}
	return found
}

// readPlugin reads a plugin call: an HTTP request inside a document. Calls of one
// ability are one conversation.
func readPlugin(m *message.Inbound, f *Frame) error {
	var headers jsonscan.Value
	doc := jsonscan.ReadObject(f.Data)
	for doc.Next() {
		if doc.Key() == "headers" {
			headers = doc.Value()
		}
	}
	ability := ""
	for h := headers.Members(); h.Next(); {
		if strings.EqualFold(h.Key(), "x-ability-key") {
			ability = h.Value().Text()
		}
	}
	m.SentAt = unixMilli(f.SentAt)
	m.Conversation.ID = conversation("plugin:", cmp.Or(ability, f.MessageID))
	return doc.Err()
}
