package sqlite

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"
)

// owner is what the lock file says of the process that holds it. It is for people;
// the lock of the operating system decides, and goes with the process.
type owner struct {
	PID   int       `json:"pid"`
	Host  string    `json:"host"`
	Since time.Time `json:"since"`
}

// errHeld is what flock gives when somebody else holds the lock.
var errHeld = errors.New("lock is held")

// lock takes the lock file of a store, until it is closed. The file stays: removing
// it would let two processes lock two files of one name.
func lock(path string) (*os.File, error) {
	f, err := os.OpenFile(path+".lock", os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("sqlite: open lock file: %w", err)
	}
	if err := flock(f); err != nil {
		if errors.Is(err, errHeld) {
			err = inUse(path, f)
		} else {
			err = fmt.Errorf("sqlite: lock %s: %w", f.Name(), err)
		}
		return nil, errors.Join(err, f.Close())
	}
	if err := sign(f); err != nil {
		return nil, errors.Join(fmt.Errorf("sqlite: write lock file: %w", err), f.Close())
	}
	return f, nil
}

func sign(f *os.File) error {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown host"
	}
	b, err := json.Marshal(owner{os.Getpid(), host, time.Now().UTC().Truncate(time.Second)})
	if err != nil {
		return err
	}
	if err := f.Truncate(0); err != nil {
		return err
	}
	_, err = f.WriteAt(append(b, '\n'), 0)
	return err
}

func inUse(path string, f *os.File) error {
	e := &InUseError{Path: path}
	var o owner
	// The holder may be writing it just now; then nobody is named.
	if b, err := io.ReadAll(io.LimitReader(f, 4096)); err == nil && json.Unmarshal(b, &o) == nil {
		e.PID, e.Host, e.Since = o.PID, o.Host, o.Since
	}
	return e
}
