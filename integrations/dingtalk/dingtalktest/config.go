package dingtalktest

import (
	"crypto/tls"
	"fmt"
	"net"
	"time"
)

// Redelivery tells what happens to a robot message that is not answered in time.
type Redelivery string

// Ways of redelivery. Reports differ, so a client has to stand all of them.
const (
	RedeliverNew   Redelivery = "new"   // pushed once more under a new frame id
	RedeliverSame  Redelivery = "same"  // pushed once more under the same frame id
	RedeliverNever Redelivery = "never" // not pushed again
)

// Downtime tells what happens to a push while no socket can take it.
type Downtime string

// Kinds of downtime.
const (
	DownLose Downtime = "lose" // it is lost, as on the platform
	DownHold Downtime = "hold" // it waits for the next socket
)

// Credentials are what one app is known by.
type Credentials struct {
	ClientID  string
	Secret    string
	RobotCode string // default: ClientID
}

// Config sets up a [Gateway]. The zero value is a gateway with the platform's
// documented times on a free loopback port and with the app [DefaultApp].
type Config struct {
	// Listener accepts the clients; the gateway closes it. Default: TCP on
	// 127.0.0.1, made by Listen.
	Listener net.Listener
	// TLS makes the server speak https and wss. Default: plain.
	TLS *tls.Config
	// Seed repeats the random choice of sockets. Default: 1.
	Seed uint64
	// Apps are there from the start. Default: DefaultApp alone.
	Apps []Credentials

	// TicketLife is how long a ticket may be used. Default: 90 s.
	TicketLife time.Duration
	// PlainTickets gives tickets without characters that need escaping, for
	// clients that put them into the URL as they are.
	PlainTickets bool
	// EndpointQuery is a query that the endpoint has already, such as "region=a".
	EndpointQuery string

	// PingEvery is the period of SYSTEM pings; negative means none. Default: 25 s.
	PingEvery time.Duration
	// SocketAge is when a socket is asked to disconnect; 0 means never.
	SocketAge time.Duration
	// Linger is how long a socket that was asked to disconnect may be silent
	// before it is closed. Default: 10 s.
	Linger time.Duration
	// BareDisconnect leaves out messageId and time, as the documents show it.
	BareDisconnect bool
	// DeadFor is how long pushes go on being given to a socket that has broken,
	// and vanish. Default: 0.
	DeadFor time.Duration

	// RobotTimeout is when an unanswered robot message counts. Default: 60 s.
	RobotTimeout time.Duration
	// Redelivery of robot messages. Default: RedeliverNew.
	Redelivery Redelivery
	// EventTimeout is when an unanswered event counts as failed. Default: 3 s.
	EventTimeout time.Duration
	// EventRetries are the waits before each new push of a failed event; empty
	// but not nil means none. Default: 10 s, 30 s.
	EventRetries []time.Duration
	// CardTimeout bounds callbacks that wait for their answer. Default: 2 s.
	CardTimeout time.Duration
	// Down is for pushes that no socket can take. Default: DownLose.
	Down Downtime
	// HoldLimit bounds what is held; more is lost. Default: 65536.
	HoldLimit int

	// TokenLife is how long an access token works. Default: 2 h.
	TokenLife time.Duration
	// WebhookLife is how long a sessionWebhook works. Default: 90 min.
	WebhookLife time.Duration

	// Record bounds the acks, the sends and the frame ids remembered per app;
	// the oldest go first. Default: 65536.
	Record int
	// OnAck sees every ack, except those of Blast, and OnSend every send. They
	// are called outside locks, in the goroutine that serves the client, which
	// waits for them.
	OnAck  func(Ack)
	OnSend func(Sent)
	// OnSession sees every socket twice, in the same manner: when it has opened,
	// before its first answer, and when it has ended.
	OnSession func(SessionInfo)
	// OnRefusal sees every refusal, before it is answered, in the same manner.
	OnRefusal func(Refusal)
}

// DefaultApp is the app of a gateway whose Config names none.
func DefaultApp() Credentials {
	const id = "dingtestclient01"
	return Credentials{ClientID: id, Secret: "test-secret", RobotCode: id}
}

func (c Config) withDefaults() Config {
	if len(c.Apps) == 0 {
		c.Apps = []Credentials{DefaultApp()}
	}
	if c.EventRetries == nil {
		c.EventRetries = []time.Duration{10 * time.Second, 30 * time.Second}
	}
	set(&c.Seed, 1)
	set(&c.TicketLife, 90*time.Second)
	set(&c.PingEvery, 25*time.Second)
	set(&c.Linger, 10*time.Second)
	set(&c.RobotTimeout, time.Minute)
	set(&c.Redelivery, RedeliverNew)
	set(&c.EventTimeout, 3*time.Second)
	set(&c.CardTimeout, 2*time.Second)
	set(&c.Down, DownLose)
	set(&c.HoldLimit, 1<<16)
	set(&c.TokenLife, 2*time.Hour)
	set(&c.WebhookLife, 90*time.Minute)
	set(&c.Record, 1<<16)
	return c
}

// set gives a field its default if it has no value yet.
func set[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

func (c Config) validate() error {
	for _, f := range []struct {
		name string
		d    time.Duration
	}{
		{"TicketLife", c.TicketLife},
		{"SocketAge", c.SocketAge},
		{"Linger", c.Linger},
		{"DeadFor", c.DeadFor},
		{"RobotTimeout", c.RobotTimeout},
		{"EventTimeout", c.EventTimeout},
		{"CardTimeout", c.CardTimeout},
		{"TokenLife", c.TokenLife},
		{"WebhookLife", c.WebhookLife},
	} {
		if f.d < 0 {
			return fmt.Errorf("%s: must not be negative, is %v", f.name, f.d)
		}
	}
	return c.validateChoices()
}

func (c Config) validateChoices() error {
	switch c.Redelivery {
	case RedeliverNew, RedeliverSame, RedeliverNever:
	default:
		return fmt.Errorf("%s: unknown value %q", "Redelivery", c.Redelivery)
	}
	switch c.Down {
	case DownLose, DownHold:
	default:
		return fmt.Errorf("%s: unknown value %q", "Down", c.Down)
	}
	for i, wait := range c.EventRetries {
		if wait < 0 {
			return fmt.Errorf("%s[%d]: must not be negative, is %v", "EventRetries", i, wait)
		}
	}
	if c.HoldLimit < 0 {
		return fmt.Errorf("%s: must not be negative, is %d", "HoldLimit", c.HoldLimit)
	}
	if c.Record < 0 {
		return fmt.Errorf("%s: must not be negative, is %d", "Record", c.Record)
	}
	return nil
}
