package message

import (
	"encoding/json"
	"time"
)

// Schema is the version of the JSON form of [Inbound]. Fields are only added
// under one version; a change of meaning raises it.
const Schema = 1

// Kind tells what sort of thing an [Inbound] is.
type Kind string

// Kinds of inbound messages.
const (
	KindMessage  Kind = "message"  // a person wrote to the bot
	KindDelegate Kind = "delegate" // a person wrote to somebody whose chat the bot hosts
	KindCard     Kind = "card"     // a person pressed something on a card
	KindQuery    Kind = "query"    // a card asks for fresh data
	KindPlugin   Kind = "plugin"   // an AI plugin calls the bot
	KindEvent    Kind = "event"    // something happened on the platform
)

// Type tells what a chat message holds.
type Type string

// Types of content. A type that the platform has and this list has not is
// TypeUnknown, with the payload in Raw.
const (
	TypeText     Type = "text"
	TypeMarkdown Type = "markdown"
	TypeRich     Type = "rich" // runs of text and images
	TypeImage    Type = "image"
	TypeAudio    Type = "audio"
	TypeVideo    Type = "video"
	TypeFile     Type = "file"
	TypeCard     Type = "card"
	TypeRecord   Type = "record" // several messages forwarded as one
	TypeUnknown  Type = "unknown"
)

// ChatType tells a chat of two from a group.
type ChatType string

// Chat types; ChatNone is for what belongs to no chat, such as an event.
const (
	ChatDirect ChatType = "direct"
	ChatGroup  ChatType = "group"
	ChatNone   ChatType = "none"
)

// Inbound is one message as a handler gets it. Its JSON form is the body that
// the http and exec handlers receive; docs/handlers.md describes every field.
type Inbound struct {
	Schema       int            `json:"schema"`
	ID           ID             `json:"id"`
	FrameID      FrameID        `json:"frame_id,omitempty"`
	Installation InstallationID `json:"installation"`
	Platform     Platform       `json:"platform"`
	Kind         Kind           `json:"kind"`
	// Topic is the vendor's routing word: the callback topic, or the event type.
	Topic        string       `json:"topic,omitempty"`
	Conversation Conversation `json:"conversation"`
	Sender       Sender       `json:"sender"`
	// RobotCode is the id under which the platform knows the bot, if it says.
	RobotCode string `json:"robot_code,omitempty"`
	// AppID is the id under which the platform knows the bot's application.
	AppID       string   `json:"app_id,omitempty"`
	Type        Type     `json:"type,omitempty"`
	Text        string   `json:"text"`
	Media       []Media  `json:"media,omitempty"`
	MentionsBot bool     `json:"mentions_bot,omitempty"`
	Mentions    []UserID `json:"mentions,omitempty"`
	Quote       *Quote   `json:"quote,omitempty"`
	// Unreadable is set when the platform withheld the content (over quota);
	// PlatformError then holds its code.
	Unreadable    bool   `json:"unreadable,omitempty"`
	PlatformError string `json:"platform_error,omitempty"`
	// SentAt is the platform's time, zero when it gave none; ReceivedAt is ours.
	SentAt     time.Time `json:"sent_at,omitzero"`
	ReceivedAt time.Time `json:"received_at,omitzero"`
	// Attempt counts the tries of the handler, from 1. It goes on across restarts.
	Attempt int `json:"attempt"`
	// AnswerBy is set on a synchronous message: what the handler answers after it
	// cannot reach the platform in the acknowledgement any more.
	AnswerBy time.Time `json:"answer_by,omitzero"`
	// Raw is the vendor's payload, byte for byte.
	Raw Raw `json:"raw,omitempty"`
}

// Synchronous tells whether the platform waits for the handler's answer in the
// acknowledgement.
func (m *Inbound) Synchronous() bool {
	return m.Kind == KindCard || m.Kind == KindQuery || m.Kind == KindPlugin
}

// Age is how long ago the platform says the message was sent, as of now. It is
// 0 when the platform gave no time or one that is ahead of our clock.
func (m *Inbound) Age(now time.Time) time.Duration {
	if m.SentAt.IsZero() {
		return 0
	}
	return max(0, now.Sub(m.SentAt))
}

// Conversation is the chat a message belongs to.
type Conversation struct {
	ID    ConversationID `json:"id"`
	Type  ChatType       `json:"type"`
	Title string         `json:"title,omitempty"`
}

// Sender is who wrote. ID is always the platform's opaque id; StaffID is empty
// for people outside the organisation.
type Sender struct {
	ID      UserID `json:"id,omitempty"`
	StaffID UserID `json:"staff_id,omitempty"`
	UnionID UserID `json:"union_id,omitempty"`
	Name    string `json:"name,omitempty"`
}

// Media is one attached image, file or recording. Code fetches it from the
// platform; AltCode is a second code to try when the first one fails. Name comes
// from the sender and is data: never use it as a path.
type Media struct {
	Kind     Type          `json:"kind"`
	Code     string        `json:"code,omitempty"`
	AltCode  string        `json:"alt_code,omitempty"`
	Name     string        `json:"name,omitempty"`
	Duration time.Duration `json:"duration_ns,omitempty"`
}

// Quote is the message that a message answers.
type Quote struct {
	ID     ID      `json:"msg_id,omitempty"`
	Sender UserID  `json:"sender,omitempty"`
	Type   Type    `json:"type,omitempty"`
	Text   string  `json:"text,omitempty"`
	Media  []Media `json:"media,omitempty"`
}

// Raw is a vendor's payload. It is a string so that fields cut from it can
// share its memory. In JSON it stands as it is when it is valid JSON, else as a
// string.
type Raw string

// MarshalJSON writes the payload itself, or a JSON string if it is not JSON.
func (r Raw) MarshalJSON() ([]byte, error) {
	if json.Valid([]byte(r)) {
		return []byte(r), nil
	}
	return json.Marshal(string(r))
}

// UnmarshalJSON keeps the bytes as they stand.
func (r *Raw) UnmarshalJSON(b []byte) error {
	*r = Raw(b)
	return nil
}
