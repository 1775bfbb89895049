package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/penstock-io/penstock/test/bench/internal/line"
)

// The clients by the names that tables use.
const (
	clientBare     = "bare"      // finds the id and acknowledges, decodes nothing
	clientDecode   = "bare+json" // decodes with encoding/json
	clientSDK      = "sdk"       // the vendor's client
	clientPenstock = "penstock"
	clientRun      = "penstock run" // the built binary with a file and no route
)

// packages are what is built for each client.
var packages = map[string]string{
	clientBare: "./test/bench/peers/bare", clientDecode: "./test/bench/peers/bare",
	clientSDK: "./test/bench/peers/sdk", clientPenstock: "./test/bench/penstockbench",
	clientRun: "./cmd/penstock",
}

// bench is one run of the benchmark.
type bench struct {
	opts options
	dir  string // built binaries and files, removed at the end
	log  io.Writer
	out  report
}

// build compiles every client once, from the root of the module.
func (b *bench) build() error {
	for name, pkg := range packages {
		cmd := exec.Command("go", "build", "-o", b.binary(name), pkg)
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("build %s: %w\n%s", pkg, err, out)
		}
	}
	return nil
}

func (b *bench) binary(client string) string {
	return filepath.Join(b.dir, filepath.Base(packages[client]))
}

// pair is a gateway and one client of it.
type pair struct {
	gateway *line.Child
	client  *line.Child
}

// start starts a gateway and a client with bots sockets, and waits until it is
// connected.
func (b *bench) start(client string, bots int, args ...string) (p pair, err error) {
	defer func() {
		if err != nil {
			p.end()
		}
	}()
	self, err := os.Executable()
	if err != nil {
		return p, err
	}
	if p.gateway, err = line.Start(b.log, self, gatewayMode); err != nil {
		return p, err
	}
	var url string
	if err = p.gateway.Ask(wordHello, nil, &url); err != nil {
		return p, err
	}
	args, err = b.args(client, url, bots, args)
	if err != nil {
		return p, err
	}
	if p.client, err = line.Start(b.log, b.binary(client), args...); err != nil {
		return p, err
	}
	return p, p.gateway.Ask(wordAwait, awaitArg{Apps: bots, Sockets: 1}, nil)
}

func (b *bench) args(client, url string, bots int, more []string) ([]string, error) {
	if client == clientRun {
		path := filepath.Join(b.dir, "penstock.yaml")
		return []string{"run", "-c", path}, os.WriteFile(path, configFile(url), 0o600)
	}
	args := []string{"-url", url, "-bots", strconv.Itoa(bots)}
	if client == clientDecode {
		args = append(args, "-decode")
	}
	if client == clientPenstock && b.opts.pprof != "" {
		args = append(args, "-pprof", b.opts.pprof)
	}
	return append(args, more...), nil
}

// configFile is for `penstock run`: one bot and no route, so that a message is done
// when its handler would have run.
func configFile(url string) []byte {
	return fmt.Appendf(nil, `admin:
  listen: "off"
store:
  kind: memory
installations:
  - id: bench
    client_id: bench-0
    client_secret: bench
    api_base: %[1]s
    oapi_base: %[1]s
    allow_insecure: true
`, url)
}

// end ends both processes.
func (p *pair) end() {
	for _, c := range []*line.Child{p.client, p.gateway} {
		if c != nil {
			_ = c.End() // a peer that crashed is told by its missing figures
		}
	}
}

// figures asks the client for its own.
func (p *pair) figures() (f line.Figures, err error) {
	err = p.client.Ask("stats", nil, &f)
	return f, err
}

// tick is the unit of times in /proc on Linux.
const tick = 10 * time.Millisecond

// cpu is the time that a process has used, user and system.
func cpu(pid int) (time.Duration, error) {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	// The name in parentheses may hold spaces; utime and stime are the 12th and
	// 13th word behind it.
	words := bytes.Fields(raw[bytes.LastIndexByte(raw, ')')+1:])
	const utime, stime = 11, 12
	if len(words) <= stime {
		return 0, fmt.Errorf("%s: too short", raw)
	}
	var total time.Duration
	for _, w := range words[utime : stime+1] {
		n, err := strconv.Atoi(string(w))
		if err != nil {
			return 0, err
		}
		total += time.Duration(n) * tick
	}
	return total, nil
}

// rss is the memory of a process in KiB.
func rss(pid int) (int, error) {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	_, rest, _ := strings.Cut(string(raw), "VmRSS:")
	var kib int
	_, err = fmt.Sscan(rest, &kib)
	return kib, err
}

// load is the machine's load, for a reader to judge the figures by.
func load() string {
	raw, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	first, _, _ := strings.Cut(string(raw), " ")
	return first
}
