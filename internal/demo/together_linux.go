package demo

import (
	"os/exec"
	"runtime"
	"syscall"
)

// dieTogether makes the system kill the process when this one dies, however it does.
// That is tied to the thread that starts it, which the caller keeps until release.
func dieTogether(cmd *exec.Cmd) (release func()) {
	runtime.LockOSThread()
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return runtime.UnlockOSThread
}
