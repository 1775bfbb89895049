package edge

import (
	"sync/atomic"
	"time"
)

// Stats are totals since the server was made, but for Connections. Every reason is
// there from the start.
type Stats struct {
	// Connections are those that are open now, by consumer.
	Connections map[string]int
	Opens       map[string]int64 // requests for a ticket, by result
	Dials       map[string]int64 // connections, by result
	Closed      map[string]int64 // connections that ended, by reason
	Pushes      int64            // frames that carried a message
	Stalls      int64            // times that a connection was found not to read
	Outcomes    map[string]int64 // pushes that ended, by what ended them
	Strays      map[string]int64 // what consumers said and nobody waited for, by kind
	Replies     map[string]int64 // replies that consumers posted, by result
	Frames      FrameStats
}

// FrameStats tell of the frames of all kinds to all connections. Every lane and
// every reason is there from the start.
type FrameStats struct {
	Sent, Bytes map[string]int64 // frames that were written and their bytes, by lane
	Dropped     map[string]int64 // frames that were not, by reason
	// Wait is the time of all written frames together from the call to the end of the
	// write, Queued the part of it until the write began.
	Wait, Queued time.Duration
	Resent       int64
	Evicted      int64 // frames that were too many, or too large, to keep until they are answered
}

func (s *Server) frameStats() FrameStats {
	t := s.frames.Totals()
	f := FrameStats{
		Sent: map[string]int64{}, Bytes: map[string]int64{}, Dropped: map[string]int64{},
		Wait: t.Wait, Queued: t.Queued, Resent: t.Resent, Evicted: t.Evicted,
	}
	for l, n := range t.Sent {
		f.Sent[l.String()], f.Bytes[l.String()] = n, t.Bytes[l]
	}
	for r, n := range t.Dropped {
		f.Dropped[string(r)] = n
	}
	return f
}

// Results, reasons and kinds.
const (
	resultOK         = "ok"
	resultRefused    = "refused" // wrong credentials or ticket
	resultSlowed     = "slowed"  // too many wrong tries before
	resultMalformed  = "malformed"
	resultBusy       = "busy"  // too many at once
	resultLimit      = "limit" // the consumer has all the connections it may have
	resultExpired    = "expired"
	resultNotStored  = "not_stored"
	closedByPeer     = "left"
	closedLost       = "lost"
	closedSilent     = "silent"
	closedSlow       = "slow" // it does not read
	closedTooLarge   = "too_large"
	closedGarbage    = "garbage"
	closedFlood      = "flood"
	closedAsked      = "asked"    // it was asked to leave
	closedReplaced   = "replaced" // a new one took its place
	closedStopping   = "stopping"
	outcomeAnswered  = "answered"
	outcomeEarlier   = "answered_late" // by an answer to an earlier frame
	outcomeLater     = "later"
	outcomeFailed    = "failed"
	outcomeUnhandled = "unhandled" // 404: the consumer has no handler
	outcomeTimeout   = "timeout"
	outcomeLost      = "lost" // its connection died
	outcomeCanceled  = "canceled"
	outcomeAbsent    = "absent" // nobody was there
	outcomeAway      = "away"   // nobody was there who subscribes to it
	outcomeUnwanted  = "unsubscribed"
	outcomeDeserted  = "deserted" // was subscribed to once
	outcomeOversize  = "too_large"
	strayUnknown     = "unknown_id"
	strayLate        = "late" // an answer to what is over, or a second one
	strayGarbage     = "not_an_answer"
	strayBadAnswer   = "bad_answer"
)

// tally counts by a fixed set of words.
type tally map[string]*atomic.Int64

func newTally(words ...string) tally {
	t := make(tally, len(words))
	for _, w := range words {
		t[w] = new(atomic.Int64)
	}
	return t
}

func (t tally) add(word string) { t[word].Add(1) }

func (t tally) snapshot() map[string]int64 {
	m := make(map[string]int64, len(t))
	for w, n := range t {
		m[w] = n.Load()
	}
	return m
}

// counts is immutable but for the numbers in it.
type counts struct {
	opens, dials, closed, outcomes, strays, replies tally
	pushes, stalls                                  atomic.Int64
}

func newCounts() *counts {
	return &counts{
		opens: newTally(resultOK, resultRefused, resultSlowed, resultMalformed, resultBusy,
			resultLimit),
		dials: newTally(resultOK, resultRefused, resultMalformed, resultBusy, resultLimit),
		closed: newTally(closedByPeer, closedLost, closedSilent, closedSlow, closedTooLarge,
			closedGarbage, closedFlood, closedAsked, closedReplaced, closedStopping),
		outcomes: newTally(outcomeAnswered, outcomeEarlier, outcomeLater, outcomeFailed,
			outcomeUnhandled, outcomeTimeout, outcomeLost, outcomeCanceled, outcomeAbsent,
			outcomeAway, outcomeUnwanted, outcomeDeserted, outcomeOversize),
		strays: newTally(strayUnknown, strayLate, strayGarbage, strayBadAnswer),
		replies: newTally(resultOK, resultMalformed, resultExpired, resultRefused, resultBusy,
			resultNotStored),
	}
}

// Stats gives the totals. It may be called at any time.
func (s *Server) Stats() Stats {
	st := Stats{
		Connections: map[string]int{},
		Opens:       s.count.opens.snapshot(), Dials: s.count.dials.snapshot(),
		Closed: s.count.closed.snapshot(), Pushes: s.count.pushes.Load(),
		Outcomes: s.count.outcomes.snapshot(), Strays: s.count.strays.snapshot(),
		Replies: s.count.replies.snapshot(), Stalls: s.count.stalls.Load(),
		Frames: s.frameStats(),
	}
	for _, c := range s.all() {
		st.Connections[c.name] = c.connections()
	}
	return st
}
