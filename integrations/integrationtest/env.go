package integrationtest

import (
	"time"

	"github.com/stretchr/testify/require"

	"github.com/penstock-io/penstock/integrations"
	"github.com/penstock-io/penstock/message"
)

// TB is the part of testing.TB that the suite needs.
type TB interface {
	require.TestingT
	Helper()
	Cleanup(f func())
}

// Env is what a platform brings to the suite.
type Env struct {
	// New starts a fake gateway for one check. Close ends it.
	New func(t TB) Gateway
	// Features are the optional verbs of the gateway.
	Features Features
	// Patience is how long the suite waits for what must happen; 0 means 10 s.
	Patience time.Duration
	// Grace is how long a Run may go on after its context ended, with acks owed that
	// never come; 0 means 5 s. It must wait for them for a tenth of that at least.
	Grace time.Duration
}

func (e Env) withDefaults() Env {
	if e.Patience == 0 {
		e.Patience = 10 * time.Second
	}
	if e.Grace == 0 {
		e.Grace = 5 * time.Second
	}
	return e
}

// Features tells which of the optional interfaces a Gateway has.
type Features struct {
	Retire bool // Retirer
	Refuse bool // Refuser
	Limit  bool // Limiter
	Garble bool // Garbler
	Stall  bool // Staller
}

// Gateway is a fake of a platform with one installation. Its sessions are
// numbered from 1 in the order in which it accepted them. The suite calls it from
// several goroutines.
type Gateway interface {
	// Connector makes a connector of the installation.
	Connector() integrations.Connector
	// Sessions lists the open sessions in ascending order.
	Sessions() []int
	// Push sends a chat message on a session. The same message may be pushed again,
	// which is a redelivery.
	Push(session int, m message.ID, c message.ConversationID) error
	// Acks counts how often the platform was told on a session that a message was
	// taken.
	Acks(session int, m message.ID) int
	// Drop breaks the link of a session without a word.
	Drop(session int)
	// Close ends the gateway and all its goroutines.
	Close()
}

// Retirer announces the end of a session. From then on the session takes acks and
// gets no new messages, until the gateway ends it: not before the acks that are
// owed have come, or a second has passed.
type Retirer interface{ Retire(session int) }

// Refuser refuses the credentials of all sessions from now on.
type Refuser interface{ Refuse() }

// Limiter tells all sessions from now on to come back after a while, a multiple
// of a second.
type Limiter interface{ Limit(after time.Duration) }

// Garbler sends, on a session, frames that no platform should send: not of the
// format, of no known kind, with fields missing and of the wrong type.
type Garbler interface{ Garble(session int) }

// Staller goes silent on a session without closing it: it answers nothing any
// more and reads on. The connector's patience must be shorter than Env.Patience.
type Staller interface{ Stall(session int) }

// require checks that the declared features are those of the gateway.
func (f Features) require(t TB, g Gateway) {
	t.Helper()
	_, retire := g.(Retirer)
	_, refuse := g.(Refuser)
	_, limit := g.(Limiter)
	_, garble := g.(Garbler)
	_, stall := g.(Staller)
	has := Features{Retire: retire, Refuse: refuse, Limit: limit, Garble: garble, Stall: stall}
	require.Equal(t, has, f, "Features are not what the gateway has")
}
