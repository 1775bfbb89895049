package simulate

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"
)

// maxLine bounds a line, maxLines a script.
const (
	maxLine  = 64 << 10
	maxLines = 100_000
)

// ErrScript is what Problems are.
var ErrScript = errors.New("mistakes in a script")

// Problem is one mistake in a script.
type Problem struct {
	File string
	Line int // 0 if it is the file that is wrong
	Err  error
}

// Problems are all mistakes of a script, in the order of its lines.
type Problems []Problem

func (p Problems) Error() string {
	var b strings.Builder
	for i, one := range p {
		if i > 0 {
			b.WriteByte('\n')
		}
		if one.Line == 0 {
			fmt.Fprintf(&b, "%s: %v", one.File, one.Err)
		} else {
			fmt.Fprintf(&b, "%s:%d: %v", one.File, one.Line, one.Err)
		}
	}
	return b.String()
}

// Is tells that they are mistakes in a script.
func (p Problems) Is(target error) bool { return target == ErrScript }

// Step is one command of a script.
type Step struct {
	Line int
	Command
}

// ParseScript reads a whole script. Empty lines and lines that begin with # do
// nothing. The error is Problems, or that of the reader; file names the script in it.
func ParseScript(file string, in io.Reader) (steps []Step, err error) {
	var wrong Problems
	lines := newLines(in)
	number, said, ended := 0, false, false
	for number < maxLines && lines.Scan() {
		number++
		text := strings.TrimSpace(lines.Text())
		if text == "" || strings.HasPrefix(text, "#") {
			continue
		}
		c, err := Parse(text)
		if err == nil {
			err = inOrder(c, said, ended)
		}
		said, ended = said || c.Verb.repeatable(), ended || c.Verb == Quit
		if err != nil {
			wrong = append(wrong, Problem{file, number, err})
		}
		steps = append(steps, Step{number, c})
	}
	switch err := lines.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		wrong = append(wrong, Problem{file, number + 1, errLongLine})
	case err != nil:
		return nil, fmt.Errorf("read %s: %w", file, err)
	case len(steps) == 0:
		wrong = append(wrong, Problem{file, 0, errors.New("has no lines")})
	case number == maxLines && lines.Scan():
		wrong = append(wrong, Problem{file, 0, fmt.Errorf("has more than %d lines", maxLines)})
	}
	if len(wrong) > 0 {
		return nil, wrong
	}
	return steps, nil
}

var errLongLine = fmt.Errorf("the line is longer than %d bytes", maxLine)

// newLines reads lines of a bounded length.
func newLines(in io.Reader) *bufio.Scanner {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, maxLine)
	return lines
}

// errNothingSaid is the error of /dup before anything that it could repeat.
var errNothingSaid = errors.New("/dup: nothing has been said that could come again")

// inOrder finds what is right by itself and wrong where it stands.
func inOrder(c Command, said, ended bool) error {
	switch {
	case ended:
		return errors.New("it stands behind /quit")
	case c.Verb == Dup && !said:
		return errNothingSaid
	}
	return nil
}

// repeatable tells whether the verb pushes something that /dup can push again.
func (v Verb) repeatable() bool {
	switch v {
	case Say, Picture, File, Event:
		return true
	default:
		return false
	}
}
