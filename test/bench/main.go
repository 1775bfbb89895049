// Command bench measures the built binary beside its peers: `go run ./test/bench`
// from the root of the module. A gateway in a process of its own pushes messages to
// one client after the other, and what matters is the ratio of runs that were made
// back to back.
//
// It promises that no process it starts outlives it, and that a peer that crashes
// spoils its own figures only.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// gatewayMode as the only argument makes this program the gateway.
const gatewayMode = "gateway"

type options struct {
	json, quick, verbose bool
	only, clients, pprof string
	disk                 string
	soak                 time.Duration
	rounds               int
}

func main() {
	if len(os.Args) == 2 && os.Args[1] == gatewayMode {
		exit(runGateway())
	}
	var o options
	flag.BoolVar(&o.json, "json", false, "print JSON and nothing else")
	flag.BoolVar(&o.quick, "quick", false, "shorter runs, and none that takes minutes")
	flag.BoolVar(&o.verbose, "v", false, "show what the processes log")
	flag.StringVar(&o.only, "only", "", "rows to measure, parts of names separated by commas")
	flag.StringVar(&o.clients, "clients", "", "clients to measure, likewise")
	flag.StringVar(&o.pprof, "pprof", "", "address where penstock serves its profiles")
	flag.IntVar(&o.rounds, "rounds", 3, "repetitions; the table shows medians")
	flag.StringVar(&o.disk, "disk", "", "directory for stores; default: that of temporary files")
	flag.DurationVar(&o.soak, "soak", 0, "how long to soak; default: that row is left out")
	flag.Parse()
	exit(run(o))
}

func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

func run(o options) error {
	dir, err := os.MkdirTemp(o.disk, "penstock-bench")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	b := &bench{opts: o, dir: dir, log: os.Stderr, built: map[string]bool{}}
	if !o.verbose {
		sink, err := os.Create(filepath.Join(dir, "log"))
		if err != nil {
			return err
		}
		defer func() { _ = sink.Close() }()
		b.log = sink
	}
	b.out = newReport()
	for _, r := range slices.Concat(rows, edgeRows) {
		if !matches(o.only, r.name) || (o.quick && r.slow) || (o.soak == 0 && r.name == rowSoak) {
			continue
		}
		fmt.Fprintf(os.Stderr, "%s (load %s)\n", r.name, load())
		if err := r.measure(b, r.name); err != nil {
			return fmt.Errorf("%s: %w", r.name, err)
		}
	}
	if o.json {
		enc := json.NewEncoder(os.Stdout)
		enc.SetIndent("", "  ")
		return enc.Encode(b.out)
	}
	return b.out.print(os.Stdout)
}

// matches tells whether one of the parts occurs in a name.
func matches(parts, name string) bool {
	for part := range strings.SplitSeq(parts, ",") {
		if strings.Contains(name, part) {
			return true
		}
	}
	return false
}
