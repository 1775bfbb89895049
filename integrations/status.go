package integrations

import (
	"time"

	"github.com/penstock-io/penstock/message"
)

// State is how an installation is connected, in the word that health pages and
// metrics use.
type State string

// States of an installation.
const (
	// StateStarting: no session has gone live yet, and none has failed.
	StateStarting State = "starting"
	// StateReady: a session is live.
	StateReady State = "ready"
	// StateDegraded: no session is live, or the only live one is about to end and
	// its successor has failed. It is tried again by itself.
	StateDegraded State = "degraded"
	// StateParked: the platform refuses the credentials or the configuration. It is
	// tried again slowly, and at once by Resume and Replace.
	StateParked State = "parked"
	// StateDisplaced: another client took the session. Nothing is tried until
	// Resume or Replace.
	StateDisplaced State = "displaced"
	// StateStopped: Run has not been called, or it has returned.
	StateStopped State = "stopped"
)

// Status is a picture of a Supervisor at one instant.
type Status struct {
	Installation message.InstallationID
	Platform     message.Platform
	State        State
	Since        time.Time // of State; zero before Run
	// LastError and LastCode tell why the last session that failed did so, and
	// LastErrorAt when. They stay after a recovery, for the one who comes late.
	LastError   string
	LastCode    string
	LastErrorAt time.Time
	// Failures counts the failed sessions since one has proved to work.
	Failures int
	// Sessions is how many are open or being opened, Live how many of them are
	// live.
	Sessions, Live int
	// Opened counts the sessions that were started, Ends how they ended, by Why.
	Opened uint64
	Ends   [whyCount]uint64
	// LastFrame is when a session last went live or offered a delivery.
	LastFrame time.Time
	// NextOpen is when the next session is due, zero if none is.
	NextOpen time.Time
}
