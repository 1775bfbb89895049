package memory

import (
	"errors"
	"time"
)

// Defaults of [Config].
const (
	DefaultMaxItems     = 100_000
	DefaultMaxBytes     = 256 << 20
	DefaultMaxDead      = 10_000
	DefaultMaxDeadBytes = 64 << 20
	DefaultMaxIDs       = 1_000_000
	DefaultWindow       = 24 * time.Hour
)

// Config sets the bounds of a store. The zero value works.
type Config struct {
	// MaxItems is how many items the inbox and the outbox hold together. 0 means
	// DefaultMaxItems.
	MaxItems int
	// MaxBytes is what those items may take, with an allowance for each beside
	// its payload. 0 means DefaultMaxBytes.
	MaxBytes int64
	// MaxDead is how many dead letters are kept. 0 means DefaultMaxDead.
	MaxDead int
	// MaxDeadBytes is what they may take; one is kept whatever its size. 0 means
	// DefaultMaxDeadBytes.
	MaxDeadBytes int64
	// MaxIDs is how many ids of messages are remembered, and how many of replies,
	// beside those of the items in the store. 0 means DefaultMaxIDs. One takes
	// about 60 bytes.
	MaxIDs int
	// Window is how long an id is remembered; that of an item in the inbox or the
	// outbox always is. 0 means DefaultWindow.
	Window time.Duration
}

func (c Config) withDefaults() Config {
	if c.MaxItems == 0 {
		c.MaxItems = DefaultMaxItems
	}
	if c.MaxBytes == 0 {
		c.MaxBytes = DefaultMaxBytes
	}
	if c.MaxDead == 0 {
		c.MaxDead = DefaultMaxDead
	}
	if c.MaxDeadBytes == 0 {
		c.MaxDeadBytes = DefaultMaxDeadBytes
	}
	if c.MaxIDs == 0 {
		c.MaxIDs = DefaultMaxIDs
	}
	if c.Window == 0 {
		c.Window = DefaultWindow
	}
	return c
}

func (c Config) validate() error {
	switch {
	case c.MaxItems < 0:
		return errors.New("memory: MaxItems must not be negative")
	case c.MaxBytes < 0:
		return errors.New("memory: MaxBytes must not be negative")
	case c.MaxDead < 0:
		return errors.New("memory: MaxDead must not be negative")
	case c.MaxDeadBytes < 0:
		return errors.New("memory: MaxDeadBytes must not be negative")
	case c.MaxIDs < 0:
		return errors.New("memory: MaxIDs must not be negative")
	case c.Window < 0:
		return errors.New("memory: Window must not be negative")
	}
	return nil
}
