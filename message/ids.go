package message

import "strings"

// Platform names a vendor, for example "dingtalk".
type Platform string

// InstallationID names one bot's credentials on one platform. It is chosen in
// the configuration and is unique inside a process.
type InstallationID string

// ConversationID is a platform's id of one chat, whole and unchanged. With the
// installation it is the key by which messages are kept in order.
type ConversationID string

// ID identifies a message inside its installation. It is the platform's stable
// message or event id where there is one, else the id of the frame.
type ID string

// Reply makes the id of a reply to the message that no handler has returned, out of
// something unique. By such an id the reply is found from the message after it was
// sent.
func (id ID) Reply(unique string) ID { return id + replySign + ID(unique) }

// IsReplyTo tells whether id was made by Reply, of m or as part of one that was.
func (id ID) IsReplyTo(m ID) bool {
	return m != "" && strings.HasPrefix(string(id), string(m+replySign))
}

const replySign = "/send-"

// FrameID identifies one push on the wire; a redelivery may carry another one.
type FrameID string

// UserID is a platform's id of a person.
type UserID string

// Target is a reply address in the form its platform understands: opaque bytes
// that survive a restart. It may hold secrets and is never logged or shown.
type Target []byte

// String hides the address, which may hold a secret.
func (Target) String() string { return "[target]" }

// GoString hides the address, which may hold a secret.
func (Target) GoString() string { return "[target]" }
