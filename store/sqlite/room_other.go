//go:build !linux && !darwin

package sqlite

// roomFor does not know.
func roomFor(string) (bytes int64, known bool) { return 0, false }
