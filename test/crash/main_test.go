package crash_test

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/penstock-io/penstock/internal/leaktest"
)

var (
	kills = flag.Int("kills", 30, "how often TestKills kills the daemon")
	rate  = flag.Int("rate", 300, "messages a second that TestKills pushes")
	seed  = flag.Uint64("seed", 0, "repeats the choices of TestKills; 0 takes new ones")
)

// The programs, built before the tests run.
var (
	penstock string // the one that is delivered
	failing  string // the one with a failpoint
)

func TestMain(m *testing.M) { leaktest.Main(builder{m}) }

// builder builds the programs before the tests and removes them after.
type builder struct{ tests *testing.M }

// Run implements the part of testing.M that is asked for.
func (b builder) Run() int {
	flag.Parse()
	dir, err := os.MkdirTemp("", "crash")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(dir) }() // a leftover in the temporary directory
	penstock, failing = filepath.Join(dir, "penstock"), filepath.Join(dir, "daemon")
	if !testing.Short() {
		for out, pkg := range map[string]string{penstock: "../../cmd/penstock", failing: "./daemon"} {
			if said, err := exec.Command("go", "build", "-o", out, pkg).CombinedOutput(); err != nil {
				fmt.Fprintf(os.Stderr, "build %s: %v\n%s", pkg, err, said)
				return 1
			}
		}
	}
	return b.tests.Run()
}
