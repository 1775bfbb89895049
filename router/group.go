package router

import (
	"context"
	"fmt"
	"os/exec"
	"time"
)

// pipeGrace is how long after the kill the pipes of a command may stay open.
const pipeGrace = time.Second

// runGroup runs cmd, which was made with ctx, in a process group of its own and
// waits for its end. When ctx ends, the group is asked to end and is killed
// after grace. A process outside the group that holds the pipes is left behind
// soon after that.
func runGroup(ctx context.Context, cmd *exec.Cmd, grace time.Duration) error {
	var kill *time.Timer // set by Cancel, which Wait orders before its return
	killed := make(chan struct{})
	cmd.Cancel = func() error {
		kill = time.AfterFunc(grace, func() {
			defer close(killed)
			killGroup(cmd.Process)
		})
		return endGroup(cmd.Process)
	}
	cmd.WaitDelay = grace + pipeGrace
	startGroup(cmd)
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start: %w", err)
	}
	err := cmd.Wait()
	if kill != nil && !kill.Stop() {
		<-killed
	}
	if ctx.Err() != nil || err != nil {
		// Whoever of the group is left holds the pipes, or belongs to a try that
		// failed and may come again.
		killGroup(cmd.Process)
	}
	return err
}
