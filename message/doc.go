// Package message is Penstock's vocabulary: typed identifiers, what a handler
// receives ([Inbound]), what it answers ([Reply]), what leaves for a platform
// ([Outbound]), and how both ends report back ([Delivery], [Receipt],
// [SendError]).
//
// It holds data only and imports only the standard library. Values are not
// safe for concurrent mutation; once a value has been handed to another package
// nobody changes it, so it may be read from any number of goroutines.
package message
