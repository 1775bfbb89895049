// Package demo shows the service at work without an account: a simulated gateway
// pushes the traffic of several hundred conversations to three installations and
// breaks its sockets in every way it knows, while each message is followed from
// the push to the handler and the reply to the platform.
package demo
