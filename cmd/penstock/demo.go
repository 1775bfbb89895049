package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/penstock-io/penstock/internal/demo"
)

var errDemo = errors.New("the demo lost, doubled or reordered messages")

func demoCommand() *cobra.Command {
	var o demo.Options
	var asJSON, verbose bool
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "See it work: a simulated gateway, no account needed",
		Long: `Start a simulated DingTalk gateway and a handler's endpoint in this process, and
the service in another, connect three bots over real sockets, and push the
traffic of several hundred conversations through them, while sockets are retired,
cut and black-holed, messages are pushed twice, and the service is killed
(SIGKILL) once and started again. Every message is followed to its handler and
its reply. The service keeps its messages in a file in a temporary directory,
which is removed at the end.

Times are shortened so that it fits into seconds: a silent socket is given up
after 1.5s (85s in real use), and the gateway pushes an unacknowledged message
again after 4s (about 60s).

It ends with a summary and exits 0 if nothing was lost, doubled or reordered. A
message whose handler had run when the kill came, but not been recorded, is
handled again as its second try and counts among "handled" only; so does a
reply, among "replied", that the service cannot know to have arrived.`,
		Example: "  penstock demo\n  penstock demo --for 10s --json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := playable(o); err != nil {
				return usageError{cmd.CommandPath(), err}
			}
			if verbose {
				o.Log = cmd.ErrOrStderr()
			}
			return runDemo(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr(), o, asJSON)
		},
	}
	f := cmd.Flags()
	f.DurationVar(&o.For, "for", 20*time.Second, "how long to push")
	f.IntVar(&o.Conversations, "conversations", 300, "number of conversations")
	f.IntVar(&o.Rate, "rate", 300, "messages a second")
	f.Uint64Var(&o.Seed, "seed", 1, "repeat the same choices")
	f.BoolVar(&asJSON, "json", false, "print one JSON object and nothing else")
	f.BoolVarP(&verbose, "verbose", "v", false, "show the service's log")
	return cmd
}

// minFor is the shortest demo: a black-holed socket has to be noticed.
const minFor = 5 * time.Second

func playable(o demo.Options) error {
	switch {
	case o.For < minFor:
		return fmt.Errorf("--for must be at least %v", minFor)
	case o.Conversations < 1:
		return errors.New("--conversations must be at least 1")
	case o.Rate < 1:
		return errors.New("--rate must be at least 1")
	}
	return nil
}

func runDemo(
	ctx context.Context, stdout, stderr io.Writer, o demo.Options, asJSON bool,
) error {
	if !asJSON {
		fmt.Fprintf(stdout, "3 bots, %d conversations, %d messages a second for %v\n",
			o.Conversations, o.Rate, o.For)
		v := &view{out: stderr, live: isTerminal(stderr)}
		o.Progress = v.show
		defer v.end()
	}
	sum, err := demo.Run(ctx, o)
	if err != nil {
		return err
	}
	if asJSON {
		err = json.NewEncoder(stdout).Encode(sum)
	} else {
		err = tell(stdout, sum)
	}
	if err == nil && !sum.OK() {
		err = errDemo
	}
	return err
}

func isTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// view shows progress: one line that changes on a terminal, a line every two
// seconds elsewhere.
type view struct {
	out   io.Writer
	live  bool
	shown time.Time
}

const plainEvery = 2 * time.Second

func (v *view) show(p demo.Progress) {
	line := fmt.Sprintf("%5.1fs  pushed %6d  acked %6d  handled %6d  replied %6d  redials %2d",
		p.Elapsed.Seconds(), p.Pushed, p.Acked, p.Handled, p.Replied, p.Redials)
	switch {
	case v.live && p.Note != "":
		fmt.Fprintf(v.out, "\r\x1b[K%5.1fs  %s\n", p.Elapsed.Seconds(), p.Note)
	case v.live:
		fmt.Fprintf(v.out, "\r\x1b[K%s", line)
	case p.Note != "":
		fmt.Fprintf(v.out, "%5.1fs  %s\n", p.Elapsed.Seconds(), p.Note)
	case time.Since(v.shown) >= plainEvery:
		v.shown = time.Now()
		fmt.Fprintln(v.out, line)
	}
}

func (v *view) end() {
	if v.live {
		fmt.Fprint(v.out, "\r\x1b[K")
	}
}

func tell(w io.Writer, s demo.Summary) error {
	verdict := "Beyond that nothing was lost, handled twice or reordered."
	if !s.OK() {
		verdict = fmt.Sprintf("NOT GOOD: %d lost, %d duplicates, %d inversions.",
			s.Lost, s.Duplicates, s.Inversions)
	}
	_, err := fmt.Fprintf(w, `
The gateway pushed %d frames, second copies included, and read %d acknowledgements.
The handler ran %d times and %d replies were sent. The service was killed %d time(s):
%d messages were handled again and %d replies sent again because of it.
Sockets were replaced %d times; after a planned notice the next message came on
the new socket within %.1f ms. Half of the frames were acknowledged within %.2f ms,
99 in 100 within %.2f ms.
%s
`, s.Frames, s.Acked, s.Handled, s.Replied, s.Kills, s.Again, s.Doubted, s.Redials, s.GapMax, s.AckP50, s.AckP99, verdict)
	return err
}
