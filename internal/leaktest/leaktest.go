// Package leaktest fails a package's test run when a goroutine is left behind.
package leaktest

import (
	"testing"

	"go.uber.org/goleak"
)

// Main runs the tests of a package and then looks for goroutines that nobody
// waited for. Call it from TestMain.
func Main(m *testing.M) {
	goleak.VerifyTestMain(m)
}
