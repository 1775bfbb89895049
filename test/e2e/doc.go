// Package e2e holds tests of the whole service over real sockets: stops, gateways
// that go away, reloads, and what must never be told.
package e2e
