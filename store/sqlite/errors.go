package sqlite

import (
	"errors"
	"fmt"
	"time"

	driver "modernc.org/sqlite"
	lib "modernc.org/sqlite/lib"

	"github.com/penstock-io/penstock/store"
)

// Errors of this store beside those of package store. All of them can be asked
// for with errors.Is, and come with the path and what SQLite says.
var (
	// ErrDamaged means that the file is no store, or is broken. Put a copy in its
	// place, or move it away together with its -wal file to begin with an empty
	// one.
	ErrDamaged = errors.New("sqlite: file is damaged or is no store")
	// ErrLocked means that another program kept the file locked for longer than a
	// commit waits, for example a shell with an open transaction.
	ErrLocked = errors.New("sqlite: file is locked by another program")
	// ErrReadOnly means that the file or its directory cannot be written.
	ErrReadOnly = errors.New("sqlite: file cannot be written")
	// ErrMoved means that the file, or its -wal file, was removed or replaced
	// under the running store. What is committed from then on would be lost, so
	// nothing is, until the files are back or the store is opened again.
	ErrMoved = errors.New("sqlite: file was removed or replaced while in use")
	// ErrDiskFull means that the disk has no room, or that Config.MaxBytes is
	// reached. It is store.ErrFull too.
	ErrDiskFull = fmt.Errorf("sqlite: no room on the disk or in MaxBytes: %w", store.ErrFull)
)

// InUseError means that another process has the store open, or this one has it
// twice.
type InUseError struct {
	Path string
	// PID, Host and Since tell who; they are zero if that cannot be read.
	PID   int
	Host  string
	Since time.Time
}

// Error names the owner.
func (e *InUseError) Error() string {
	if e.PID == 0 {
		return fmt.Sprintf("sqlite: %s is in use by another process", e.Path)
	}
	return fmt.Sprintf("sqlite: %s is in use by process %d on %s since %s",
		e.Path, e.PID, e.Host, e.Since.Format(time.RFC3339))
}

// VersionError means that the file was written by a newer program.
type VersionError struct {
	Path string
	// File is the version of the file, Program the last one this program knows.
	File, Program int
}

// Error names both versions.
func (e *VersionError) Error() string {
	return fmt.Sprintf("sqlite: %s has schema version %d and this program knows up to %d: "+
		"run the program that wrote it, or a newer one", e.Path, e.File, e.Program)
}

// code is SQLite's result code of an error without its extension, 0 if it is not
// SQLite's.
func code(err error) int {
	var e *driver.Error
	if errors.As(err, &e) {
		return e.Code() & 0xff
	}
	return 0
}

func isBusy(err error) bool { return code(err) == lib.SQLITE_BUSY }

// explain puts a sentinel before what SQLite says.
func explain(err error) error {
	switch code(err) {
	case lib.SQLITE_BUSY, lib.SQLITE_LOCKED:
		return fmt.Errorf("%w: %w", ErrLocked, err)
	case lib.SQLITE_FULL:
		return fmt.Errorf("%w: %w", ErrDiskFull, err)
	case lib.SQLITE_READONLY, lib.SQLITE_CANTOPEN, lib.SQLITE_PERM:
		return fmt.Errorf("%w: %w", ErrReadOnly, err)
	case lib.SQLITE_CORRUPT, lib.SQLITE_NOTADB:
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return err
}
