package store

import (
	"context"
	"fmt"
	"time"

	"github.com/penstock-io/penstock/message"
)

// Box is one of the four places in which an item can lie.
type Box uint8

// The boxes. Each of them counts its items by the numbers of the inbox or the
// outbox; a dead letter keeps the number it had.
const (
	BoxInbox Box = iota
	BoxOutbox
	BoxDeadIn
	BoxDeadOut
)

var boxNames = [...]string{"inbox", "outbox", "dead_in", "dead_out"}

// String gives the word used in listings.
func (b Box) String() string {
	if int(b) < len(boxNames) {
		return boxNames[b]
	}
	return fmt.Sprintf("box(%d)", uint8(b))
}

// Dead tells whether the box holds dead letters.
func (b Box) Dead() bool { return b == BoxDeadIn || b == BoxDeadOut }

// Query selects items of one box. A field that is zero selects nothing out.
type Query struct {
	Box          Box
	Installation message.InstallationID
	Conversation message.ConversationID
	// State is StatePending or StateSending in the inbox and the outbox.
	State State
	// Reason is a part of the last reason, told apart by case.
	Reason string
	// Since and Until bound Entry.Since: not before the one, before the other.
	Since, Until time.Time
	// After leaves out numbers up to it, for the next page.
	After Seq
	// Limit is the most entries wanted; none come when it is 0 or less.
	Limit int
}

// Entry is an item as a listing shows it.
type Entry struct {
	Box          Box
	Seq          Seq
	ID           message.ID
	Installation message.InstallationID
	Conversation message.ConversationID
	State        State
	Attempts     int
	// Since is when the item was put into this box: taken in, or buried.
	Since time.Time
	// At is when it may run again, zero when it never failed or is dead.
	At time.Time
	// Reason is why the last attempt failed, or why the item is dead.
	Reason string
}

// Item is an entry with what it holds; exactly one of Message and Reply is set.
type Item struct {
	Entry
	Message *message.Inbound
	Reply   *message.Outbound
}

// Requeue gives a dead letter another chance: it leaves the dead letters and goes
// to the end of the inbox or the outbox under a new number, with no attempts
// made. Box is BoxDeadIn or BoxDeadOut; any other fails with ErrInvalid. A store
// at its bound fails it with ErrFull, and the letter stays. Copies of the message
// are duplicates of the new item. Filled by the store: NewSeq.
type Requeue struct {
	Outcome
	Box Box
	Seq Seq

	NewSeq Seq
}

// Purge removes an item from any box for good, without handling or sending it. Its
// id stays known for the dedup window.
type Purge struct {
	Outcome
	Box Box
	Seq Seq
}

// History is what a store knows of one message. A store in memory knows less of
// what has ended, and leaves those fields zero.
type History struct {
	Seq      Seq
	State    State // pending, done or dead
	Received time.Time
	Attempts int
	At       time.Time // of the next attempt, if it failed before
	Ended    time.Time // when it was done or died
	Reason   string    // of the last failure, of the death or of the purge
	Replies  []ReplyHistory
}

// ReplyHistory is what a store knows of one reply to a message.
type ReplyHistory struct {
	Seq      Seq
	State    State // pending, sending, done (sent) or dead
	Attempts int
	At       time.Time
	Ended    time.Time
	Reason   string
	Receipt  message.Receipt // of a sent one
}

// ReasonPurged is the reason in the history of an item that was purged.
const ReasonPurged = "purged"

// ReasonUnrouted is the reason in the history of an item that no route took.
const ReasonUnrouted = "no route took it"

// Admin is what an operator's commands need of a store beside the ops Requeue and
// Purge. Every store in this module has it. The methods may be called from any
// number of goroutines beside Commit; each sees whole transactions only.
type Admin interface {
	// List gives the entries that a query selects, in the order of their numbers.
	List(ctx context.Context, q Query) ([]Entry, error)
	// Show reads one item; ErrNotFound if it is not in that box.
	Show(ctx context.Context, box Box, seq Seq) (Item, error)
	// Trace tells what became of a message and its replies: those that its handler
	// returned, and those whose ids [message.ID.Reply] has made, in two hours after
	// it. It fails with ErrNotFound if the message's id is not known, or not any
	// more.
	Trace(ctx context.Context, in message.InstallationID, id message.ID) (History, error)
}
