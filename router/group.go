package router

import (
	"context"
	"fmt"
	"os/exec"
	"time"
)

// runGroup runs cmd, which was made with ctx, in a process group of its own and
// waits for its end. When ctx ends the group is asked to end, and after grace it
// is killed. Somebody outside the group who holds the pipes is left behind then.
func runGroup(ctx context.Context, cmd *exec.Cmd, grace time.Duration) error {
	startGroup(cmd)
	cmd.Cancel = func() error { return endGroup(cmd.Process) }
	// After this Wait kills the command and closes the pipes. It counts from the
	// end of ctx or of the command, whichever is first.
	cmd.WaitDelay = grace
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start: %w", err)
	}
	err := cmd.Wait()
	if ctx.Err() != nil || err != nil {
		// Whoever of the group is left holds the pipes, or belongs to a try that
		// failed and may come again.
		killGroup(cmd.Process)
	}
	return err
}
