// Package sqlite is a [store.Store] in one SQLite file, the durable store of a
// single process. When Commit has returned nil its group is on the disk, and
// survives the process, the system and the power going at any instant.
//
// Promises beyond those of the contract:
//
//   - A failed commit leaves nothing behind and needs no help afterwards: when the
//     disk has room again, or the lock is gone, the next one succeeds.
//   - One process has the file, held by a lock that dies with it. A second one is
//     told who has it. Reading with sqlite3 -readonly beside it is fine.
//   - Opening takes no longer for many items: a million pending ones are listed
//     later, without reading their bodies.
//   - Memory is bounded by the caches and by Config.MaxIDs. The inbox and outbox
//     are bounded by the disk or Config.MaxBytes alone, and fail with ErrDiskFull.
//   - Upkeep is in steps that keep a commit waiting for a few milliseconds.
//
// # Settings
//
// Each of these was measured or has bitten somebody:
//
//   - journal_mode WAL and synchronous FULL: one flush a commit, which has happened
//     when it returns. NORMAL loses what was acknowledged when the power goes. The
//     value is read back on every connection, after a first read, since that read
//     may change it.
//   - fdatasync, for the whole process: it halves the time of a commit and keeps
//     all that is needed to read the data.
//   - page_size 4096 before the first table: a commit of few messages writes a page
//     of each of six trees, so half as much as with 8192, in the same time. A file
//     keeps the size that it was made with.
//   - One writing connection with prepared statements, past database/sql; readers
//     of their own that cannot write.
//   - wal_autocheckpoint off: it would stall one commit in many. A second connection
//     moves the log into the file beside the commits (PASSIVE). When the log is
//     long, the writing connection moves the rest and begins it anew between two
//     commits; left to the second one, that makes commits wait 200 ms and more.
//   - journal_size_limit 64 MiB: a log that grew while somebody read is cut again.
//   - Descriptor-owned locks, where the system has them: else a program that opens
//     and closes the file anywhere in this process drops the locks on it.
//
// # Layout
//
// An item is a narrow row and, apart, its body; both go when it is done, so a page
// of bodies is mostly freed as a whole and never written again. There is no index:
// order is the number, and whoever waits for what is known in memory.
//
// Ids are kept in the row of the commit that gave them numbers, together with how
// items ended: the table only grows at its end. A table ordered by ids costs a page
// of its own for each message, because ids come in no order. Which commit an id is
// in is held in memory, 14 bytes an id, and read at the start.
//
// Numbers and counts are in the last of those rows, which is therefore never
// dropped. The clock of what is kept does not go back, so that setting it back
// forgets nothing; a step back of more than Config.Window is taken to correct a
// clock that was wrong.
//
// The file does not shrink; its room is used again. To make a smaller copy run
// VACUUM INTO in a shell.
package sqlite
