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

// reopener opens stores again, in turn after Close and after none: then it takes
// a copy of the files of the running store, which is what a killed process leaves.
type reopener struct {
	mu sync.Mutex // guards the following fields
	at map[store.Store]place
}

type place struct {
	path   string
	closed bool // the last time
}

func (r *reopener) open(t *testing.T, p place) store.Store {
	s := open(t, sqlite.Config{Path: p.path})
	r.mu.Lock()
	defer r.mu.Unlock()
	r.at[s] = p
	return s
}

func (r *reopener) reopen(t *testing.T, s store.Store) store.Store {
	r.mu.Lock()
	p := r.at[s]
	r.mu.Unlock()
	if p.closed = !p.closed; p.closed {
		require.NoError(t, s.Close())
		return r.open(t, p)
	}
	from := p.path
	p.path = filepath.Join(t.TempDir(), "copy.db")
	copyFiles(t, from, p.path)
	require.NoError(t, s.Close())
	return r.open(t, p)
}

func TestStore(t *testing.T) {
	r := reopener{at: make(map[store.Store]place)}
	storetest.Run(t,
		func(t *testing.T) store.Store {
			return r.open(t, place{path: filepath.Join(t.TempDir(), "penstock.db")})
		},
		storetest.Features{Durable: true, History: true, Reopen: r.reopen})
}

// copyFiles copies a store that may be running.
func copyFiles(t testing.TB, from, to string) {
	t.Helper()
	for _, suffix := range []string{"", "-wal"} {
		in, err := os.ReadFile(from + suffix)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(to+suffix, in, 0o600))
	}
}
