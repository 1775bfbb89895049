// Package store is the contract for keeping messages and replies: the inbox, the
// outbox and the dead letters, and the [Writer] that commits what is waiting in
// groups.
//
// Every change is an [Op]. A [Store] applies a group of ops in order, as one
// transaction: after Commit has returned nil, all of them hold, and they survive
// whatever the store promises to survive; after an error none does. The result
// of an op is written into the op itself before Commit returns.
//
// Order is the sequence number: a later append has a larger one, numbers are
// never used again, and they order the messages of one conversation.
//
// A message id is remembered per installation for the dedup window (24 h), also
// after its message is done: appending it again is a duplicate and changes
// nothing. So is the id of a reply. Ids are compared byte by byte, and nothing is
// a duplicate for want of one.
//
// What is kept comes back as it was: Message.Raw and Reply.Target byte for byte,
// times to the millisecond at least. The suite in store/storetest says the rest.
package store
