package dispatch

import "time"

type kind uint8

const (
	kindDone kind = iota
	kindFailed
	kindHold
	kindDetach
	kindAbandon // given by a stop, never by a run
)

// Outcome tells what is to happen to a job after a run. The zero value is Done().
type Outcome struct {
	err   error
	after time.Duration
	kind  kind
}

// Done ends the job: it ran well.
func Done() Outcome { return Outcome{} }

// Failed ends the job with an error. Failed(nil) is Done().
func Failed(err error) Outcome {
	if err == nil {
		return Done()
	}
	return Outcome{kind: kindFailed, err: err}
}

// Hold keeps the job at the head of its key, which waits with it, and has it run
// again after the given time; zero or less means as soon as its turn comes. No
// slot is occupied meanwhile and no callback is made.
func Hold(after time.Duration) Outcome { return Outcome{kind: kindHold, after: after} }

// Detach gives the slot back while the job goes on elsewhere: its key stays held
// and it counts as pending until Task.Complete. It has no deadline any more.
func Detach() Outcome { return Outcome{kind: kindDetach} }
