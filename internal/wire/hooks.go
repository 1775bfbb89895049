package wire

import (
	"context"
	"errors"
	"time"
)

// Reason tells why a frame was not written, as a metric label.
type Reason string

// Reasons of a drop.
const (
	DropFull     Reason = "full"      // the lane has no room
	DropBudget   Reason = "budget"    // the shared bytes are used up
	DropTooLarge Reason = "too_large" // beyond a limit that waiting does not change
	DropExpired  Reason = "expired"   // its deadline came before its first byte left
	DropCanceled Reason = "canceled"  // its sender gave it up
	DropClosed   Reason = "closed"    // the socket ended first
	DropWrite    Reason = "write"     // its write failed, wholly or in part
	DropEncode   Reason = "encode"    // Frame.Append failed
)

var allReasons = [...]Reason{
	DropFull, DropBudget, DropTooLarge, DropExpired,
	DropCanceled, DropClosed, DropWrite, DropEncode,
}

// Sent describes a frame that was handed to the connection.
type Sent struct {
	Lane Lane
	// Wait is the time from the call until the write had ended, Queued the part
	// of it until the write began.
	Wait, Queued time.Duration
	// Bytes is the size on the wire.
	Bytes int
	// Err is why the write failed, nil if it did not.
	Err error
}

// Hooks report what becomes of frames. Every frame that a socket is asked to send
// is reported once: by Sent with no error, or by Dropped. Frames that Tracker
// knows already are not; a resend that was queued counts as a frame. A nil hook is skipped.
//
// Hooks run on the goroutine that sends, writes or ends, and no lock of this
// package is held. They must not block, nor close the socket, nor take a lock
// that is held while the socket is called.
type Hooks struct {
	// Sent is called for every frame of which a write was tried.
	Sent func(Sent)
	// Dropped is called for every frame that was not written, whole.
	Dropped func(Lane, Reason)
	// Resent is called for every frame that Resend has queued again.
	Resent func(Lane)
	// Evicted is called with the number of frames that tracking had to forget.
	Evicted func(frames int)
}

func (h *Hooks) dropped(l Lane, err error) {
	if h.Dropped != nil {
		h.Dropped(l, reasonOf(err))
	}
}

func (h *Hooks) evicted(n int) {
	if n > 0 && h.Evicted != nil {
		h.Evicted(n)
	}
}

// reasonOf puts an error of this package into its class.
func reasonOf(err error) Reason {
	for _, r := range [...]struct {
		err    error
		reason Reason
	}{
		{ErrFull, DropFull},
		{ErrBudget, DropBudget},
		{ErrTooLarge, DropTooLarge},
		{ErrClosed, DropClosed},
		{ErrWrite, DropWrite},
		{ErrEncode, DropEncode},
		{context.DeadlineExceeded, DropExpired},
	} {
		if errors.Is(err, r.err) {
			return r.reason
		}
	}
	return DropCanceled
}
