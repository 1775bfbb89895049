package router

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/penstock-io/penstock/message"
)

// ExecConfig says what an [Exec] handler runs.
type ExecConfig struct {
	// Command is the program and its arguments. Required. No shell comes between;
	// a name without a slash is looked for in PATH.
	Command []string
	// Dir is where it runs. Empty means the working directory.
	Dir string
	// Env is added to its environment, which otherwise has only PATH, HOME, USER,
	// LANG, LC_ALL, TZ, TMPDIR, PENSTOCK_ID and PENSTOCK_ATTEMPT.
	Env map[string]string
	// Timeout bounds a run. Negative means that only the caller's context does.
	// Default 60 s.
	Timeout time.Duration
	// Grace is how long it may take to end after SIGTERM before it is killed.
	// Default 2 s.
	Grace time.Duration
	// MaxOutput is the most bytes the standard output may have. Default 1 MiB.
	MaxOutput int64
	// Output says how the standard output is read. Default OutputAuto.
	Output Output
}

// Output is a way to read what a command writes.
type Output string

// Ways to read an output. A command that repeats what people write should not
// be read with OutputAuto, or they can have it say what they like in JSON.
const (
	OutputAuto Output = "auto" // JSON if the first character is "{", else text
	OutputText Output = "text" // one reply with all of it
	OutputJSON Output = "json" // JSON objects, such as one in each line
)

// passedOn are the variables of Penstock's environment that a command gets.
var passedOn = []string{"PATH", "HOME", "USER", "LANG", "LC_ALL", "TZ", "TMPDIR", "SYSTEMROOT"}

const defaultGrace = 2 * time.Second

func (c ExecConfig) withDefaults() ExecConfig {
	c.Command = slices.Clone(c.Command)
	if c.Timeout == 0 {
		c.Timeout = defaultTimeout
	}
	if c.Grace == 0 {
		c.Grace = defaultGrace
	}
	if c.MaxOutput == 0 {
		c.MaxOutput = defaultAnswer
	}
	if c.Output == "" {
		c.Output = OutputAuto
	}
	return c
}

func (c *ExecConfig) validate() error {
	switch {
	case len(c.Command) == 0 || c.Command[0] == "":
		return errors.New("command: not set")
	case c.Grace < 0:
		return fmt.Errorf("grace: %v is negative", c.Grace)
	case c.MaxOutput < 0:
		return fmt.Errorf("max_output: %d is negative", c.MaxOutput)
	case !slices.Contains([]Output{OutputAuto, OutputText, OutputJSON}, c.Output):
		return fmt.Errorf("output: %q is none of auto, text, json", c.Output)
	}
	for name, value := range c.Env {
		if name == "" || strings.ContainsAny(name, "=\x00") || strings.Contains(value, "\x00") {
			return fmt.Errorf("env: %q is no valid variable", name)
		}
	}
	return nil
}

// environment gives the configured variables in a fixed order, and what of the
// configuration may be secret.
func (c *ExecConfig) environment() (env, secrets []string) {
	for _, name := range slices.Sorted(maps.Keys(c.Env)) {
		env = append(env, name+"="+c.Env[name])
		secrets = append(secrets, c.Env[name])
	}
	return env, secrets
}

// decode reads the output of a command that succeeded.
func (o Output) decode(out []byte) (Result, error) {
	text := bytes.TrimSpace(out)
	if o == OutputJSON || o == OutputAuto && bytes.HasPrefix(text, []byte("{")) {
		return decodeObjects(text, math.MaxInt)
	}
	return textResult(message.FormatText, out)
}
