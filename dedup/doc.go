// Package dedup remembers ids for a while, so that a copy of something that was
// already taken can be told from something new.
//
// Taking an id is two steps: [Window.Claim], then [Window.Commit] when the work
// is safe or [Window.Release] when it failed. An id that was released is fresh
// again, so a copy of failed work is not mistaken for a copy of finished work.
//
// Promises, for one [Window]:
//
//   - of all the calls that claim an id at once, exactly one is told [Fresh];
//   - a claim stays until its owner ends it: it is never evicted, and it is not
//     bounded here, since its owner holds something that is;
//   - a committed id is [Seen] for Config.Window, exactly, unless more than
//     Config.Max ids were committed in that time: then the oldest are forgotten,
//     and counted;
//   - an id is kept as a fingerprint of 128 bits: it costs the same whatever it is
//     made of, and keeps nothing of the caller's alive;
//   - there is no goroutine and no timer: each call clears a few expired ids, so
//     no call pays for a long silence.
//
// All methods may be called from any number of goroutines and never wait for
// anything but a short lock.
package dedup
