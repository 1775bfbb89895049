package payload

import (
	"cmp"

	"github.com/penstock-io/penstock/internal/jsonscan"
	"github.com/penstock-io/penstock/message"
)

// quote reads the message that was answered. Its content is missing where the bot
// itself sent it; then the id has to do. A quote inside it is left alone.
func (r *robot) quote(quoted jsonscan.Value, bot string) *message.Quote {
	original := message.ID(r.original.Text())
	quoted = open(quoted)
	if quoted.Kind() != jsonscan.Object {
		if original == "" {
			return nil
		}
		return &message.Quote{ID: original}
	}
	var q message.Quote
	var msgType string
	var text, content jsonscan.Value
	for m := quoted.Members(); m.Next(); {
		switch v := m.Value(); m.Key() {
		case "msgType", "msgtype":
			msgType = v.Text()
		case "msgId":
			q.ID = message.ID(v.Text())
		case "senderId":
			q.Sender = message.UserID(v.Text())
		case "text":
			text = v
		case "content":
			content = v
		}
	}
	textParts, contentParts := readParts(text), readParts(content)
	b := readBody(msgType, &textParts, &contentParts, bot)
	q.ID = cmp.Or(q.ID, original)
	q.Type, q.Text, q.Media = b.kind, b.text, b.media
	return &q
}
