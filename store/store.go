package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/penstock-io/penstock/message"
)

// Errors of a store. All of them can be asked for with errors.Is.
var (
	// ErrFull means that the store is at its configured bound.
	ErrFull = errors.New("store: full")
	// ErrClosed means that the store or writer has been closed.
	ErrClosed = errors.New("store: closed")
	// ErrNotFound means that an op names an item that is not in the store.
	ErrNotFound = errors.New("store: no such item")
	// ErrInvalid means that an op cannot be applied whatever the store holds: an
	// append without a message, or something that cannot be encoded.
	ErrInvalid = errors.New("store: invalid op")
)

// Seq is the place of an item in the store's order. The inbox and the outbox
// count apart; both start at 1.
type Seq int64

// State is where an item stands.
type State uint8

// States. Inbox items are pending, done or dead; outbox items are pending,
// sending, sent (done) or dead.
const (
	StateNew     State = iota // not in the store before
	StatePending              // waiting for its turn or its next attempt
	StateSending              // an attempt was begun and not settled
	StateDone                 // handled, or sent
	StateDead                 // dead letter
)

var stateNames = [...]string{"new", "pending", "sending", "done", "dead"}

// String gives the word used in listings and metrics.
func (s State) String() string {
	if int(s) < len(stateNames) {
		return stateNames[s]
	}
	return fmt.Sprintf("state(%d)", uint8(s))
}

// Op is one change. The concrete types are the pointers in this package.
type Op interface {
	// Result is the op's own outcome, valid after Commit returned nil: nil, or
	// an error that concerns this op alone and left nothing behind (ErrFull,
	// ErrNotFound, ErrInvalid).
	Result() error
	setResult(error)
}

// Outcome is the part that all ops share. It is written by the store.
type Outcome struct{ err error }

// Result implements Op.
func (o *Outcome) Result() error { return o.err }

func (o *Outcome) setResult(err error) { o.err = err }

// Fail records the outcome of an op: why the store could not apply it, or nil,
// which takes back what an earlier commit left there. Only stores call it, for
// each op, before Commit returns.
func Fail(op Op, err error) { op.setResult(err) }

// Append puts a message into the inbox. Bury, when not empty, puts it among the
// dead letters at once, with that reason. A message without an ID is never a
// duplicate of another.
//
// An append over the store's bound fails with ErrFull, except that a duplicate is
// a duplicate and a buried one never fills the inbox. Such an append has not
// been seen: its message may be appended again, and it takes no number.
//
// Filled by the store: Seq is the item's number (of the first copy, if State is
// not StateNew); State is StateNew, or where the first copy stands.
type Append struct {
	Outcome
	Message *message.Inbound
	Bury    string

	Seq   Seq
	State State
}

// Finish marks an inbox item done and puts the replies into the outbox, in
// order, in the same transaction. A reply whose ID is already known is not added
// again, as with Add. The store's bound does not stop it: what was taken in can
// always be answered. Filled by the store: ReplySeqs, one for each.
type Finish struct {
	Outcome
	Seq     Seq
	Replies []message.Outbound
	// Unrouted notes that nobody has handled it, as no route took it. It is done all
	// the same; a store that keeps a history tells.
	Unrouted bool

	ReplySeqs []Seq
}

// Postpone records a failed attempt of an inbox item that will run again at At.
// Attempts is the number of tries so far.
type Postpone struct {
	Outcome
	Seq      Seq
	Attempts int
	At       time.Time
	Reason   string
}

// Bury moves an inbox item to the dead letters.
type Bury struct {
	Outcome
	Seq      Seq
	Attempts int
	Reason   string
}

// Add puts replies into the outbox that no message asked for: all of them, or with
// ErrFull none. A reply whose ID is already known in its installation, also one
// that was sent or buried inside the dedup window, is not added again; one
// without an ID never is known. Filled by the store: Seqs, one for each, that of
// the first copy for a known one.
type Add struct {
	Outcome
	Replies []message.Outbound

	Seqs []Seq
}

// Begin records that an attempt to send is about to be made. It is committed
// before the request leaves.
type Begin struct {
	Outcome
	Seq      Seq
	Attempts int // including this one
}

// Sent marks an outbox item as taken by the platform.
type Sent struct {
	Outcome
	Seq     Seq
	Receipt message.Receipt
}

// Again records a failed attempt of an outbox item that will be repeated at At.
type Again struct {
	Outcome
	Seq      Seq
	Attempts int
	At       time.Time
	Reason   string
}

// Discard moves an outbox item to the dead letters.
type Discard struct {
	Outcome
	Seq      Seq
	Attempts int
	Reason   string
}

// Pending is an inbox item that is neither done nor dead.
type Pending struct {
	Seq      Seq
	Message  *message.Inbound
	Attempts int
	At       time.Time // not to run before, zero when it never failed
}

// Outgoing is an outbox item that is neither sent nor dead.
type Outgoing struct {
	Seq      Seq
	Reply    message.Outbound
	State    State // StatePending or StateSending
	Attempts int
	At       time.Time
}

// Dead is a dead letter; exactly one of Message and Reply is set. Seq is its number
// in the inbox or the outbox, At is when it was buried.
type Dead struct {
	Seq      Seq
	Message  *message.Inbound
	Reply    *message.Outbound
	Attempts int
	At       time.Time
	Reason   string
}

// Head is what a scheduler needs to know of an item it has not loaded.
type Head struct {
	Seq          Seq
	Installation message.InstallationID
	Conversation message.ConversationID
}

// Counts are the numbers of items by state. Done and Sent count since the store
// opened, the others what it holds.
type Counts struct {
	Inbox, Outbox, DeadInbox, DeadOutbox, Done, Sent int64
	// LastInbox and LastOutbox are the highest numbers given so far, 0 before the
	// first.
	LastInbox, LastOutbox Seq
}

// Store keeps items. Commit is called by one goroutine at a time, the [Writer];
// the reading methods may be called from any number beside it and see whole
// transactions only.
type Store interface {
	// Commit applies ops in order as one transaction, each on what the ones before
	// it left. On an error nothing of the group holds and the same ops may be
	// committed again. It fails at once when ctx is done, and gives up when ctx
	// ends while it waits. What it was given of messages and replies it may keep.
	Commit(ctx context.Context, ops []Op) error
	// InboxHeads lists pending inbox items with numbers above after, in order, at
	// most limit of them. One whose time has not come is pending.
	InboxHeads(ctx context.Context, after Seq, limit int) ([]Head, error)
	// OutboxHeads does the same for outbox items that are pending or sending.
	OutboxHeads(ctx context.Context, after Seq, limit int) ([]Head, error)
	// LoadInbox reads those of the items that are pending, each once, in the order of
	// their numbers and all as the same commit left them. What is done, dead or
	// unknown is left out. Many at once cost less than one at a time.
	LoadInbox(ctx context.Context, seqs ...Seq) ([]Pending, error)
	// LoadOutbox does the same for those that are pending or sending.
	LoadOutbox(ctx context.Context, seqs ...Seq) ([]Outgoing, error)
	// DeadLetters lists dead letters, the last one buried first, at most limit of
	// them.
	DeadLetters(ctx context.Context, limit int) ([]Dead, error)
	// Counts gives the numbers of items.
	Counts(ctx context.Context) (Counts, error)
	// Close releases what the store holds. Calls after it return ErrClosed, except
	// that Close does nothing again.
	Close() error
}
