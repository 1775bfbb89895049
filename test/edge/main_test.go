package edge_test

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

// botDir holds the bots that tests build.
var botDir string

func TestMain(m *testing.M) {
	var err error
	if botDir, err = os.MkdirTemp("", "penstock-edge"); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		_ = os.RemoveAll(botDir)
		os.Exit(code)
	}))
}
