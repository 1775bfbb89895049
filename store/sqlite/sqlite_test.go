package sqlite_test

import (
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/penstock-io/penstock/store"
	"github.com/penstock-io/penstock/store/sqlite"
	"github.com/penstock-io/penstock/store/storetest"
)

func open(t testing.TB, cfg sqlite.Config) *sqlite.Store {
	t.Helper()
	if cfg.Path == "" {
		cfg.Path = filepath.Join(t.TempDir(), "penstock.db")
	}
	s, err := sqlite.Open(t.Context(), cfg)
	require.NoError(t, err)
	return s
}

// paths remembers where each store of a test lies.
type paths struct{ sync.Map }

func (p *paths) open(t *testing.T, path string) store.Store {
	s := open(t, sqlite.Config{Path: path})
	p.Store(s, path)
	return s
}

func TestStore(t *testing.T) {
	var at paths
	storetest.Run(t,
		func(t *testing.T) store.Store {
			return at.open(t, filepath.Join(t.TempDir(), "penstock.db"))
		},
		storetest.Features{
			Durable: true, History: true,
			Reopen: func(t *testing.T, s store.Store) store.Store {
				path, ok := at.Load(s)
				require.True(t, ok)
				require.NoError(t, s.Close())
				return at.open(t, path.(string))
			},
		})
}

// TestStoreSurvivesKill reopens a copy of the files that the running store has,
// which is what a killed process leaves behind.
func TestStoreSurvivesKill(t *testing.T) {
	var at paths
	storetest.Run(t,
		func(t *testing.T) store.Store {
			return at.open(t, filepath.Join(t.TempDir(), "penstock.db"))
		},
		storetest.Features{
			Durable: true, History: true,
			Reopen: func(t *testing.T, s store.Store) store.Store {
				path, ok := at.Load(s)
				require.True(t, ok)
				to := filepath.Join(t.TempDir(), "copy.db")
				for _, suffix := range []string{"", "-wal"} {
					b, err := os.ReadFile(path.(string) + suffix)
					require.NoError(t, err)
					require.NoError(t, os.WriteFile(to+suffix, b, 0o600))
				}
				require.NoError(t, s.Close())
				return at.open(t, to)
			},
		})
}
