// Package memory is a [store.Store] in the process's memory: nothing survives the
// process. It serves demonstrations, tests, and bots for which an ack on enqueue
// is good enough.
//
// Promises beyond those of the contract:
//
//   - Memory is bounded. Inbox and outbox together hold Config.MaxItems items of
//     Config.MaxBytes; over that Append and Add fail with ErrFull. Finish does
//     not, so what was taken in can always be answered: while replies cannot
//     leave, new messages are refused. Dead letters are bounded by number and
//     bytes: the oldest make room, and are counted. Remembered ids are bounded by
//     number: the oldest make room, and are counted.
//   - An item that is done leaves nothing behind but its id, which keeps nothing
//     of its message alive.
//   - Commit fails only on a context that is done before it starts, or after
//     Close. It waits for readers that are copying a page, and for nothing else.
package memory
