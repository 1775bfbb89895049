package relay

import (
	"sync/atomic"

	"github.com/penstock-io/penstock/store"
)

// Stats are totals since the relay was made. Accepted together with
// Requeued is the sum of Done, Dead, Purged and what is still in the store or
// running; Replies with RequeuedReplies likewise.
type Stats struct {
	Offered    int64 // deliveries given to Accept
	Accepted   int64 // messages committed for the first time
	Duplicates int64 // deliveries whose message was known
	Refused    map[string]int64
	Done       int64 // messages handled
	Dead       map[string]int64
	Retries    int64 // handler attempts that failed and will be repeated
	Unreached  int64 // tries that found nobody to handle the message; they do not count
	NoRoute    int64
	LateAnswer int64 // synchronous answers that missed the acknowledgement
	Left       int64 // runs given up at a stop, still in the store
	Purged     int64 // messages that an operator removed before they were handled
	Requeued   int64 // dead letters that an operator gave another chance
	PurgedDead int64 // dead letters that an operator removed

	Replies   int64 // replies (parts) put into the outbox
	Sent      int64
	Resends   int64 // send attempts that failed and will be repeated
	Uncertain int64 // sends that may have landed without an answer
	Discarded map[string]int64
	// The same as of messages, for replies.
	PurgedReplies, RequeuedReplies, PurgedDeadReplies int64

	Spilled int64 // items that wait in the store for room in the queues
}

// Reasons, so that every count exists from the start with value 0.
const (
	refusedFull   = "store_full"
	refusedQueue  = "writer_full"
	refusedStore  = "store_failed"
	refusedClosed = "closed"

	deadPermanent = "permanent"
	deadAttempts  = "attempts"
	deadNoRoute   = "no_route"
	deadDefect    = "defect"

	discardNever     = "refused"
	discardAttempts  = "attempts"
	discardExpired   = "expired"
	discardUncertain = "uncertain"
	discardPart      = "part_failed"
)

type counters struct {
	offered, accepted, duplicates, done, retries, unreached, noRoute, lateAnswer, left atomic.Int64
	replies, sent, resends, uncertain                                                  atomic.Int64
	purged, requeued, purgedDead                                                       atomic.Int64
	purgedReplies, requeuedReplies, purgedDeadReplies                                  atomic.Int64

	refused   reasons
	dead      reasons
	discarded reasons
}

// reasons counts by a fixed set of words.
type reasons map[string]*atomic.Int64

func newReasons(words ...string) reasons {
	r := make(reasons, len(words))
	for _, w := range words {
		r[w] = new(atomic.Int64)
	}
	return r
}

func (r reasons) snapshot() map[string]int64 {
	m := make(map[string]int64, len(r))
	for w, n := range r {
		m[w] = n.Load()
	}
	return m
}

func newCounters() *counters {
	return &counters{
		refused: newReasons(refusedFull, refusedQueue, refusedStore, refusedClosed),
		dead:    newReasons(deadPermanent, deadAttempts, deadNoRoute, deadDefect),
		discarded: newReasons(discardNever, discardAttempts, discardExpired,
			discardUncertain, discardPart),
	}
}

// Stats gives the totals. It may be called at any time.
func (r *Relay) Stats() Stats {
	c := r.count
	s := Stats{
		Offered:    c.offered.Load(),
		Accepted:   c.accepted.Load(),
		Duplicates: c.duplicates.Load(),
		Refused:    c.refused.snapshot(),
		Done:       c.done.Load(),
		Dead:       c.dead.snapshot(),
		Retries:    c.retries.Load(),
		Unreached:  c.unreached.Load(),
		NoRoute:    c.noRoute.Load(),
		LateAnswer: c.lateAnswer.Load(),
		Left:       c.left.Load(),
		Purged:     c.purged.Load(),
		Requeued:   c.requeued.Load(),
		PurgedDead: c.purgedDead.Load(),
		Replies:    c.replies.Load(),
		Sent:       c.sent.Load(),
		Resends:    c.resends.Load(),
		Uncertain:  c.uncertain.Load(),
		Discarded:  c.discarded.snapshot(),

		PurgedReplies:     c.purgedReplies.Load(),
		RequeuedReplies:   c.requeuedReplies.Load(),
		PurgedDeadReplies: c.purgedDeadReplies.Load(),

		Spilled: r.outFeed.spilled.Load(),
	}
	for _, l := range r.allLanes() {
		s.Spilled += l.feed.spilled.Load()
	}
	return s
}

// WriterStats gives the figures of the store's writer.
func (r *Relay) WriterStats() store.WriterStats { return r.writer.Stats() }
