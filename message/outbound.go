package message

import (
	"encoding/json"
	"fmt"
	"time"
)

// Format tells how a reply's text is to be shown.
type Format string

// Formats of replies. FormatCard changes a card that was sent before; its body
// is Card. FormatVendor is a message in the platform's own form, which stands in
// Card and leaves as it is; it is never split, and mentions whom it says itself.
const (
	FormatText     Format = "text"
	FormatMarkdown Format = "markdown"
	FormatCard     Format = "card"
	FormatVendor   Format = "vendor"
)

// Reply is what a handler answers. The zero Format means FormatText.
type Reply struct {
	Format     Format          `json:"format,omitempty"`
	Title      string          `json:"title,omitempty"`
	Text       string          `json:"text,omitempty"`
	Mentions   []UserID        `json:"mentions,omitempty"`
	MentionAll bool            `json:"mention_all,omitempty"`
	Card       json.RawMessage `json:"card,omitempty"`
}

// Outbound is one reply, or one part of a long one, on its way out.
type Outbound struct {
	Reply
	// ID is unique and the same at every attempt.
	ID           ID             `json:"id"`
	Installation InstallationID `json:"installation"`
	Conversation ConversationID `json:"conversation"`
	// InReplyTo is the message whose handler answered, empty for a send.
	InReplyTo ID `json:"in_reply_to,omitempty"`
	// Part counts from 1 up to Parts; both are 1 for a reply that fits whole.
	Part  int `json:"part"`
	Parts int `json:"parts"`
	// Group is shared by the parts of one reply.
	Group     ID        `json:"group,omitempty"`
	CreatedAt time.Time `json:"created_at,omitzero"`
	Target    Target    `json:"target,omitempty"`
}

// Receipt is what a platform said of a reply it took.
type Receipt struct {
	// ID is the platform's handle of the sent message, if it gave one.
	ID string `json:"id,omitempty"`
	// Route names the way the reply took, for example "webhook".
	Route string `json:"route,omitempty"`
	// Warning is set when the platform took the reply and something was odd.
	Warning string `json:"warning,omitempty"`
}

// Landed tells whether a failed send may have reached the platform.
type Landed uint8

// Answers to "did it land?".
const (
	LandedNo    Landed = iota // certainly not: sending again cannot double it
	LandedMaybe               // perhaps: sending again may double it
)

// Next tells what may be done about a failed send.
type Next uint8

// Answers to "what next?".
const (
	NextAgain Next = iota // try again after the usual backoff
	NextWait              // try again, not before After
	NextNever             // this reply will never be taken: dead letter
	NextPark              // the installation cannot send at all until somebody acts
)

// SendError is a failed attempt to send, judged on two independent axes. After
// is the least wait for NextWait. Code is the platform's own word for it and is
// safe to show; Err must not hold secrets.
type SendError struct {
	Landed Landed
	Next   Next
	After  time.Duration
	Code   string
	Err    error
}

// Error tells the platform's code and the cause.
func (e *SendError) Error() string {
	if e.Code == "" {
		return fmt.Sprintf("send: %v", e.Err)
	}
	return fmt.Sprintf("send: %s: %v", e.Code, e.Err)
}

// Unwrap gives the cause.
func (e *SendError) Unwrap() error { return e.Err }
