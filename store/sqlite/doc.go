// Package sqlite is a [store.Store] in one SQLite file, the durable store of a
// single process: what Commit has taken is on the disk, and survives the process,
// the system and the power going at any instant.
package sqlite
