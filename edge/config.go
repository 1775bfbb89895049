package edge

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/penstock-io/penstock/message"
)

// Outbox takes the replies of consumers. All methods may be called from any number
// of goroutines.
type Outbox interface {
	// Address gives the reply address of a message, an error if it has none.
	Address(m *message.Inbound) (message.Target, error)
	// Send returns when the reply is committed. After an error it was not taken.
	Send(ctx context.Context, o message.Outbound) error
	// Secret is something that only the owner of the installation knows; ok is
	// false if there is no such installation.
	Secret(id message.InstallationID) (secret string, ok bool)
}

// Consumer is one bot that may connect.
type Consumer struct {
	// Name is what routes, logs and metrics say. Required, unique.
	Name string
	// ClientID and ClientSecret are what the bot presents. Required; ids are unique.
	ClientID, ClientSecret string
	// MaxConnections bounds its connections. Default 16.
	MaxConnections int
	// MaxInFlight bounds the messages that a connection is given and has not answered,
	// but for those whose answer the platform waits for. Default 0: only the callers of
	// Handle do.
	MaxInFlight int
}

// Config configures a [Server]. The zero value of every field but Outbox works; a
// server without consumers lets nobody in.
type Config struct {
	// Listen is where consumers connect. Default 127.0.0.1:8975.
	Listen string
	// Listener, if set, is used in its place and closed by Run.
	Listener net.Listener
	// PublicURL is how consumers reach us: scheme, host and, if a proxy adds one, a
	// path. Default: the address that is listened on.
	PublicURL string
	// CertFile and KeyFile, in PEM form, make the server speak https and wss. Both
	// or none; none is for loopback and for a proxy that speaks TLS.
	CertFile, KeyFile string

	// MaxConnections bounds the connections of all consumers. Default 1024.
	MaxConnections int
	// MaxFrame bounds what a consumer sends in one frame. Default 1 MiB.
	MaxFrame int64
	// AckWithin is how long an answer is waited for. Default 60 s.
	AckWithin time.Duration
	// PingEvery is the period of pings; a connection that says nothing for three
	// of them and five seconds is closed. Default 25 s.
	PingEvery time.Duration
	// RejoinWithin is how long a message is left with a connection that has died:
	// its consumer may answer on the next one. Default 5 s.
	RejoinWithin time.Duration
	// LeaveWithin is how long a connection that was asked to leave may be silent before
	// it is closed; one that talks on is closed after three times that. Default 10 s.
	LeaveWithin time.Duration
	// AwayWithin is how long messages wait for a connection that subscribes to them,
	// while there are others that do not: from the end of the last one that did, or from
	// the consumer's beginning. Default 15 min.
	AwayWithin time.Duration
	// TicketLife is how long a ticket may be used. Default 90 s.
	TicketLife time.Duration
	// ReplyWithin is how long a reply address is good. Default 90 min.
	ReplyWithin time.Duration
	// WriteTimeout bounds a write to a connection, and the silence of one that owes
	// an answer and leaves pings unanswered while its consumer has another one.
	// Default 10 s.
	WriteTimeout time.Duration
	// PassWebhook leaves the platform's own reply address in the messages.
	PassWebhook bool

	Consumers []Consumer
	// Outbox takes the replies. Required.
	Outbox Outbox
	// Asked, if set, tells whether any bot asks the platform for a callback topic. A
	// consumer that subscribes to others is logged.
	Asked func(topic string) bool
	// Workers is how many calls of Handle there may be at once for the messages of one
	// installation, if there is such a bound: while there are several consumers, none of
	// them takes more of it than it leaves to the others. Default 0: there is none.
	Workers int
	// Again, if set, is called when messages that were refused because nobody could take
	// them are worth another try: about n of them, all of them if n is 0. It must not
	// block.
	Again func(n int)
	// Logger: default discards.
	Logger *slog.Logger
}

