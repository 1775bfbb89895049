package relay

import (
	"errors"

	"github.com/penstock-io/penstock/dispatch"
	"github.com/penstock-io/penstock/router"
)

// tellPanic logs where a handler panicked; the error goes on with its value alone.
func (t *task) tellPanic(err error) {
	var stack []byte
	var p *dispatch.PanicError
	var rp *router.PanicError
	switch {
	case err == nil:
		return
	case errors.As(err, &p):
		stack = p.Stack
	case errors.As(err, &rp):
		stack = rp.Stack
	default:
		return
	}
	t.lane.log.Error("a handler panicked", "message_id", string(t.msg.ID),
		"conversation", string(t.msg.Conversation.ID), "attempt", t.attempts,
		"error", err, "stack", string(stack))
}
