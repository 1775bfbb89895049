// Package relay is the pipeline between sessions, store, handlers and senders:
// accept, persist, acknowledge, dispatch, handle, commit, send. It owns the order
// of these steps and nothing else.
//
// What it promises, with a store that keeps its own promises:
//
//   - A delivery is acknowledged after its message is committed, on the session
//     that brought it. If the commit fails it is not acknowledged (the session
//     is told Retry), and the claim on its id is given back.
//   - Messages of one conversation are handled one at a time in store order,
//     also when they wait in the store because the queues are full, and also
//     when one of them is waiting for its next attempt.
//   - A message id is handled once inside the dedup window, unless its handler's
//     outcome could not be committed: then the handler runs again, with the same
//     message id and a higher attempt.
//   - The replies of a handler and "done" are one commit. Replies of one
//     conversation leave in order; a reply that waits for its next attempt holds
//     the later ones of its conversation and of no other.
//   - [Lane.Accept] never blocks.
//
// What may not be assumed: order between conversations; that a reply is sent
// exactly once when the platform's answer was lost (see Config.Uncertain).
package relay
