// Package dispatch runs jobs one at a time and in order for each key, and many
// keys at once on a bounded number of goroutines. It knows nothing about what a
// job is.
//
// What it promises:
//
//   - Order. The jobs of one key run in the order in which Enqueue took them, one
//     at a time: the next begins after the terminal callback of the one before has
//     returned. Nothing is promised between keys, except that keys with work take
//     turns: a key gives its slot back after every job.
//   - An end. Every job that Enqueue took gets exactly one terminal callback
//     (Hooks.OnDone): it ran well, it failed, or it was abandoned by a stop. A
//     panic is a failure of its job and of nothing else.
//   - Bounds. Enqueue never blocks. Goroutines are at most Workers plus Spares,
//     jobs are at most Pending in all and PerKey for one key. What does not fit is
//     refused with the reason, and near the top of Pending a key that holds more
//     than its share is refused before a quiet one.
//   - Deadlines. The context of a run ends at its deadline. A run that goes on all
//     the same is reported as stuck and, up to Spares, another goroutine takes its
//     slot; its key stays held until it returns.
//   - Stops. Every stop verb may be called at any time, in any order, by any number
//     of goroutines. After Close, Shutdown, Kill or DrainAndClose has returned,
//     nothing is accepted. DrainAndClose returns by its deadline, also when jobs
//     ignore their contexts.
//   - Cost. A dispatcher without work has no goroutine and, at most a second later,
//     no timer. A key without work has no memory. A job that has finished is not
//     referred to any more.
//
// What may not be assumed: that OnQueued comes before OnStart, that jobs of
// different keys begin in the order of their arrival, or that a job that is run
// again is the same Task (it has the same Key and Job).
package dispatch
