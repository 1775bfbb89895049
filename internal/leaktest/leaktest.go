// Package leaktest fails a package's test run when a goroutine is left behind.
package leaktest

import "go.uber.org/goleak"

// Main runs the tests of a package and then looks for goroutines that nobody
// waited for. Call it from TestMain with its *testing.M, or with something around
// that.
func Main(m goleak.TestingM) {
	goleak.VerifyTestMain(m)
}
