package ops

import (
	"context"
	"encoding/json"
	"time"

	"github.com/penstock-io/penstock/message"
	"github.com/penstock-io/penstock/store"
)

// API is the verbs. Its methods may be called from any number of goroutines. They
// block until the store has answered.
type API interface {
	// List gives one page of entries in the order of their numbers, empty at the
	// end. Query.Limit is at most MaxPage; 0 stands for it.
	List(ctx context.Context, q Query) ([]Entry, error)
	// Show gives one item with what it holds; store.ErrNotFound.
	Show(ctx context.Context, ref Ref) (Item, error)
	// Requeue gives a dead letter another chance; store.ErrNotFound, and an error
	// leaves the letter as it is.
	Requeue(ctx context.Context, ref Ref) (Moved, error)
	// Purge removes an item for good; store.ErrNotFound.
	Purge(ctx context.Context, ref Ref) error
	// Replay has a message handled by a route of its own; store.ErrNotFound,
	// relay.ErrNoRoute.
	Replay(ctx context.Context, ref Ref, route string) (Moved, error)
	// Send puts a message of one's own into the outbox and may follow it.
	Send(ctx context.Context, m Send) (Sent, error)
	// Trace tells what is known of a message, once for each installation that
	// knows it; store.ErrNotFound if none does. An empty installation is any.
	Trace(ctx context.Context, in message.InstallationID, id message.ID) ([]Trace, error)
	EdgeAPI
}

// EdgeAPI is the verbs on the edge of a running service. On anything else they fail
// with ErrNoEdge.
type EdgeAPI interface {
	// Consumers gives the consumers with their connections. An empty name is any;
	// ErrNoConsumer if none has it.
	Consumers(ctx context.Context, name string) ([]Consumer, error)
	// Frames gives the frames that a consumer may still answer; ErrNoConsumer.
	Frames(ctx context.Context, consumer string) ([]Frame, error)
	// Resend has a frame written once more, and gives what it was before; ErrNoFrame,
	// ErrAnswered, ErrNotKept.
	Resend(ctx context.Context, frame string) (Frame, error)
}

// MaxPage is the most entries that List gives at once.
const MaxPage = 1000

// MaxText bounds the text of a message that is sent.
const MaxText = 256 << 10

// MaxWait bounds how long Send follows a message.
const MaxWait = time.Hour

// Ref names an item: a box (inbox, outbox, dead_in, dead_out) and a number.
type Ref struct {
	Box string    `json:"box"`
	Seq store.Seq `json:"seq"`
}

// Query selects entries of one box; store.Query describes its fields.
type Query struct {
	Box          string                 `json:"box"`
	Installation message.InstallationID `json:"installation,omitempty"`
	Conversation message.ConversationID `json:"conversation,omitempty"`
	State        string                 `json:"state,omitempty"`
	Reason       string                 `json:"reason,omitempty"`
	Since        time.Time              `json:"since,omitzero"`
	Until        time.Time              `json:"until,omitzero"`
	After        store.Seq              `json:"after,omitempty"`
	Limit        int                    `json:"limit,omitempty"`
}

// Entry is an item as a listing shows it. Fields are only added to it.
type Entry struct {
	Box          string                 `json:"box"`
	Seq          store.Seq              `json:"seq"`
	ID           message.ID             `json:"id"`
	Installation message.InstallationID `json:"installation"`
	Conversation message.ConversationID `json:"conversation"`
	// State is pending, sending or dead.
	State    string `json:"state"`
	Attempts int    `json:"attempts"`
	// Since is when it came into this box.
	Since time.Time `json:"since"`
	// NextAttempt is when it may run again, if it failed before.
	NextAttempt time.Time `json:"next_attempt,omitzero"`
	Reason      string    `json:"reason,omitempty"`
	// RunningSince is since when it is with its handler; then there is no NextAttempt,
	// and no Reason of an earlier one.
	RunningSince time.Time `json:"running_since,omitzero"`
}

