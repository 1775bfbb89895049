// Package edge is a gateway of our own: bots written on the vendor's SDKs connect
// to it as they would to the vendor's, and get the messages that routes send them.
// It speaks the DingTalk Stream protocol: a ticket for each connection, frames with
// a JSON document inside, an answer for each frame.
//
// What it promises:
//
//   - A message is done when the consumer has answered it well. Without an answer,
//     or with a bad one, it comes again under the same id, in a new frame, on
//     another connection if there is one.
//   - One message of a conversation is out at a time, so what a consumer answers in
//     order it gets in order, whichever connections come and go.
//   - While a consumer has no connection that reads its messages wait where they are
//     kept, and no try of theirs is used up.
//   - An answer counts whenever it comes and on whichever connection of the
//     consumer: also after the connection that brought the frame has died, and
//     after the message was given up and waits for its next try.
//   - Frames are kept until they are answered, within bounds, and their bytes charged
//     to their consumer, so that no consumer takes the room of another.
//   - Nobody waits for a slow consumer. A connection that does not read gets nothing
//     new; when another one can take its place, it is closed and counted, as is one
//     that says nothing, floods or talks nonsense. The others do not notice.
//   - A reply posted to the address that a message carries is accepted once it is
//     committed to the outbox, and leaves in the order it was posted.
//
// The package keeps nothing itself. It knows no platform beyond the protocol and no
// store: what it needs of them stands in [Outbox].
package edge
