// Package payload reads what a DingTalk gateway pushes: the frame's envelope and
// the documents inside it. It is lenient: a field of an odd type costs that field
// and never the message, and the raw document is always kept.
//
// Nothing here blocks, logs or keeps state; all functions may be called from any
// number of goroutines. No input makes them panic.
package payload
