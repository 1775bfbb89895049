package dispatch

import (
	"errors"
	"fmt"
)

// Reasons why a job or a configuration is refused; ask with errors.Is.
var (
	// ErrClosed tells that the dispatcher has been stopped.
	ErrClosed = errors.New("dispatch: closed")
	// ErrKeyFull tells that the key holds PerKey jobs.
	ErrKeyFull = errors.New("dispatch: key is full")
	// ErrFull tells that Pending jobs are held, or nearly so many that this key,
	// which holds more than its share, has to wait.
	ErrFull = errors.New("dispatch: full")
	// ErrConfig is what every error of New wraps.
	ErrConfig = errors.New("dispatch: bad configuration")
)

// Errors in a Result; ask with errors.Is.
var (
	// ErrAbandoned is the error of a job that a stop gave up.
	ErrAbandoned = errors.New("dispatch: abandoned by a stop")
	// ErrExited is the error of a job that called runtime.Goexit.
	ErrExited = errors.New("dispatch: job ended its goroutine")
)

// PanicError is the error of a job that panicked; ask with errors.As.
type PanicError struct {
	Value any    // what was passed to panic
	Stack []byte // of the goroutine that panicked
}

// Error gives the value, not the stack.
func (e *PanicError) Error() string {
	return fmt.Sprintf("dispatch: job panicked: %v", e.Value)
}

// Unwrap gives the value when it is an error, and nil otherwise.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}
