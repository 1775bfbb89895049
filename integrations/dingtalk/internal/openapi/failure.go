package openapi

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"unicode"

	"github.com/penstock-io/penstock/message"
)

// errTimeout is the cause of a context that ended because Config.Timeout passed.
var errTimeout = errors.New("no answer in time")

// errHidden stands for an error whose text would show a secret.
var errHidden = errors.New("request failed (cause withheld: its text holds a secret)")

// never is a reply that cannot be sent, with nothing sent.
func never(code string, err error) *message.SendError {
	return &message.SendError{Next: message.NextNever, Code: code, Err: err}
}

// sendError is the error of an answer that was not success.
func (v *verdict) sendError(c *call, a *answer, secrets []string) *message.SendError {
	return &message.SendError{
		Landed: v.landed, Next: v.next, After: v.after, Code: v.code,
		Err: errors.New(c.route.String() + ": " + a.describe(secrets)),
	}
}

// describe says what the platform answered, without any of secrets.
func (a *answer) describe(secrets []string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "http %d", a.status)
	for _, part := range []string{
		safeWord(a.code), phrase(a.message, secrets), hintFor(a.code),
	} {
		if part != "" {
			b.WriteString(": " + part)
		}
	}
	if len(a.scopes) > 0 {
		b.WriteString(": needs " + strings.Join(a.scopes, ", "))
	}
	if a.requestID != "" {
		b.WriteString(" (request " + a.requestID + ")")
	}
	return b.String()
}

const phraseRunes = 120

// phrase makes a platform's free text fit to show, nothing if it holds a secret.
func phrase(s string, secrets []string) string {
	if holds(s, secrets) {
		return ""
	}
	runes := 0
	return strings.Map(func(r rune) rune {
		if runes++; runes > phraseRunes {
			return -1
		}
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, s)
}

// secretMin is the shortest text that is looked for as a secret; shorter ones
// would hide half of all messages and protect nothing.
const secretMin = 6

func holds(s string, secrets []string) bool {
	for _, x := range secrets {
		if len(x) >= secretMin && strings.Contains(s, x) {
			return true
		}
	}
	return false
}

// cut takes the URL off an error of net/http, which would show a webhook, and
// withholds any other that shows a secret.
func cut(err error, secrets []string) error {
	for ue := (*url.Error)(nil); errors.As(err, &ue); {
		err = ue.Err
	}
	if err == nil || holds(err.Error(), secrets) {
		return errHidden
	}
	return err
}

// broken is the error of a request that got no whole answer. wrote tells whether
// anything of it left. The context's own error is for a caller who gave up
// before that; Config.Timeout is no such caller.
func broken(ctx context.Context, c *call, wrote bool, err error) error {
	ours := errors.Is(context.Cause(ctx), errTimeout)
	if !wrote && ctx.Err() != nil && !ours {
		return ctx.Err()
	}
	e := &message.SendError{Next: message.NextAgain, Code: "connect"}
	var ne net.Error
	switch {
	case ours, errors.As(err, &ne) && ne.Timeout():
		e.Code = "timeout"
	case ctx.Err() != nil:
		e.Code = "cancelled"
	case wrote:
		e.Code = "connection_lost"
	}
	if wrote {
		e.Landed = message.LandedMaybe
	}
	if ours {
		err = errTimeout
	}
	e.Err = fmt.Errorf("%s: %w", c.route, err)
	return e
}
