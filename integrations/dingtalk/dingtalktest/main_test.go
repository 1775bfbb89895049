package dingtalktest_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/penstock-io/penstock/internal/leaktest"
)

// botDir holds the bot that buildBot builds.
var botDir string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "dingtalktest")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	botDir = dir
	leaktest.Main(m)
}
