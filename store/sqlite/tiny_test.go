//go:build linux

package sqlite_test

import (
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/penstock-io/penstock/store"
	"github.com/penstock-io/penstock/store/sqlite"
)

// TestTinyDisk writes much more than the disk holds, of messages that are done: the
// log leaves room for the file.
func TestTinyDisk(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=8m"); err != nil {
		t.Skipf("a disk of a few MiB cannot be mounted: %v", err)
	}
	t.Cleanup(func() { require.NoError(t, syscall.Unmount(dir, 0)) })
	s := open(t, sqlite.Config{Path: filepath.Join(dir, "penstock.db")})
	defer s.Close()
	for i := range 1000 {
		op := &store.Append{Message: sample(i)}
		commit(t, s, op)
		commit(t, s, &store.Finish{Seq: op.Seq})
	}
}
