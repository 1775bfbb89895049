// Package wire writes WebSocket frames to one connection on behalf of many
// goroutines, and reads bursts with few system calls.
//
// What a [Socket] promises:
//
//   - There are four ways to send. [Socket.Try] and [Socket.Send] never wait,
//     [Socket.Offer] waits until the frame is taken, [Socket.Write] until it is
//     written, and [Socket.Require] ends the socket if it cannot be. One absolute
//     deadline bounds everything a frame waits for.
//   - Frames of one lane leave in the order they were taken. Control frames leave
//     first; bulk frames at least once in 16 others; no lane waits for ever, not
//     even for a flood of control frames. A control frame waits for the write that
//     is under way: one batch of small frames, or one large frame.
//   - Small frames that are ready leave in one write. Every write has a deadline; a
//     write that fails, wholly or in part, ends the socket. A deadline that passes
//     before a frame's first byte has left takes only this frame.
//   - An idle socket has no goroutine and no buffer. There is never more than one
//     writer, and only while there is something to write: a goroutine of its own,
//     or the sender that waits for its frame anyway.
//   - Lanes are bounded. Sockets that share a [Budget] reserve the bytes of every
//     frame before it is encoded, and give them back exactly once: after the write,
//     or, for a frame with an id, when the [Tracker] lets go of it.
//   - Every frame is either written or counted as dropped, with a reason.
//   - [Socket.Close] refuses new frames first, then waits for the writer and for
//     every call that sends. Frames that wait end with ErrClosed.
//
// The package knows frames and bytes, not messages, and reads nothing by itself:
// the connection's reader belongs to the caller.
package wire
