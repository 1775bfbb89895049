//go:build !unix

package router

import (
	"os"
	"os/exec"
)

// startGroup does nothing: there are no process groups here, so that only the
// command itself can be ended.
func startGroup(*exec.Cmd) {}

func endGroup(p *os.Process) error { return p.Kill() }

func killGroup(p *os.Process) {
	// The only error is that it has ended.
	_ = p.Kill()
}
