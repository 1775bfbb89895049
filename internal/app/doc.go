// Package app wires a configuration into a running service: store, relay,
// installations, handlers, admin listener. It owns the order in which they start
// and stop, and changes them when the configuration does.
package app
