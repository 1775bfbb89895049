// Package router brings a message to the handler that is meant for it, and
// holds the handlers that need no Go code: an HTTP endpoint ([HTTP]), a command
// ([Exec]) and an echo ([Echo]). A Go function is a handler as [HandlerFunc].
//
// What it promises:
//
//   - Routes are tried in their order and the first that matches takes the
//     message; no route means [ErrNoRoute] and nothing else has happened.
//   - One call of Handle is one try. Nothing is repeated here, and nothing goes
//     on after Handle has returned: the goroutines and processes of a try have
//     ended, or have been killed, before it does.
//   - A panic in a handler or a middleware comes back as an error.
//   - What is to happen after a failure is in the error, see [Error]: plain
//     errors mean "try again".
//   - No error text holds a secret, the path or query of an endpoint's address,
//     or more than a few KiB of what a handler wrote.
//
// Everything here is immutable once made and may be used from any number of
// goroutines. Nothing may be assumed about how often a message is tried: it is
// at least once, and Attempt in the message counts.
package router
