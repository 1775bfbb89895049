package ops

import (
	"context"
	"errors"
	"fmt"

	"github.com/penstock-io/penstock/relay"
	"github.com/penstock-io/penstock/store"
)

// ErrBadRequest means that a verb was asked for something that makes no sense.
var ErrBadRequest = errors.New("bad request")

// ErrHandler means that the handler of a replay failed.
var ErrHandler = errors.New("handler failed")

// Kind is the word for an error that crosses the socket.
type Kind string

// Kinds. KindOther is any error that has none of its own.
const (
	KindBadRequest     Kind = "bad_request"
	KindNotFound       Kind = "not_found"
	KindInvalid        Kind = "invalid"
	KindFull           Kind = "full"
	KindBusy           Kind = "busy"
	KindClosed         Kind = "closed"
	KindNoRoute        Kind = "no_route"
	KindNoInstallation Kind = "no_installation"
	KindNoAdmin        Kind = "no_admin"
	KindHandler        Kind = "handler"
	KindTimeout        Kind = "timeout"
	KindNoEdge         Kind = "no_edge"
	KindNoConsumer     Kind = "no_consumer"
	KindNoFrame        Kind = "no_frame"
	KindAnswered       Kind = "answered"
	KindNotKept        Kind = "not_kept"
	KindOther          Kind = "other"
)

// kinds pairs each kind with the error that errors.Is finds on both sides and the
// status that a response has.
var kinds = []struct {
	kind   Kind
	target error
	status int
}{
	{KindBadRequest, ErrBadRequest, 400},
	{KindNotFound, store.ErrNotFound, 404},
	{KindInvalid, store.ErrInvalid, 400},
	{KindFull, store.ErrFull, 507},
	{KindBusy, relay.ErrBusy, 503},
	{KindClosed, relay.ErrClosed, 503},
	{KindClosed, store.ErrClosed, 503},
	{KindNoRoute, relay.ErrNoRoute, 404},
	{KindNoInstallation, relay.ErrNoInstallation, 404},
	{KindNoAdmin, relay.ErrNoAdmin, 501},
	{KindHandler, ErrHandler, 502},
	{KindTimeout, context.DeadlineExceeded, 504},
	{KindNoEdge, ErrNoEdge, 501},
	{KindNoConsumer, ErrNoConsumer, 404},
	{KindNoFrame, ErrNoFrame, 404},
	{KindAnswered, ErrAnswered, 409},
	{KindNotKept, ErrNotKept, 409},
}

// classify gives the kind of err and the status for it.
func classify(err error) (Kind, int) {
	for _, k := range kinds {
		if errors.Is(err, k.target) {
			return k.kind, k.status
		}
	}
	return KindOther, 500
}

// Error is an error that the other side of the socket gave, or one that wraps
// nothing so that it is not taken for what caused it.
type Error struct {
	Kind Kind   `json:"kind"`
	Text string `json:"text"`
}

// Error gives the text as it was on the other side.
func (e *Error) Error() string { return e.Text }

// Is tells whether the error was of the target's kind on the other side.
func (e *Error) Is(target error) bool {
	for _, k := range kinds {
		if e.Kind == k.kind && target == k.target { //nolint:errorlint // it is what Is is asked
			return true
		}
	}
	return false
}

func badRequest(format string, args ...any) error { return saying(ErrBadRequest, format, args...) }

// said is an error in words for an operator, who knows nothing of packages. What it
// wraps is there for errors.Is and errors.As alone.
type said struct {
	text string
	err  error
}

// Error gives the words.
func (e *said) Error() string { return e.text }

// Unwrap gives the cause.
func (e *said) Unwrap() error { return e.err }

// saying puts words in place of an error's text.
func saying(err error, format string, args ...any) error {
	return &said{fmt.Sprintf(format, args...), err}
}

// words are what is said of the errors of the store and the relay. Any other keeps
// its text.
var words = []struct {
	target error
	text   string
}{
	{store.ErrNotFound, "it is not there"},
	{store.ErrFull, "the store is full"},
	{store.ErrClosed, "the service is stopping"},
	{relay.ErrClosed, "the service is stopping"},
	{relay.ErrBusy, "too many replays wait for their turn; try again later"},
	{relay.ErrNoAdmin, "the store cannot be looked into"},
	{relay.ErrNoInstallation, "its installation is not configured"},
}

// inWords puts what was done, if that says anything, before an error.
func inWords(doing string, err error) error {
	text := err.Error()
	for _, w := range words {
		if errors.Is(err, w.target) {
			text = w.text
			break
		}
	}
	if doing != "" {
		text = doing + ": " + text
	}
	return &said{text, err}
}

// about is inWords for what was done to one item.
func about(ref Ref, err error) error {
	if errors.Is(err, store.ErrNotFound) {
		return saying(err, "%s", Absent(ref).Text)
	}
	return inWords(ref.String(), err)
}

// Absent is the error that says that an item is not there.
func Absent(ref Ref) *Error {
	text := fmt.Sprintf("%s is not there", ref)
	switch ref.Box {
	case store.BoxInbox.String():
		text = fmt.Sprintf("message %d is not in the inbox", ref.Seq)
	case store.BoxOutbox.String():
		text = fmt.Sprintf("reply %d is not in the outbox", ref.Seq)
	case store.BoxDeadIn.String(), store.BoxDeadOut.String():
		text = fmt.Sprintf("dead letter %d is not there", ref.Seq)
	}
	return &Error{KindNotFound, text}
}
