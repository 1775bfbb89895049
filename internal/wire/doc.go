// Package wire writes WebSocket frames to one connection on behalf of many
// goroutines, and reads bursts with few system calls.
//
// What a [Socket] promises:
//
//   - [Socket.Send] never blocks: a frame is taken into a bounded lane or refused
//     with the reason. Frames of one lane leave in the order they were taken.
//   - The control lane leaves before the normal lane, so a pong or the answer to
//     a ping never waits behind more than one write of acknowledgements.
//   - Everything that is ready leaves in one write. Every write has a deadline; a
//     write that fails, wholly or in part, ends the socket.
//   - An idle socket has no goroutine and no buffer. A goroutine exists only while
//     there is something to write, never more than one a socket, and
//     [Socket.Close] waits for it.
//   - Every frame that was taken is either written or counted as dropped.
//
// The package knows frames and bytes, not messages, and reads nothing by itself:
// the connection's reader belongs to the caller.
package wire