// Item is an entry with its message, or its reply.
type Item struct {
	Entry
	// Message is as handlers get it, with webhooks hidden in raw.
	Message *message.Inbound `json:"message,omitempty"`
	Reply   *Reply           `json:"reply,omitempty"`
}

// Reply is what is to be sent, without the address.
type Reply struct {
	Format     message.Format   `json:"format"`
	Title      string           `json:"title,omitempty"`
	Text       string           `json:"text,omitempty"`
	Mentions   []message.UserID `json:"mentions,omitempty"`
	MentionAll bool             `json:"mention_all,omitempty"`
	Card       json.RawMessage  `json:"card,omitempty"`
	InReplyTo  message.ID       `json:"in_reply_to,omitempty"`
	Part       int              `json:"part"`
	Parts      int              `json:"parts"`
	CreatedAt  time.Time        `json:"created_at,omitzero"`
	// HasTarget tells that it has an address of its own, which is not shown.
	HasTarget bool `json:"has_target"`
}

// Moved tells where an item is now.
type Moved struct {
	Ref
	// Done is set by a replay whose handler has run; its Replies wait to be sent.
	Done    bool `json:"done,omitempty"`
	Replies int  `json:"replies,omitempty"`
}

// Send is a message of one's own.
type Send struct {
	// ID makes a repeated call harmless; empty makes one up.
	ID           message.ID             `json:"id,omitempty"`
	Installation message.InstallationID `json:"installation"`
	Conversation message.ConversationID `json:"conversation"`
	Markdown     bool                   `json:"markdown,omitempty"`
	Title        string                 `json:"title,omitempty"`
	Text         string                 `json:"text"`
	Mentions     []message.UserID       `json:"mentions,omitempty"`
	// Wait is how long to follow it, at most MaxWait; 0 is not at all.
	Wait time.Duration `json:"wait_ns,omitempty"`
}

// How a message of one's own stands.
const (
	SendQueued = "queued" // stored, and not yet sent
	SendKnown  = "known"  // one with this id was accepted before
	SendSent   = "sent"   // the platform took it
	SendDead   = "dead"   // it became a dead letter
)

// Sent tells how a message of one's own stands.
type Sent struct {
	ID      message.ID       `json:"id"`
	State   string           `json:"state"`
	Reason  string           `json:"reason,omitempty"`
	Receipt *message.Receipt `json:"receipt,omitempty"`
}

// Trace is what is known of one message. Fields are only added to it.
type Trace struct {
	Installation message.InstallationID `json:"installation"`
	ID           message.ID             `json:"id"`
	Seq          store.Seq              `json:"seq"`
	// State is pending, done or dead.
	State string `json:"state"`
	// FrameID and Conversation are known while the message is kept: not of one
	// that is done.
	FrameID      message.FrameID        `json:"frame_id,omitempty"`
	Conversation message.ConversationID `json:"conversation,omitempty"`
	// Received is when it was stored and acknowledged.
	Received    time.Time    `json:"received,omitzero"`
	Attempts    int          `json:"attempts"`
	NextAttempt time.Time    `json:"next_attempt,omitzero"`
	Ended       time.Time    `json:"ended,omitzero"`
	Reason      string       `json:"reason,omitempty"`
	Replies     []ReplyTrace `json:"replies"`
	// RunningSince is since when it is with its handler, Out the frame by which a
	// consumer of the edge has it.
	RunningSince time.Time `json:"running_since,omitzero"`
	Out          *Frame    `json:"out,omitempty"`
}

// ReplyTrace is what is known of one reply, or of a part of one.
type ReplyTrace struct {
	Seq store.Seq `json:"seq"`
	// State is pending, sending, sent or dead.
	State       string           `json:"state"`
	Attempts    int              `json:"attempts"`
	NextAttempt time.Time        `json:"next_attempt,omitzero"`
	Ended       time.Time        `json:"ended,omitzero"`
	Reason      string           `json:"reason,omitempty"`
	Receipt     *message.Receipt `json:"receipt,omitempty"`
}
