package router

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// ErrNoRoute is returned by a [Router] when no route takes the message.
var ErrNoRoute = errors.New("no route takes the message")

// Reason is why a try failed: one of few words, fit for a metric's label.
type Reason string

// Reasons.
const (
	ReasonHandler   Reason = "handler"    // the handler returned an error of its own
	ReasonPanic     Reason = "panic"      // the handler panicked
	ReasonTimeout   Reason = "timeout"    // the handler took too long
	ReasonCanceled  Reason = "canceled"   // the caller gave up, as on a stop
	ReasonNetwork   Reason = "network"    // the endpoint could not be reached or broke off
	ReasonStatus    Reason = "status"     // the endpoint answered with a failing status
	ReasonBadAnswer Reason = "bad_answer" // the handler did its work, its answer is of no use
	ReasonCommand   Reason = "command"    // the command could not be started
	ReasonExit      Reason = "exit"       // the command ended with a failing status
	ReasonNoRoute   Reason = "no_route"   // no route took the message
	ReasonUnreached Reason = "unreached"  // there was nobody to ask
)

// Error is how a handler says what is to happen next. An error without one in
// its chain means: try again after the usual backoff.
type Error struct {
	// Permanent means that another try cannot do better: dead letter.
	Permanent bool
	// After is the least wait before the next try, 0 for the usual backoff.
	After time.Duration
	// Unreached means that there was nobody who could have done the work: the try
	// does not count, however often it is repeated. After bounds the wait, 0 for
	// five seconds. It says nothing beside Permanent.
	Unreached bool
	// Reason is for counting. Empty counts as ReasonHandler.
	Reason Reason
	// Err is the cause. Its text is shown to operators and holds no secret.
	Err error
}

// Error gives the text of the cause.
func (e *Error) Error() string {
	switch {
	case e == nil:
		return "handler returned a nil *router.Error"
	case e.Err == nil:
		return fmt.Sprintf("handler failed: %s", e.reason())
	}
	return e.Err.Error()
}

// Unwrap gives the cause.
func (e *Error) Unwrap() error {
	if e == nil {
		return nil
	}
	return e.Err
}

func (e *Error) reason() Reason {
	switch {
	case e.Reason != "":
		return e.Reason
	case e.Unreached:
		return ReasonUnreached
	}
	return ReasonHandler
}

// IsPermanent tells whether err says that another try cannot do better.
func IsPermanent(err error) bool {
	e, ok := errors.AsType[*Error](err)
	return ok && e != nil && e.Permanent
}

// IsUnreached tells whether err says that nobody was there to do the work.
func IsUnreached(err error) bool {
	e, ok := errors.AsType[*Error](err)
	return ok && e != nil && e.Unreached && !e.Permanent
}

// RetryAfter gives the least wait that err asks for, 0 for the usual backoff.
func RetryAfter(err error) time.Duration {
	e, ok := errors.AsType[*Error](err)
	if !ok || e == nil {
		return 0
	}
	return max(0, e.After)
}

// ReasonOf gives the label under which err is counted, "" for nil.
func ReasonOf(err error) Reason {
	if e, ok := errors.AsType[*Error](err); ok && e != nil {
		return e.reason()
	}
	switch {
	case err == nil:
		return ""
	case errors.Is(err, ErrNoRoute):
		return ReasonNoRoute
	case errors.Is(err, context.DeadlineExceeded):
		return ReasonTimeout
	case errors.Is(err, context.Canceled):
		return ReasonCanceled
	}
	return ReasonHandler
}

// PanicError is the cause of an [Error] with ReasonPanic. Stack is the stack of
// the goroutine that panicked, for the log.
type PanicError struct {
	Value any
	Stack []byte
}

// maxPanicText bounds the text of a panic's value, which may be anything.
const maxPanicText = 512

// Error tells the value, without the stack.
func (e *PanicError) Error() string {
	return "handler panicked: " + cut(safeText(e.Value), maxPanicText)
}

// Unwrap gives the value if it is an error, so that errors.Is finds it.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// safeText formats v. The fmt package contains a panic of v's own methods.
func safeText(v any) string { return fmt.Sprint(v) }

// broken makes the error of a try that failed and may be repeated.
func broken(reason Reason, format string, args ...any) *Error {
	return &Error{Reason: reason, Err: fmt.Errorf(format, args...)}
}

// refused makes the error of a try that must not be repeated.
func refused(reason Reason, format string, args ...any) *Error {
	return &Error{Permanent: true, Reason: reason, Err: fmt.Errorf(format, args...)}
}
