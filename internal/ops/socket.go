package ops

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// ErrSocketInUse means that another process serves the socket.
var ErrSocketInUse = errors.New("another process serves this socket")

// ErrNobody means that nobody serves the socket.
var ErrNobody = errors.New("nobody serves this socket")

// ErrSocketName means that a path is too long for the name of a socket.
var ErrSocketName = errors.New("the path is too long for a socket")

// maxPath is the longest name that every system takes for a socket.
const maxPath = 103

// listener is a socket that only its owner may use.
type listener struct {
	net.Listener
	path string
	file fs.FileInfo // what stood at path when it was made
}

// listen makes the socket at path, with mode 0600, and its directory with mode
// 0700 if that is missing. A socket that a dead process left is replaced.
func listen(ctx context.Context, path string) (*listener, error) {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	if err := vacant(ctx, path); err != nil {
		return nil, err
	}
	// A socket is made with the mode that the process's mask leaves, and may be
	// connected to before it is changed. So it is made where nobody else can look,
	// and moved.
	private, err := os.MkdirTemp(dir, ".p")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(private) }() // it is empty, or of no use
	first := filepath.Join(private, "s")
	if n := max(len(first), len(path)) - maxPath; n > 0 {
		return nil, fmt.Errorf("%s: %w by %d bytes", path, ErrSocketName, n)
	}
	var lc net.ListenConfig
	ln, err := lc.Listen(ctx, "unix", first)
	if err != nil {
		return nil, err
	}
	if u, ok := ln.(*net.UnixListener); ok {
		u.SetUnlinkOnClose(false) // it will have moved
	}
	l := &listener{Listener: ln, path: path}
	if err := l.move(first); err != nil {
		_ = ln.Close()
		return nil, err
	}
	return l, nil
}

func (l *listener) move(from string) error {
	if err := os.Chmod(from, 0o600); err != nil {
		return err
	}
	if err := os.Rename(from, l.path); err != nil {
		return err
	}
	var err error
	l.file, err = os.Lstat(l.path)
	return err
}

// remove takes the socket away, unless another one stands in its place.
func (l *listener) remove() {
	_ = l.Close() // the server may have closed it
	if now, err := os.Lstat(l.path); err == nil && os.SameFile(now, l.file) {
		_ = os.Remove(l.path) // what is left behind is replaced at the next start
	}
}

// vacant tells whether a socket may be made at path. What is not a socket is not
// touched.
func vacant(ctx context.Context, path string) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case info.Mode().Type() != fs.ModeSocket:
		return fmt.Errorf("%s: there is something that is not a socket", path)
	}
	conn, err := dial(ctx, path)
	if errors.Is(err, ErrNobody) {
		return nil
	}
	if err != nil {
		return err
	}
	_ = conn.Close() // it only asked
	return fmt.Errorf("%s: %w", path, ErrSocketInUse)
}

// dialWithin bounds a connection to a socket whose owner does not answer.
const dialWithin = 5 * time.Second

// dial connects to the socket at path; ErrNobody if that has no owner.
func dial(ctx context.Context, path string) (net.Conn, error) {
	if len(path) > maxPath { // then nobody can
		return nil, fmt.Errorf("%s: %w", path, ErrNobody)
	}
	d := net.Dialer{Timeout: dialWithin}
	conn, err := d.DialContext(ctx, "unix", path)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED) {
		return nil, fmt.Errorf("%s: %w", path, ErrNobody)
	}
	return conn, err
}
