package router

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"

	"github.com/penstock-io/penstock/message"
)

// Middleware wraps a handler in another one. It is called once a route, when
// the router is made, and must not return nil.
type Middleware func(Handler) Handler

// Recover is a [Middleware] that turns a panic into an [Error] with ReasonPanic
// that may be tried again. A [Router] does so by itself; Recover is for handlers
// that are used without one.
func Recover(next Handler) Handler {
	return HandlerFunc(func(ctx context.Context, m *message.Inbound) (res Result, err error) {
		defer func() {
			if v := recover(); v != nil {
				res, err = Result{}, panicked(v)
			}
		}()
		return next.Handle(ctx, m)
	})
}

func panicked(v any) error {
	return &Error{Reason: ReasonPanic, Err: &PanicError{Value: v, Stack: debug.Stack()}}
}

// Timeout is a [Middleware] that ends the context of a try after d and names
// the limit in the error. It waits for the handler all the same, since to go on
// without it would let the next message of the conversation overtake. 0 and less
// mean no limit.
func Timeout(d time.Duration) Middleware {
	return func(next Handler) Handler {
		if d <= 0 {
			return next
		}
		return HandlerFunc(func(ctx context.Context, m *message.Inbound) (Result, error) {
			ctx, cancel := withLimit(ctx, d)
			defer cancel()
			res, err := next.Handle(ctx, m)
			if err != nil {
				err = overLimit(ctx, err)
			}
			return res, err
		})
	}
}

// overLimit names the limit of ctx in err if that is what err is about. An error
// that already says what is to happen stays as it is.
func overLimit(ctx context.Context, err error) error {
	limit := limitOf(ctx, err)
	if limit == nil {
		return err
	}
	if _, ok := errors.AsType[*Error](err); ok {
		return err
	}
	return broken(ReasonTimeout, "handler %w: %w", limit, err)
}

// limitError is the cause of a context that a time limit ended.
type limitError struct{ limit time.Duration }

func (e *limitError) Error() string { return fmt.Sprintf("took longer than %v", e.limit) }

func (e *limitError) Unwrap() error { return context.DeadlineExceeded }

// withLimit is context.WithTimeout with a cause that names the limit. A negative
// limit means none.
func withLimit(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	if d < 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeoutCause(ctx, d, &limitError{limit: d})
}

// limitOf gives the limit that ended ctx if err is about a deadline, else nil.
func limitOf(ctx context.Context, err error) *limitError {
	limit, ok := errors.AsType[*limitError](context.Cause(ctx))
	if !ok || !errors.Is(err, context.DeadlineExceeded) {
		return nil
	}
	return limit
}

// Outcome is how a try ended. Result.Route names the route.
type Outcome struct {
	Result Result
	Err    error
	Took   time.Duration
}

// Hook is told of a try after it has ended, on the goroutine that made it. It
// must not block, nor change or keep m or the outcome's slices.
type Hook func(ctx context.Context, m *message.Inbound, o Outcome)

// Observe is a [Middleware] that tells hook of every try, for logs and metrics.
// A nil hook is no hook. A panic in the hook is logged and changes nothing for
// the message, which has been handled already.
func Observe(hook Hook) Middleware {
	return func(next Handler) Handler {
		if hook == nil {
			return next
		}
		return HandlerFunc(func(ctx context.Context, m *message.Inbound) (Result, error) {
			start := time.Now()
			res, err := next.Handle(ctx, m)
			tell(ctx, hook, m, Outcome{Result: res, Err: err, Took: time.Since(start)})
			return res, err
		})
	}
}

func tell(ctx context.Context, hook Hook, m *message.Inbound, o Outcome) {
	defer func() {
		if v := recover(); v != nil {
			slog.ErrorContext(ctx, "the hook of router.Observe panicked",
				"panic", safeText(v), "message_id", string(m.ID))
		}
	}()
	hook(ctx, m, o)
}
