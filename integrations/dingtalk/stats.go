package dingtalk

import (
	"sync/atomic"
	"time"
)

// Stats is a snapshot of what the sessions of a connector have done, all of them
// together since the start.
type Stats struct {
	// Sessions is how many sockets are open now.
	Sessions int64
	// Frames that were read, by their type.
	Systems, Callbacks, Events, Unknown uint64
	// BadFrames are messages that are no frames, NoMessageID frames that cannot be
	// acknowledged for want of an id, Unhandled frames of topics or types that
	// nobody has subscribed to, Defects payloads that cannot be handled.
	BadFrames, NoMessageID, Unhandled, Defects uint64
	// Acks were handed to the socket. AcksLate came after its end, AcksLost were
	// handed over and did not leave before it.
	Acks, AcksLate, AcksLost uint64
	// BadAnswers are answers of handlers that were no JSON; an empty one went out.
	BadAnswers uint64
	// DroppedStopping came while the session was stopping, DroppedClosed when the
	// core took nothing any more. Neither was acknowledged: they are pushed again.
	DroppedStopping, DroppedClosed uint64
	// PongsDropped are pongs and answers to pings for which there was no room.
	PongsDropped uint64
	// LastFrame and LastCallback are when a frame and a callback were last read,
	// zero if never.
	LastFrame, LastCallback time.Time
}

// counters are updated by sessions and read by Stats.
type counters struct {
	sessions                                   atomic.Int64
	systems, callbacks, events, unknown        atomic.Uint64
	badFrames, noMessageID, unhandled, defects atomic.Uint64
	acks, acksLate, acksLost, badAnswers       atomic.Uint64
	droppedStopping, droppedClosed             atomic.Uint64
	pongsDropped                               atomic.Uint64
	lastFrame, lastCallback                    atomic.Int64 // unix nanoseconds
}

// Stats gives the counters. They are not read at one instant.
func (c *Connector) Stats() Stats {
	n := &c.count
	return Stats{
		Sessions:        n.sessions.Load(),
		Systems:         n.systems.Load(),
		Callbacks:       n.callbacks.Load(),
		Events:          n.events.Load(),
		Unknown:         n.unknown.Load(),
		BadFrames:       n.badFrames.Load(),
		NoMessageID:     n.noMessageID.Load(),
		Unhandled:       n.unhandled.Load(),
		Defects:         n.defects.Load(),
		Acks:            n.acks.Load(),
		AcksLate:        n.acksLate.Load(),
		AcksLost:        n.acksLost.Load(),
		BadAnswers:      n.badAnswers.Load(),
		DroppedStopping: n.droppedStopping.Load(),
		DroppedClosed:   n.droppedClosed.Load(),
		PongsDropped:    n.pongsDropped.Load(),
		LastFrame:       instant(n.lastFrame.Load()),
		LastCallback:    instant(n.lastCallback.Load()),
	}
}

func instant(nano int64) time.Time {
	if nano == 0 {
		return time.Time{}
	}
	return time.Unix(0, nano)
}
