package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	driver "modernc.org/sqlite"

	"github.com/penstock-io/penstock/store"
)

// Store keeps everything in one file. Make one with Open.
type Store struct {
	// immutable:
	cfg     Config
	lock    *os.File
	files   []file // that must stay where they are
	readers *sql.DB
	read    readStatements
	end     context.CancelFunc // of upkeep and of a check
	helpers sync.WaitGroup
	due     chan struct{} // a token when a checkpoint is due; never closed

	// damage is what a check found; set once by it.
	damage atomic.Pointer[error]
	// between is how many bytes are written between two checkpoints.
	between atomic.Int64

	write sync.Mutex // held through a whole commit or step of upkeep
	// guarded by write:
	w       *conn
	group   group
	broken  bool  // w is to be opened again
	changed bool  // by another program, so nothing in memory may be right
	lastAt  int64 // the time of the last commit, in ms
	closed  bool
	trim    trimmed // what the step of upkeep under way takes out
	written int64   // bytes since the last checkpoint, about

	mu sync.RWMutex // held shortly, after write where both are
	// guarded by mu; changed by holders of write only:
	boxes [2]box
	last  int64 // number of the last commit
	stats Stats

	reading sync.RWMutex // held for reading through a whole read
	// guarded by reading:
	gone bool // closed, for readers
}

var _ interface {
	store.Store
	store.Admin
	store.Leases
} = (*Store)(nil)

// file is a file as it was when the store was opened.
type file struct {
	path string
	info os.FileInfo
}

// Stats are figures that only this store has.
type Stats struct {
	// IDs is how many ids are remembered; ForgottenIDs were dropped inside the
	// window, to keep to Config.MaxIDs.
	IDs          int
	ForgottenIDs uint64
	// Checkpoints counts those that moved the whole log into the file;
	// LongestCheckpoint is how long one of them kept commits waiting.
	Checkpoints       uint64
	LongestCheckpoint time.Duration
	// LongestUpkeep is how long a step of retention kept commits waiting.
	LongestUpkeep time.Duration
	// Trimmed counts the ids, ends and dead letters whose time was over.
	Trimmed uint64
	// Unclean tells that the store was not closed before it was opened, and
	// Checking that the check which follows is still under way.
	Unclean, Checking bool
}

// Open opens the store, or makes an empty one. Only one process can have it open.
// It brings an older file to the present schema. After a stop without Close it
// checks the file: a small one before it returns, a larger one beside the first
// commits, which fail with ErrDamaged from then on if the check fails.
//
// ctx bounds Open alone. Close ends the goroutines that Open starts.
func Open(ctx context.Context, cfg Config) (*Store, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	path, err := filepath.Abs(cfg.Path)
	if err != nil {
		return nil, fmt.Errorf("sqlite: path: %w", err)
	}
	cfg.Path = path
	s := &Store{cfg: cfg, due: make(chan struct{}, 1), end: func() {}}
	if err := s.open(ctx); err != nil {
		return nil, fmt.Errorf("sqlite: open %s: %w", path, errors.Join(explain(err), s.release()))
	}
	return s, nil
}

func (s *Store) open(ctx context.Context) (err error) {
	if err := os.MkdirAll(filepath.Dir(s.cfg.Path), 0o700); err != nil {
		return err
	}
	if s.lock, err = lock(s.cfg.Path); err != nil {
		return err
	}
	if err := create(s.cfg.Path); err != nil {
		return err
	}
	// Both are for the whole process and fail where the system has no such thing.
	// fdatasync halves the time of a commit; locks that belong to descriptors are
	// not lost when somebody in this process opens and closes the file.
	_, _ = driver.Fdatasync(true)
	_, _ = driver.OFDLocking(true)
	s.paceCheckpoints()
	if s.w, err = s.connect(ctx, s.cfg.BusyWait); err != nil {
		return err
	}
	for b := range s.boxes {
		s.boxes[b].text = textsOf(store.Box(b))
	}
	if err := s.adopt(ctx); err != nil {
		return err
	}
	if err := s.load(ctx); err != nil {
		return err
	}
	if err := s.openReaders(ctx); err != nil {
		return err
	}
	if err := s.w.waitFor(0); err != nil { // from now on beginLocked waits
		return err
	}
	return s.startHelpers(ctx)
}

// create makes an empty file that only its owner can read, and makes its name
// durable.
func create(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	d, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// adopt makes the file ours: schema, a note that it is in use, a check if it was.
func (s *Store) adopt(ctx context.Context) error {
	to, err := latest()
	if err != nil {
		return err
	}
	if err := s.w.migrate(s.cfg.Path, to); err != nil {
		return err
	}
	if err := s.w.validate(); err != nil {
		return err
	}
	running, err := s.w.number(getRunning)
	if err != nil {
		return err
	}
	if running != 0 {
		s.stats.Unclean = true
		if err := s.checkSmall(ctx); err != nil {
			return err
		}
	}
	if _, err := s.w.exec(setRunning, int64(1)); err != nil {
		return err
	}
	for _, path := range []string{s.cfg.Path, s.cfg.Path + "-wal"} {
		info, err := os.Stat(path)
		if err != nil {
			return err
		}
		s.files = append(s.files, file{path, info})
	}
	return nil
}

// Stats gives the figures of the store. Any number of goroutines may call it.
func (s *Store) Stats() Stats {
	s.mu.RLock()
	defer s.mu.RUnlock()
	st := s.stats
	st.IDs = s.boxes[store.BoxInbox].ids.len + s.boxes[store.BoxOutbox].ids.len
	return st
}

// Close implements store.Store. It waits for the commit or read under way, moves
// the log into the file, and gives the file up. An error means that the file may
// not be marked as closed, which costs a check at the next Open and nothing else.
func (s *Store) Close() error {
	s.write.Lock()
	if s.closed {
		s.write.Unlock()
		return nil
	}
	s.closed = true
	s.write.Unlock()
	s.reading.Lock()
	s.gone = true
	s.reading.Unlock()
	s.end()
	s.helpers.Wait()
	s.write.Lock()
	defer s.write.Unlock()
	var err error
	if s.damage.Load() == nil && !s.broken {
		_, err = s.w.exec(setRunning, int64(0))
	}
	if err = errors.Join(err, s.release()); err != nil {
		return fmt.Errorf("sqlite: close: %w", err)
	}
	return nil
}

// release gives up what open took, as far as it got. The last connection moves the
// log into the file.
func (s *Store) release() error {
	s.end()
	s.helpers.Wait()
	var errs []error
	if s.readers != nil {
		errs = append(errs, s.read.close(), s.readers.Close())
	}
	errs = append(errs, s.w.close())
	if s.lock != nil {
		errs = append(errs, s.lock.Close())
	}
	return errors.Join(errs...)
}
