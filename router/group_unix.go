//go:build unix

package router

import (
	"errors"
	"os"
	"os/exec"
	"syscall"
)

// startGroup has cmd start in a process group whose id is its own.
func startGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// endGroup asks every process of the group to end.
func endGroup(p *os.Process) error {
	err := syscall.Kill(-p.Pid, syscall.SIGTERM)
	if errors.Is(err, syscall.ESRCH) {
		return os.ErrProcessDone
	}
	return err
}

// killGroup ends every process of the group that is still there.
func killGroup(p *os.Process) {
	// The only error is that nobody is left.
	_ = syscall.Kill(-p.Pid, syscall.SIGKILL)
}
