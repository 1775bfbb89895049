// Package ops is what an operator does to stored messages and replies: list, show,
// requeue, purge, send, replay, trace; and the same for the frames of consumers. The
// verbs are written once, in [Service], over a store's administration and an [Engine]
// that makes the changes: the relay of the running service, or the file of one that
// is stopped; and over the [Edge] of one that runs. [Server] and [Client] carry the
// same verbs over a unix socket.
//
// What it promises: reply addresses and webhooks never appear in what it gives,
// and neither does anything else that lets somebody else write into a chat. What
// people wrote does appear, since that is what the verbs are for: whoever may use
// the socket or the file may read the messages.
//
// An error that crosses the socket keeps its kind: errors.Is answers the same on
// both sides for the errors that [Kind] lists.
package ops
