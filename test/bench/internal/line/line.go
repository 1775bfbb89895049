// Package line is how the processes of the benchmark talk: one JSON object a line,
// a request on standard input, its answer on standard output. A child ends when
// its standard input does, so none outlives the benchmark.
package line

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime/debug"
	"time"
)

// Request asks a child for something. Arg is what the word takes, if anything.
type Request struct {
	Do  string          `json:"do"`
	Arg json.RawMessage `json:"arg,omitempty"`
}

// Answer is what became of a request.
type Answer struct {
	Error  string          `json:"error,omitempty"`
	Result json.RawMessage `json:"result,omitempty"`
}

// Figures are what a client knows of itself.
type Figures struct {
	Handled    int64 `json:"handled"`
	Duplicates int64 `json:"duplicates"` // handled more than once
	Inversions int64 `json:"inversions"` // handled after a later one of its conversation
	Overlaps   int64 `json:"overlaps"`   // handled beside another of its conversation

	// DelayP50 is the median from the push of a message to its handler, give or take
	// the millisecond to which the platform tells the time of a message.
	DelayP50 time.Duration `json:"delay_p50"`

	Goroutines int    `json:"goroutines"`
	AllocBytes uint64 `json:"alloc_bytes"` // since the start
	Allocs     uint64 `json:"allocs"`      // since the start

	// Of Penstock's own metrics.
	Done          int64         `json:"done"`    // messages whose end is stored
	Waiting       int64         `json:"waiting"` // in a queue, or known to be in the store
	Commits       int64         `json:"commits"`
	LongestCommit time.Duration `json:"longest_commit"`
	Consumers     int64         `json:"consumers"` // sockets of the edge
	Stalls        int64         `json:"stalls"`    // of those, how often one did not read
	Slow          int64         `json:"slow"`      // of those, that were cut off for it

	// Since the process began; 0 until then.
	Up       time.Duration `json:"up"`
	FirstAck time.Duration `json:"first_ack"`
	FirstJob time.Duration `json:"first_job"`

	// After the request "stop".
	StopTook   time.Duration `json:"stop_took"`
	Unfinished int           `json:"unfinished"` // named by the stop
}

// Sending is what became of an outbox.
type Sending struct {
	Took       time.Duration `json:"took"`
	Sent       int64         `json:"sent"`
	Inversions int64         `json:"inversions"`
	Commits    int64         `json:"commits"`
}

// Word serves one kind of request.
type Word func(arg json.RawMessage) (any, error)

// Rest is the request that every child serves: it gives back the garbage of its
// start, as the runtime does by itself after some idle minutes.
const Rest = "rest"

func rest(json.RawMessage) (any, error) {
	debug.FreeOSMemory()
	return nil, nil
}

// Serve answers the requests on standard input until it ends.
func Serve(words map[string]Word) error {
	in := json.NewDecoder(os.Stdin)
	out := json.NewEncoder(os.Stdout)
	for {
		var req Request
		err := in.Decode(&req)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read request: %w", err)
		}
		w := words[req.Do]
		if req.Do == Rest {
			w = rest
		}
		if err := out.Encode(answer(w, req)); err != nil {
			return fmt.Errorf("write answer: %w", err)
		}
	}
}

func answer(w Word, req Request) (a Answer) {
	if w == nil {
		return Answer{Error: "unknown word " + req.Do}
	}
	result, err := w(req.Arg)
	if err != nil {
		a.Error = err.Error()
	}
	if a.Result, err = json.Marshal(result); err != nil {
		a.Error = err.Error()
	}
	return a
}

// Child is a process that serves requests. It is used by one goroutine.
type Child struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

// Start starts a child; what it logs goes to log.
func Start(log io.Writer, path string, args ...string) (*Child, error) {
	cmd := exec.Command(path, args...)
	cmd.Stderr = log
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", path, err)
	}
	return &Child{cmd: cmd, in: in, out: bufio.NewReader(out)}, nil
}

// PID is the child's process id.
func (c *Child) PID() int { return c.cmd.Process.Pid }

// Ask sends a request and waits for the answer, which goes into result unless that
// is nil. It fails if the child ends meanwhile.
func (c *Child) Ask(do string, arg, result any) error {
	raw, err := json.Marshal(arg)
	if err != nil {
		return err
	}
	if err := json.NewEncoder(c.in).Encode(Request{do, raw}); err != nil {
		return fmt.Errorf("ask %s: %w", do, err)
	}
	text, err := c.out.ReadBytes('\n')
	if err != nil {
		return fmt.Errorf("ask %s: %w", do, err)
	}
	var a Answer
	if err := json.Unmarshal(text, &a); err != nil {
		return fmt.Errorf("ask %s: %w", do, err)
	}
	if a.Error != "" {
		return fmt.Errorf("ask %s: %s", do, a.Error)
	}
	if result == nil {
		return nil
	}
	return json.Unmarshal(a.Result, result)
}

// Interrupt sends SIGINT, for a child that does not serve requests.
func (c *Child) Interrupt() { _ = c.cmd.Process.Signal(os.Interrupt) } // it may have ended

// goodbye is how long a child may take to end by itself.
const goodbye = 3 * time.Second

// End closes the child's input, waits for it, and kills it when that takes long.
// The error is how it ended.
func (c *Child) End() error {
	_ = c.in.Close() // it may have ended
	guard := time.AfterFunc(goodbye, func() { _ = c.cmd.Process.Kill() })
	defer guard.Stop()
	return c.cmd.Wait()
}
