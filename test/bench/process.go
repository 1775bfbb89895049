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
	clientDurable  = "penstock sqlite"
	clientLog      = "bare+log" // appends to a file, acknowledges what is on the disk
)

// packages are what is built for each client.
var packages = map[string]string{
	clientBare: "./test/bench/peers/bare", clientDecode: "./test/bench/peers/bare",
	clientSDK: "./test/bench/peers/sdk", clientPenstock: "./test/bench/penstockbench",
	clientRun: "./cmd/penstock", clientDurable: "./test/bench/penstockbench",
	clientLog: "./test/bench/peers/bare",
}

// bench is one run of the benchmark.
type bench struct {
	opts  options
	dir   string // built binaries and files, removed at the end
	log   io.Writer
	out   report
	built map[string]bool // by package
}

// build compiles a client from the root of the module, unless it has done so.
func (b *bench) build(client string) error {
	pkg := packages[client]
	if b.built[pkg] {
		return nil
	}
	cmd := exec.Command("go", "build", "-o", b.binary(client), pkg)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build %s: %w\n%s", pkg, err, out)
	}
	b.built[pkg] = true
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
	if err = b.build(client); err != nil {
		return p, err
	}
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
	switch client {
	case clientDecode:
		args = append(args, "-decode")
	case clientLog:
		args = append(args, "-log", filepath.Join(b.dir, "log.db"))
	case clientDurable:
		path, err := b.fresh()
		if err != nil {
			return nil, err
		}
		args = append(args, "-store", path)
	}
	if isPenstock(client) && b.opts.pprof != "" {
		args = append(args, "-pprof", b.opts.pprof)
	}
	return append(args, more...), nil
}

// isPenstock tells whether a client knows figures of the service.
func isPenstock(client string) bool { return client == clientPenstock || client == clientDurable }

// fresh gives the path of a store that is not there, and removes the one before.
func (b *bench) fresh() (string, error) {
	dir := filepath.Join(b.dir, "store")
	if err := os.RemoveAll(dir); err != nil {
		return "", err
	}
	return filepath.Join(dir, "penstock.db"), nil
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
func rss(pid int) (int, error) { return procFigure(pid, "status", "VmRSS:") }

// peakRSS is the most that it has been.
func peakRSS(pid int) (int, error) { return procFigure(pid, "status", "VmHWM:") }

// written is how many bytes a process has caused to be written to disks.
func written(pid int) (int, error) { return procFigure(pid, "io", "\nwrite_bytes:") }

func procFigure(pid int, file, word string) (n int, err error) {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", pid, file))
	if err != nil {
		return 0, err
	}
	_, rest, _ := strings.Cut(string(raw), word)
	_, err = fmt.Sscan(rest, &n)
	return n, err
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
