package simulate

import (
	"errors"
	"fmt"
	"io"
	"net"
	"time"
)

// Options set up a simulation. The zero value of each field means its default,
// unless the field says otherwise.
type Options struct {
	// Listen is where bots connect, on loopback. Default: 127.0.0.1:8090.
	Listen string
	// ClientID and Secret are those of the only app. Default: demo and demo.
	ClientID, Secret string
	// AwkwardTickets gives tickets that have to be escaped in a URL. The vendor's own
	// SDKs for Go and Node do not.
	AwkwardTickets bool
	// Seed repeats the choices. Default: 1.
	Seed uint64

	// Script is played in place of what In holds; File names it in errors.
	Script []Step
	File   string
	// Random says things by itself, at Rate a second in as many Conversations,
	// beside the script or the lines. Default: 5 and 20.
	Random        bool
	Rate          int
	Conversations int
	// For bounds the whole. Default: 5 min with a script, else no bound.
	For time.Duration
	// Quiet is how long the bot has to say nothing before a script has ended.
	// Default: 1 s.
	Quiet time.Duration

	// In holds the lines if there is no script; nil means none. EndWithIn ends the
	// simulation with them.
	In        io.Reader
	EndWithIn bool
	// Out gets a line for each thing that happens, as JSON if JSON says so; Err gets
	// what is wrong with a line, and with JSON all that is meant for people. Default:
	// nobody does.
	Out, Err io.Writer
	JSON     bool
}

// Defaults of Options that a command line shows.
const (
	DefaultListen        = "127.0.0.1:8090"
	DefaultClient        = "demo"
	DefaultSecret        = "demo"
	DefaultRate          = 5
	DefaultConversations = 20
	DefaultFor           = 5 * time.Minute // of a script
)

// Bounds of Options.
const (
	maxRate          = 1000
	maxConversations = 10_000
	defaultQuiet     = time.Second
)

func (o Options) withDefaults() Options {
	set(&o.Listen, DefaultListen)
	set(&o.ClientID, DefaultClient)
	set(&o.Secret, DefaultSecret)
	set(&o.Seed, 1)
	set(&o.Rate, DefaultRate)
	set(&o.Conversations, DefaultConversations)
	set(&o.Quiet, defaultQuiet)
	if o.Script != nil {
		set(&o.For, DefaultFor)
	}
	if o.Out == nil {
		o.Out = io.Discard
	}
	if o.Err == nil {
		o.Err = io.Discard
	}
	return o
}

// set gives a field its default.
func set[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// Validate names the first field that is wrong, as the command line calls it. Run
// calls it too.
func (o Options) Validate() error {
	o = o.withDefaults()
	host, _, err := net.SplitHostPort(o.Listen)
	switch {
	case err != nil:
		return fmt.Errorf("--listen: %q is not HOST:PORT", o.Listen)
	case !loopback(host):
		return errors.New("--listen must be a loopback address: nothing is encrypted")
	case o.Rate < 1 || o.Rate > maxRate:
		return fmt.Errorf("--rate must be between 1 and %d", maxRate)
	case o.Conversations < 1 || o.Conversations > maxConversations:
		return fmt.Errorf("--conversations must be between 1 and %d", maxConversations)
	case o.For < 0:
		return errors.New("--for must not be negative")
	}
	return nil
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// judged tells whether the simulation has an end of its own, at which it can be
// told whether the bot has done its part.
func (o Options) judged() bool { return o.Script != nil || o.For > 0 }
