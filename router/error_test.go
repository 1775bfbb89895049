package router_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/penstock-io/penstock/router"
)

func TestClassify(t *testing.T) {
	cause := errors.New("cause")
	var none *router.Error
	for name, c := range map[string]struct {
		err       error
		permanent bool
		after     time.Duration
		reason    router.Reason
	}{
		"nil":   {nil, false, 0, ""},
		"plain": {cause, false, 0, router.ReasonHandler},
		"permanent": {
			&router.Error{Permanent: true, Err: cause}, true, 0, router.ReasonHandler,
		},
		"wait": {
			&router.Error{After: time.Minute, Reason: router.ReasonStatus, Err: cause},
			false, time.Minute, router.ReasonStatus,
		},
		"negative wait": {&router.Error{After: -1}, false, 0, router.ReasonHandler},
		"wrapped": {
			fmt.Errorf("outer: %w", &router.Error{Permanent: true, Reason: router.ReasonExit}),
			true, 0, router.ReasonExit,
		},
		"joined": {
			errors.Join(cause, &router.Error{Permanent: true, Err: cause}),
			true, 0, router.ReasonHandler,
		},
		"nil pointer": {none, false, 0, router.ReasonHandler},
		"no route":    {fmt.Errorf("x: %w", router.ErrNoRoute), false, 0, router.ReasonNoRoute},
		"deadline":    {context.DeadlineExceeded, false, 0, router.ReasonTimeout},
		"canceled":    {context.Canceled, false, 0, router.ReasonCanceled},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, c.permanent, router.IsPermanent(c.err))
			require.Equal(t, c.after, router.RetryAfter(c.err))
			require.Equal(t, c.reason, router.ReasonOf(c.err))
		})
	}
}

func TestUnreached(t *testing.T) {
	cause := errors.New("cause")
	nobody := fmt.Errorf("x: %w", &router.Error{Unreached: true, Err: cause})
	require.True(t, router.IsUnreached(nobody))
	require.Equal(t, router.ReasonUnreached, router.ReasonOf(nobody))
	require.False(t, router.IsPermanent(nobody))
	for _, err := range []error{
		nil, cause, (*router.Error)(nil), &router.Error{Err: cause},
		&router.Error{Unreached: true, Permanent: true},
	} {
		require.False(t, router.IsUnreached(err))
	}
}

func TestErrorText(t *testing.T) {
	cause := errors.New("cause")
	var none *router.Error
	require.EqualError(t, &router.Error{Err: cause}, "cause")
	require.ErrorIs(t, &router.Error{Err: cause}, cause)
	require.EqualError(t, &router.Error{Reason: router.ReasonExit}, "handler failed: exit")
	require.EqualError(t, &router.Error{}, "handler failed: handler")
	require.EqualError(t, none, "handler returned a nil *router.Error")
	require.NoError(t, errors.Unwrap(none))
}
