package sqlite_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/penstock-io/penstock/message"
	"github.com/penstock-io/penstock/store"
	"github.com/penstock-io/penstock/store/sqlite"
)

// TestMigrations walks all the way up and down, one step at a time and at once.
func TestMigrations(t *testing.T) {
	path := filepath.Join(t.TempDir(), "penstock.db")
	require.NoError(t, os.WriteFile(path, nil, 0o600))
	last, err := sqlite.Versions()
	require.NoError(t, err)
	require.Positive(t, last)
	for v := range last {
		require.Error(t, sqlite.Validate(t.Context(), path), "version %d is not enough", v)
		require.NoError(t, sqlite.Migrate(t.Context(), path, v+1))
	}
	require.NoError(t, sqlite.Validate(t.Context(), path))
	s := open(t, sqlite.Config{Path: path})
	commit(t, s, appends("a")...)
	require.NoError(t, s.Close())
	for v := last; v > 0; v-- {
		require.NoError(t, sqlite.Migrate(t.Context(), path, v-1))
		require.Error(t, sqlite.Validate(t.Context(), path), "version %d is not enough", v-1)
	}
	c := stranger(t, path)
	var tables int
	require.NoError(t, c.QueryRowContext(t.Context(),
		"SELECT count(*) FROM sqlite_schema WHERE name NOT LIKE 'sqlite_%'").Scan(&tables))
	require.Zero(t, tables, "the way down leaves nothing")
	require.NoError(t, sqlite.Migrate(t.Context(), path, last))
	require.NoError(t, sqlite.Validate(t.Context(), path))
}

func TestOlderFileIsMigrated(t *testing.T) {
	path := filepath.Join(t.TempDir(), "penstock.db")
	require.NoError(t, os.WriteFile(path, nil, 0o600))
	require.NoError(t, sqlite.Migrate(t.Context(), path, 1))
	s := open(t, sqlite.Config{Path: path})
	commit(t, s, appends("a")...)
	require.NoError(t, s.Close())
}

// TestOlderFileKeepsItsPages opens a file whose pages have another size, which also
// bounds what Config.MaxBytes allows.
func TestOlderFileKeepsItsPages(t *testing.T) {
	const size, pages = 8192, 40
	path := filepath.Join(t.TempDir(), "penstock.db")
	require.NoError(t, os.WriteFile(path, nil, 0o600))
	c := stranger(t, path)
	run(t, c, fmt.Sprintf("PRAGMA page_size = %d", size))
	run(t, c, "PRAGMA journal_mode = WAL")
	run(t, c, "VACUUM")
	last, err := sqlite.Versions()
	require.NoError(t, err)
	require.NoError(t, sqlite.Migrate(t.Context(), path, last))
	s := open(t, sqlite.Config{Path: path, MaxBytes: pages * size})
	commit(t, s, appends("a")...)
	for i := 0; err == nil; i++ {
		require.Less(t, i, 100, "the file is not bounded")
		m := inbound(fmt.Sprint("large", i))
		m.Raw = message.Raw(strings.Repeat("x", 16<<10))
		err = s.Commit(t.Context(), []store.Op{&store.Append{Message: m}})
	}
	require.ErrorIs(t, err, sqlite.ErrDiskFull)
	require.NoError(t, s.Close())
	run(t, c, "PRAGMA wal_checkpoint(TRUNCATE)")
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.LessOrEqual(t, info.Size(), int64(pages*size))
	require.Greater(t, info.Size(), int64(pages*size*3/4))
	var got int
	require.NoError(t, c.QueryRowContext(t.Context(), "PRAGMA page_size").Scan(&got))
	require.Equal(t, size, got)
}

func TestNewerFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "penstock.db")
	s := open(t, sqlite.Config{Path: path})
	commit(t, s, appends("a")...)
	require.NoError(t, s.Close())
	c := stranger(t, path)
	run(t, c, "PRAGMA user_version = 99")
	_, err := sqlite.Open(t.Context(), sqlite.Config{Path: path})
	var v *sqlite.VersionError
	require.ErrorAs(t, err, &v)
	last, lerr := sqlite.Versions()
	require.NoError(t, lerr)
	require.Equal(t, sqlite.VersionError{Path: path, File: 99, Program: last}, *v)
	require.ErrorContains(t, err, "99")
	var n int
	require.NoError(t, c.QueryRowContext(t.Context(), "PRAGMA user_version").Scan(&n))
	require.Equal(t, 99, n, "the file stays as it is")
}
