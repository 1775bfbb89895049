// Package openapi sends replies to DingTalk: over the webhook that came with a
// message while it lives, else over the robot API, and card changes over the card
// API.
//
// It promises:
//
//   - One call of [Sender.Send] is one attempt. Inside it the route may change
//     once (a webhook that DingTalk no longer knows gives way to the robot API)
//     and a refused token is renewed once; neither can double the reply, because
//     the platform has said that it did not take it.
//   - An HTTP status is never taken for success: the answer's own code is read.
//     One function decides what a failure means, on the two axes of
//     [message.SendError].
//   - "It did not land" is said only when no byte of the request left, or when
//     the platform refused it. Everything else is "perhaps".
//   - No part that [Sender.Split] makes is over the limit once it is encoded, on
//     either route.
//   - A reply goes only to hosts on the list, over TLS, and follows no redirect.
//   - No secret (client secret, token, webhook) is in an error, a log line or a
//     snapshot, also not inside the text of an error of net/http.
//
// It does not pace, queue or retry: that is its caller's business.
package openapi
