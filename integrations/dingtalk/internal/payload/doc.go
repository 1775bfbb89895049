// Package payload reads what a DingTalk gateway pushes: the frame's envelope and
// the documents inside it. It is lenient: a field of an odd type costs that field
// and never the message, and the raw document is always kept.
//
// What it promises:
//
//   - [DecodeFrame] copies: the bytes of the frame may be used again at once. The
//     strings of a [Frame], and those of the message that [Inbound] makes of it,
//     are pieces of one string, so a piece keeps the whole in memory. Whoever keeps
//     one for longer than the message clones it; the ids of the message are apart
//     already.
//   - What a person wrote is not changed, except that a group's text loses the
//     white space that the bot's own mention left in front of it.
//   - Work and memory are linear in the size of the frame, but for the walk through
//     a card, which has bounds of its own.
//
// Nothing here blocks, logs or keeps state; all functions may be called from any
// number of goroutines. No input makes them panic.
package payload
