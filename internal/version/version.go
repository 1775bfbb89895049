// Package version tells which build is running.
package version

import (
	"fmt"
	"runtime"
	"runtime/debug"
)

// Version is the release; builds may set it with -ldflags -X.
var Version = "0.1.0-dev"

// String gives version, commit if known, and the Go release.
func String() string {
	commit := ""
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				commit = " (" + s.Value[:min(12, len(s.Value))] + ")"
			}
		}
	}
	return fmt.Sprintf("penstock %s%s %s %s/%s",
		Version, commit, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}
