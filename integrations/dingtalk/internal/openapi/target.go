package openapi

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/penstock-io/penstock/integrations/dingtalk/internal/payload"
	"github.com/penstock-io/penstock/message"
)

// ErrNoAddress means that a message came from nowhere a reply could go to, such
// as an event of the organisation.
var ErrNoAddress = errors.New("the message has no reply address")

// Target is a reply address. Its JSON form is the [message.Target] that a store
// keeps; fields are only added to it. It holds a secret, the webhook.
type Target struct {
	Webhook string `json:"webhook,omitempty"`
	// Expires is when the webhook dies, in unix milliseconds; 0 is unknown.
	Expires      int64                  `json:"expires,omitempty"`
	RobotCode    string                 `json:"robot_code,omitempty"`
	Conversation message.ConversationID `json:"conversation,omitempty"`
	// Direct tells a chat of two, which the robot API addresses by StaffID.
	Direct  bool           `json:"direct,omitempty"`
	StaffID message.UserID `json:"staff_id,omitempty"`
	// Card is the outTrackId of the card that was pressed, User who pressed it,
	// and UserType how User is to be read (1 staff id, 2 union id).
	Card     string         `json:"card,omitempty"`
	User     message.UserID `json:"user,omitempty"`
	UserType int            `json:"user_type,omitempty"`
}

// Encode gives the form that is stored.
func (t Target) Encode() (message.Target, error) {
	b, err := encodeJSON(t)
	return message.Target(b), err
}

// String hides the address.
func (Target) String() string { return "[target]" }

// GoString hides the address.
func (Target) GoString() string { return "[target]" }

// Address gives the reply address of a message, ErrNoAddress if it has none. It
// does not block and keeps nothing.
func (s *Sender) Address(m *message.Inbound) (message.Target, error) {
	r := payload.ReplyAddress(m)
	t := Target{
		Webhook: r.Webhook, RobotCode: r.RobotCode,
		Conversation: r.ConversationID, Direct: r.Direct, StaffID: r.StaffID,
	}
	if !r.WebhookExpires.IsZero() {
		t.Expires = r.WebhookExpires.UnixMilli()
	}
	if r.CardID != "" {
		t.addCard(&r, m.Sender)
	}
	if t.Webhook == "" && t.Conversation == "" && t.StaffID == "" && t.Card == "" {
		return nil, fmt.Errorf("address %s: %w", m.ID, ErrNoAddress)
	}
	return t.Encode()
}

// addCard takes over which card was pressed, by whom and where. A card in a chat
// of two stands in a place named after the person.
func (t *Target) addCard(r *payload.Reply, who message.Sender) {
	t.Card, t.User, t.UserType = r.CardID, who.ID, 1
	if who.StaffID == "" {
		t.UserType = 2
	}
	if t.Conversation == "" {
		t.Conversation = message.ConversationID(r.SpaceID)
		t.Direct = r.SpaceID == "" || r.SpaceID == string(who.StaffID)
	}
}

// target reads the address of a reply. A reply without one, which is a send that
// answers nothing, goes to its conversation as to a group.
func (s *Sender) target(o *message.Outbound) (Target, error) {
	t := Target{Conversation: o.Conversation}
	if len(o.Target) > 0 {
		t = Target{}
		if err := json.Unmarshal(o.Target, &t); err != nil {
			// The cause may quote the address, so it is left out.
			return t, never("bad_target", errors.New("the reply address is not readable"))
		}
	}
	if t.RobotCode == "normal" { // what robots without a code of their own say
		t.RobotCode = ""
	}
	t.RobotCode = cmp.Or(t.RobotCode, s.cfg.RobotCode)
	return t, nil
}

// alive tells whether the webhook may be tried: it is there and has not expired,
// with a margin for clocks that differ.
func (t *Target) alive(now time.Time) bool {
	if t.Webhook == "" {
		return false
	}
	return t.Expires == 0 || now.Add(expiryMargin).UnixMilli() < t.Expires
}

const expiryMargin = time.Minute
