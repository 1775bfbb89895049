package sqlite_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

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