func (c Config) withDefaults() Config {
	c.Listen = cmp.Or(c.Listen, "127.0.0.1:8975")
	c.MaxConnections = cmp.Or(c.MaxConnections, 1024)
	c.MaxFrame = cmp.Or(c.MaxFrame, 1<<20)
	c.AckWithin = cmp.Or(c.AckWithin, time.Minute)
	c.PingEvery = cmp.Or(c.PingEvery, 25*time.Second)
	c.RejoinWithin = cmp.Or(c.RejoinWithin, 5*time.Second)
	c.LeaveWithin = cmp.Or(c.LeaveWithin, 10*time.Second)
	c.AwayWithin = cmp.Or(c.AwayWithin, 15*time.Minute)
	c.TicketLife = cmp.Or(c.TicketLife, 90*time.Second)
	c.ReplyWithin = cmp.Or(c.ReplyWithin, 90*time.Minute)
	c.WriteTimeout = cmp.Or(c.WriteTimeout, 10*time.Second)
	c.PublicURL = strings.TrimRight(c.PublicURL, "/")
	c.Consumers = withDefaults(c.Consumers)
	if c.Asked == nil {
		c.Asked = func(string) bool { return true }
	}
	if c.Again == nil {
		c.Again = func(int) {}
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}

func withDefaults(all []Consumer) []Consumer {
	all = slices.Clone(all)
	for i := range all {
		all[i].MaxConnections = cmp.Or(all[i].MaxConnections, 16)
	}
	return all
}

func (c *Config) validate() error {
	switch {
	case c.Outbox == nil:
		return wrong("Outbox", "not set")
	case c.MaxConnections < 0:
		return wrong("MaxConnections", "%d is negative", c.MaxConnections)
	case c.Workers < 0:
		return wrong("Workers", "%d is negative", c.Workers)
	case c.MaxFrame < 0:
		return wrong("MaxFrame", "%d is negative", c.MaxFrame)
	case (c.CertFile == "") != (c.KeyFile == ""):
		return wrong("CertFile", "needs KeyFile, and the other way round")
	}
	for name, d := range map[string]time.Duration{
		"AckWithin": c.AckWithin, "PingEvery": c.PingEvery, "RejoinWithin": c.RejoinWithin,
		"LeaveWithin": c.LeaveWithin, "TicketLife": c.TicketLife, "ReplyWithin": c.ReplyWithin,
		"WriteTimeout": c.WriteTimeout, "AwayWithin": c.AwayWithin,
	} {
		if d < 0 {
			return wrong(name, "%v is negative", d)
		}
	}
	if err := validateURL(c.PublicURL); err != nil {
		return err
	}
	return validateConsumers(c.Consumers)
}

// wrong names the field that is.
func wrong(field, format string, args ...any) error {
	return fmt.Errorf("%s: %w", field, fmt.Errorf(format, args...))
}

func validateURL(public string) error {
	if public == "" {
		return nil
	}
	u, err := url.Parse(public)
	if err != nil || u.Host == "" || strings.ContainsAny(public, "\"\\ ") || u.User != nil || u.RawQuery != "" || u.Fragment != "" ||
		(u.Scheme != "http" && u.Scheme != "https") {
		return wrong("PublicURL", "is not an http or https URL without a query")
	}
	return nil
}

func validateConsumers(all []Consumer) error {
	names, ids := map[string]bool{}, map[string]bool{}
	for i, c := range all {
		at := fmt.Sprintf("Consumers[%d].", i)
		switch {
		case c.Name == "" || len(c.Name) > maxName:
			return wrong(at+"Name", "must have 1 to %d bytes", maxName)
		case names[c.Name]:
			return wrong(at+"Name", "%q is taken", c.Name)
		case c.ClientID == "":
			return wrong(at+"ClientID", "not set")
		case ids[c.ClientID]:
			return wrong(at+"ClientID", "is taken")
		case c.ClientSecret == "":
			return wrong(at+"ClientSecret", "not set")
		case c.MaxConnections < 0:
			return wrong(at+"MaxConnections", "%d is negative", c.MaxConnections)
		case c.MaxInFlight < 0:
			return wrong(at+"MaxInFlight", "%d is negative", c.MaxInFlight)
		}
		names[c.Name], ids[c.ClientID] = true, true
	}
	return nil
}

// maxName is the longest name that a reply address can hold.
const maxName = 255
