package integrations

import (
	"context"
	"fmt"
	"time"

	"github.com/penstock-io/penstock/message"
)

// Cursor is a platform's position in its own log, opaque to the core. It is nil
// for platforms that acknowledge each message.
type Cursor []byte

// Connector opens sessions of one installation.
type Connector interface {
	// Profile states what the platform promises. It is constant.
	Profile() Profile
	// Run opens one session and serves it until it ends or ctx is done. It never
	// redials and never sleeps before dialling. When ctx is done it stops reading,
	// sends the acks it still owes as they come in, within its own grace, closes
	// the socket, and returns Stopped. Several Runs may overlap.
	Run(ctx context.Context, from Cursor, in Intake) End
}

// Intake is lent by the core to one session.
type Intake interface {
	// Live tells that the platform has accepted the session and that a frame of
	// it has been read. Further calls do nothing.
	Live()
	// Offer hands over a delivery. It does not block. An error means that the
	// core is closed and that the delivery will not be settled.
	Offer(ctx context.Context, d message.Delivery) error
	// Retire tells that the platform will end the session after about within; the
	// session still serves what it has. Further calls do nothing.
	Retire(within time.Duration)
}

// Opened tells the core that the handshake of a session is over, ahead of Live,
// for a platform that may stay silent for long after it. Other sessions that wait
// for their turn to open then need not wait for the first frame. Calling it is
// never required, and an Intake that has no use for it is left alone.
func Opened(in Intake) {
	if o, ok := in.(interface{ Opened() }); ok {
		o.Opened()
	}
}

// Sender sends replies of one installation. All methods may be called from any
// number of goroutines.
type Sender interface {
	// Address gives the reply address of a message.
	Address(m *message.Inbound) (message.Target, error)
	// Split cuts a reply into parts that the platform takes, in order. A reply
	// that fits comes back alone. Part, Parts and Group are set.
	Split(o message.Outbound) []message.Outbound
	// Send makes one attempt. Every error is a *message.SendError, except the
	// context's own when ctx ended before anything was written.
	Send(ctx context.Context, o message.Outbound) (message.Receipt, error)
}

// Problem is something that somebody has to act on before replies can leave: a
// missing permission, a refused address, a used-up quota, wrong credentials.
type Problem struct {
	// Route is what fails, in the platform's terms.
	Route string
	// Code is the platform's word, Detail what it said and what to do. Neither
	// holds a secret.
	Code   string
	Detail string
	// Since is when it began, Seen how often it was met since.
	Since time.Time
	Seen  int
}

// Problems lists what keeps a sender from sending now. It is empty when all is
// well, and for a sender that does not tell. It does not block on a send.
func Problems(s Sender) []Problem {
	if t, ok := s.(interface{ Problems() []Problem }); ok {
		return t.Problems()
	}
	return nil
}

// Why tells why a session ended.
type Why uint8

// The seven ends of a session.
const (
	Lost      Why = iota // the link broke or went silent: redial with backoff
	Stopped              // our own context ended
	Asked                // the platform asked for a redial: at once, no penalty
	Limited              // the platform said when to come back
	Displaced            // another client took the session: do not fight
	Stale                // the cursor is not valid any more: start without it
	Refused              // credentials or configuration are wrong: park
)

// whyCount is how many ends there are.
const whyCount = int(Refused) + 1

var whyNames = [whyCount]string{"lost", "stopped", "asked", "limited", "displaced", "stale", "refused"}

// String gives the word used in logs and metrics.
func (w Why) String() string {
	if int(w) < len(whyNames) {
		return whyNames[w]
	}
	return fmt.Sprintf("why(%d)", uint8(w))
}

// End is how a session ended. After is the least wait before the next session;
// Limited always has one. Code is a short machine word for health pages, such as
// "auth_failed". Err never holds a secret.
type End struct {
	Why   Why
	After time.Duration
	Code  string
	Err   error
}

// AckMode tells how a platform learns that a message was taken.
type AckMode uint8

// Ack modes.
const (
	AckEach   AckMode = iota // every message is acknowledged on its session
	AckNone                  // never
	AckCursor                // by position, with the next request
)

// Profile states the delivery facts of a platform that the core needs.
type Profile struct {
	Platform message.Platform
	Ack      AckMode
	// AckWithin is how soon an ack is due; 0 means no deadline.
	AckWithin time.Duration
	// RedeliverFor is how long after the first push a copy may still come.
	RedeliverFor time.Duration
	// MaxSessions is how many sessions may be open at once.
	MaxSessions int
	// SendNeedsSession tells that replies leave through the open session only.
	SendNeedsSession bool
}

// Driver is what a platform makes of one installation.
type Driver struct {
	Connector Connector
	Sender    Sender
}
