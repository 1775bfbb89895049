package sqlite

import (
	"fmt"

	"github.com/penstock-io/penstock/message"
)

// codecVersion is the first byte of an item. It changes only when fields that are
// kept change their meaning.
const codecVersion = 1

// appendInbound writes a message.
func appendInbound(b []byte, m *message.Inbound) []byte {
	c := codec{b: append(b, codecVersion), payload: string(m.Raw)}
	at := len(c.b)
	c.inbound(m)
	c.seal(at)
	return c.b
}

// readInbound reads a message. It never shares memory with body.
func readInbound(body []byte) (*message.Inbound, error) {
	c, err := unseal(body)
	if err != nil {
		return nil, err
	}
	m := &message.Inbound{Raw: message.Raw(c.payload)}
	if c.inbound(m); c.bad {
		return nil, fmt.Errorf("%w: message cannot be read", ErrDamaged)
	}
	return m, nil
}

// appendOutbound writes a reply.
func appendOutbound(b []byte, o *message.Outbound) []byte {
	c := codec{b: append(b, codecVersion)}
	at := len(c.b)
	c.outbound(o)
	c.seal(at)
	return c.b
}

// readOutbound reads a reply. It never shares memory with body.
func readOutbound(body []byte) (*message.Outbound, error) {
	c, err := unseal(body)
	if err != nil {
		return nil, err
	}
	o := new(message.Outbound)
	if c.outbound(o); c.bad {
		return nil, fmt.Errorf("%w: reply cannot be read", ErrDamaged)
	}
	return o, nil
}

func (c *codec) inbound(m *message.Inbound) {
	str(c, &m.ID)
	str(c, &m.Installation)
	str(c, &m.Conversation.ID)
	integer(c, &m.Schema)
	str(c, &m.FrameID)
	str(c, &m.Platform)
	str(c, &m.Kind)
	str(c, &m.Topic)
	str(c, &m.Conversation.Type)
	str(c, &m.Conversation.Title)
	str(c, &m.Sender.ID)
	str(c, &m.Sender.StaffID)
	str(c, &m.Sender.UnionID)
	str(c, &m.Sender.Name)
	str(c, &m.RobotCode)
	str(c, &m.Type)
	str(c, &m.Text)
	list(c, &m.Media, codeMedia)
	c.bool(&m.MentionsBot)
	list(c, &m.Mentions, str)
	c.quote(&m.Quote)
	c.bool(&m.Unreadable)
	str(c, &m.PlatformError)
	c.time(&m.SentAt)
	c.time(&m.ReceivedAt)
	integer(c, &m.Attempt)
	c.time(&m.AnswerBy)
	str(c, &m.AppID)
}

func codeMedia(c *codec, m *message.Media) {
	str(c, &m.Kind)
	str(c, &m.Code)
	str(c, &m.AltCode)
	str(c, &m.Name)
	integer(c, &m.Duration)
}

func (c *codec) quote(q **message.Quote) {
	there := *q != nil
	if c.bool(&there); !there {
		return
	}
	if c.reading {
		*q = new(message.Quote)
	}
	str(c, &(*q).ID)
	str(c, &(*q).Sender)
	str(c, &(*q).Type)
	str(c, &(*q).Text)
	list(c, &(*q).Media, codeMedia)
}

func (c *codec) outbound(o *message.Outbound) {
	str(c, &o.ID)
	str(c, &o.Installation)
	str(c, &o.Conversation)
	str(c, &o.Format)
	str(c, &o.Title)
	str(c, &o.Text)
	list(c, &o.Mentions, str)
	c.bool(&o.MentionAll)
	bytes(c, &o.Card)
	str(c, &o.InReplyTo)
	integer(c, &o.Part)
	integer(c, &o.Parts)
	str(c, &o.Group)
	c.time(&o.CreatedAt)
	bytes(c, &o.Target)
}
