package message

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
