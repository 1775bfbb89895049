//go:build linux || darwin

package sqlite

import "syscall"

// roomFor is how many bytes may still be written beside a file, and whether that is
// known.
func roomFor(path string) (bytes int64, known bool) {
	var st syscall.Statfs_t
	if err := syscall.Statfs(path, &st); err != nil {
		return 0, false
	}
	return int64(st.Bavail) * int64(st.Bsize), true
}
