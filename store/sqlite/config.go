package sqlite

import (
	"errors"
	"log/slog"
	"time"
)

// Defaults of [Config].
const (
	DefaultWindow     = 24 * time.Hour
	DefaultDeadFor    = 30 * 24 * time.Hour
	DefaultHistoryFor = 24 * time.Hour
	DefaultMaxIDs     = 8_000_000
	DefaultCacheBytes = 32 << 20
	DefaultBusyWait   = 5 * time.Second
)

// Config configures a store. Path is required.
type Config struct {
	// Path is the file. Beside it are Path-wal, Path-shm and Path.lock. What is
	// missing is made, files with mode 0600 and directories with 0700.
	Path string
	// Window is how long an id is remembered; that of an item in the inbox or the
	// outbox always is. 0 means DefaultWindow.
	Window time.Duration
	// DeadFor is how long a dead letter is kept. 0 means DefaultDeadFor.
	DeadFor time.Duration
	// HistoryFor is how long it is known how an item ended. It may be shorter or
	// longer than Window. 0 means DefaultHistoryFor.
	HistoryFor time.Duration
	// MaxIDs is how many ids are remembered. Each takes about 14 bytes of memory
	// and 40 of the file. Over that the oldest are forgotten before their time,
	// and are counted. 0 means DefaultMaxIDs.
	MaxIDs int
	// MaxBytes is the largest size of the file, without its -wal. A commit that
	// would pass it fails with ErrDiskFull. 0 means as large as the disk allows.
	MaxBytes int64
	// CacheBytes is what the writing connection may cache. 0 means
	// DefaultCacheBytes.
	CacheBytes int64
	// BusyWait is how long a commit waits for another program's lock. 0 means
	// DefaultBusyWait.
	BusyWait time.Duration
	// Logger hears of a check after an unclean stop, and of upkeep that fails. nil
	// means slog.Default.
	Logger *slog.Logger

	now func() time.Time // the clock of what is stored
}

func (c Config) withDefaults() Config {
	for _, d := range []struct {
		field    *time.Duration
		standard time.Duration
	}{
		{&c.Window, DefaultWindow},
		{&c.DeadFor, DefaultDeadFor},
		{&c.HistoryFor, DefaultHistoryFor},
		{&c.BusyWait, DefaultBusyWait},
	} {
		if *d.field == 0 {
			*d.field = d.standard
		}
	}
	if c.MaxIDs == 0 {
		c.MaxIDs = DefaultMaxIDs
	}
	if c.CacheBytes == 0 {
		c.CacheBytes = DefaultCacheBytes
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	if c.now == nil {
		c.now = time.Now
	}
	return c
}

func (c Config) validate() error {
	switch {
	case c.Path == "":
		return errors.New("sqlite: Path must not be empty")
	case c.Window < 0:
		return errors.New("sqlite: Window must not be negative")
	case c.DeadFor < 0:
		return errors.New("sqlite: DeadFor must not be negative")
	case c.HistoryFor < 0:
		return errors.New("sqlite: HistoryFor must not be negative")
	case c.MaxIDs < 0:
		return errors.New("sqlite: MaxIDs must not be negative")
	case c.MaxBytes < 0:
		return errors.New("sqlite: MaxBytes must not be negative")
	case c.CacheBytes < 0:
		return errors.New("sqlite: CacheBytes must not be negative")
	case c.BusyWait < 0:
		return errors.New("sqlite: BusyWait must not be negative")
	}
	return nil
}
