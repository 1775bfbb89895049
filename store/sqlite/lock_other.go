//go:build !(linux || darwin || freebsd || netbsd || openbsd || dragonfly)

package sqlite

import (
	"errors"
	"os"
)

// flock fails: without a lock that goes with its process, two of them could hold
// one store.
func flock(*os.File) error { return errors.ErrUnsupported }
