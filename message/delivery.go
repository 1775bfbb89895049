package message

import "time"

// Verdict is what becomes of a delivery.
type Verdict uint8

// Verdicts.
const (
	Accept Verdict = iota // it is ours now; the platform need not push it again
	Drop                  // settled without being handled; not to be pushed again
	Retry                 // could not be taken; the platform may push it again
)

// Ack settles one delivery on the session that brought it.
type Ack interface {
	// Settle answers the platform. body is the answer of a synchronous message
	// and nil otherwise. It never blocks, and may be called from any goroutine;
	// calls after the first do nothing. After the session has ended it is
	// harmless and returns an error that nobody needs to act on.
	Settle(v Verdict, body []byte) error
}

// Delivery is a decoded frame offered by a session.
type Delivery struct {
	Message *Inbound
	Ack     Ack
	// AckBy is when the platform gives up waiting, zero if it never does.
	AckBy time.Time
	// Defect is set when the payload cannot be handled (not JSON, no
	// conversation): it is kept as a dead letter with this reason and accepted.
	Defect string
}
