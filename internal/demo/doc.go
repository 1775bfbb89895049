// Package demo shows the service at work without an account: a simulated gateway
// pushes the traffic of several hundred conversations to three installations and
// breaks its sockets in every way it knows, and the service, which runs in a process
// of its own with its store in a file, is killed once and started again. Each
// message is followed from the push to the handler, which is an HTTP endpoint in
// this process, and the reply to the platform.
package demo
