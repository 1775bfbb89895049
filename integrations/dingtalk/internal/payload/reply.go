package payload

import (
	"log/slog"
	"time"

	"github.com/penstock-io/penstock/internal/jsonscan"
	"github.com/penstock-io/penstock/message"
)

// Reply is where an answer to a message can go. Fields that the payload did not
// hold are zero. It holds a secret, so it does not print.
type Reply struct {
	// Webhook is a secret address, open until WebhookExpires. It comes from
	// outside: check its host before using it.
	Webhook        string
	WebhookExpires time.Time
	RobotCode      string
	ConversationID message.ConversationID
	Direct         bool // a chat of two
	// StaffID is who wrote or pressed; empty for people outside the organisation.
	StaffID message.UserID
	// CardID is the outTrackId of the card that was pressed, and SpaceID and
	// SpaceType the place where it is shown.
	CardID    string
	SpaceID   string
	SpaceType string
}

// String hides the address.
func (Reply) String() string { return "[reply address]" }

// GoString hides the address.
func (r Reply) GoString() string { return r.String() }

// LogValue hides the address.
func (r Reply) LogValue() slog.Value { return slog.StringValue(r.String()) }

// ReplyAddress reads the address from the message's Raw, so it can be had again
// after a restart. What Raw does not hold comes from the message.
func ReplyAddress(m *message.Inbound) Reply {
	r := Reply{RobotCode: m.RobotCode}
	switch m.Kind {
	case message.KindMessage, message.KindDelegate:
		r.ConversationID = m.Conversation.ID
		r.Direct = m.Conversation.Type == message.ChatDirect
		r.StaffID = m.Sender.StaffID
		r.readDocument(string(m.Raw))
	case message.KindCard, message.KindQuery:
		r.StaffID = m.Sender.StaffID
		r.readDocument(string(m.Raw))
	case message.KindPlugin:
		r.readPlugin(string(m.Raw))
	}
	return r
}

func (r *Reply) readDocument(raw string) {
	for m := jsonscan.ReadObject(raw); m.Next(); {
		switch v := m.Value(); m.Key() {
		case "sessionWebhook":
			r.Webhook = v.Text()
		case "sessionWebhookExpiredTime":
			setTime(&r.WebhookExpires, v)
		case "robotCode":
			r.RobotCode = v.Text()
		case "outTrackId":
			r.CardID = v.Text()
		case "spaceId":
			r.SpaceID = v.Text()
		case "spaceType":
			r.SpaceType = v.Text()
		}
	}
}

// readPlugin finds the address in the body of the plugin's request.
func (r *Reply) readPlugin(raw string) {
	for m := jsonscan.ReadObject(raw); m.Next(); {
		if m.Key() != "body" {
			continue
		}
		for b := open(m.Value()).Members(); b.Next(); {
			switch v := b.Value(); b.Key() {
			case "sessionWebhook":
				r.Webhook = v.Text()
			case "sessionWebhookExpiredTime":
				setTime(&r.WebhookExpires, v)
			}
		}
	}
}
