// Package system runs a whole service inside a test: configuration, sessions,
// pipeline, store and sender are the real ones, the platform is a gateway of
// dingtalktest. What the service does can be seen from outside (its connections,
// its log, its metrics) and at the seams that it offers (handler, store, hooks).
//
// Everything works inside a testing/synctest bubble, on a [Network] in memory, as
// well as on real sockets. All methods may be called from any number of
// goroutines.
package system
