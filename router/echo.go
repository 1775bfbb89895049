package router

import (
	"context"
	"strings"

	"github.com/penstock-io/penstock/message"
)

// Echo is a [Handler] that replies with the message's own text: markdown to
// markdown, text to anything else, and nothing to a message without text.
type Echo struct{}

// Handle never fails and never blocks.
func (Echo) Handle(_ context.Context, m *message.Inbound) (Result, error) {
	if strings.TrimSpace(m.Text) == "" {
		return Result{}, nil
	}
	reply := message.Reply{Format: message.FormatText, Text: m.Text}
	if m.Type == message.TypeMarkdown {
		reply.Format = message.FormatMarkdown
	}
	return Result{Replies: []message.Reply{reply}}, nil
}
