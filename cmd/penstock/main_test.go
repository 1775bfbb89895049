package main

import (
	"os"
	"testing"

	"github.com/penstock-io/penstock/internal/leaktest"
)

// asCommand makes the test's binary behave as the command, so that tests can
// start it as a process and send it signals.
const asCommand = "PENSTOCK_TEST_AS_COMMAND"

func TestMain(m *testing.M) {
	if os.Getenv(asCommand) != "" {
		main()
	}
	leaktest.Main(m)
}
