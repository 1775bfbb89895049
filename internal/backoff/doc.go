// Package backoff computes how long to wait before trying again.
//
// A [Policy] is arithmetic: it turns the number of failures so far into a wait,
// keeps nothing, and so suits counts that live in a store. A [Backoff] is a
// Policy with its own count for a caller that tries in a loop.
//
// No wait is negative or above Policy.Max, with one exception: [Proportional]
// may go above it by its Spread.
package backoff
