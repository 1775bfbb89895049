package integrations

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/penstock-io/penstock/internal/backoff"
)

// idle is how long Run sleeps when no time is set for anything.
const idle = 24 * time.Hour

// keeper is the state of one Run, owned by its goroutine. Nothing in it waits:
// each step acts upon what has happened and gives the time of the next one.
type keeper struct {
	sup      *Supervisor
	redials  backoff.Policy
	asked    *rate.Limiter // of asked redials by sessions that have not proved to work
	journal  journal
	sessions sync.WaitGroup // the goroutines

	conn   Connector
	open   []*session // oldest first, at most two; only the last may not be retiring
	number uint64     // of the newest session
	due    time.Time  // when the next session may start, once one is needed
	urgent bool       // the platform asked for that session
	stale  Cursor     // the position that the platform does not know any more

	failures  int  // failed sessions since one has proved to work
	everLive  bool // a session has gone live in this Run
	refused   bool // the last that was heard of the credentials
	displaced bool // nothing is started
	status    Status
}

func newKeeper(s *Supervisor) *keeper {
	k := &keeper{sup: s, redials: s.cfg.redials(), due: time.Now()}
	k.asked = rate.NewLimiter(rate.Every(askedEvery), askedBurst)
	k.status = s.Status()
	k.status.NextOpen = time.Time{}
	k.journal.log = s.cfg.Logger.With(slog.String("installation", string(s.cfg.Installation)))
	return k
}

// step acts upon everything that has happened up to now, and gives how long to
// sleep until there is something to do again.
func (k *keeper) step(ctx context.Context) time.Duration {
	now := time.Now()
	k.hear(now)
	for _, x := range slices.Clone(k.open) {
		k.follow(x, now)
	}
	k.retireAged(now)
	k.leaveOld(now)
	if k.wanting() && !now.Before(k.due) {
		k.openNext(ctx)
	}
	k.publish(now)
	return k.sleep(now)
}

// hear takes over the wishes of callers and the news of the sessions.
func (k *keeper) hear(now time.Time) {
	k.sup.mu.Lock()
	w := k.sup.wishes
	k.sup.wishes = wishes{conn: w.conn}
	for _, x := range k.open {
		x.seen = x.news
	}
	k.sup.mu.Unlock()
	k.conn = w.conn
	if w.replaced {
		k.replace(now)
	}
	if w.replaced || w.resumed && k.current() == nil {
		k.failures, k.displaced = 0, false
		k.due, k.urgent = now, false
	}
}

// replace makes room for the sessions of another connector.
func (k *keeper) replace(now time.Time) {
	k.refused = false
	for _, x := range k.open {
		x.retiring, x.leaveAt = true, now
		if !x.live() {
			x.end()
		}
	}
}

// follow acts upon the news of one session, in the order in which they happen.
func (k *keeper) follow(x *session, now time.Time) {
	if !x.wentLive && !x.seen.liveAt.IsZero() {
		x.wentLive = true
		k.everLive, k.refused = true, false
		k.journal.live(x, now)
	}
	if k.proving(x) && now.Sub(x.seen.begunAt) >= k.sup.cfg.MinLife {
		x.proved = true
		k.journal.proved(k.failures)
		k.failures = 0
	}
	if x.seen.asked && !x.retiring {
		k.retire(x, now.Add(x.seen.within+k.sup.cfg.RetireGrace))
		k.planAsked(x, 0, now)
		k.journal.asked(x, k.entry(now))
	}
	if x.seen.ended {
		k.bury(x, now)
	}
}

// proving tells whether a session may still prove that connecting works. One that
// is retiring may not: its successors have failed or succeeded since.
func (k *keeper) proving(x *session) bool {
	return x.wentLive && !x.proved && !x.retiring
}

// retire makes a session one that needs a successor, to be left at a time.
func (k *keeper) retire(x *session, leaveAt time.Time) {
	x.retiring, x.leaveAt = true, leaveAt
}

// bury takes an ended session out and plans what follows from how it ended. An
// end that we or the platform had announced means nothing more: what follows from
// it has been planned when it was announced.
func (k *keeper) bury(x *session, now time.Time) {
	k.open = slices.DeleteFunc(k.open, func(y *session) bool { return x == y })
	end := x.seen.end
	if int(end.Why) < whyCount {
		k.status.Ends[end.Why]++
	}
	if x.retiring {
		k.journal.left(x, end)
		return
	}
	k.plan(x, end, now)
	if end.Why == Asked {
		k.journal.asked(x, k.entry(now))
		return
	}
	k.status.LastError, k.status.LastCode = describe(end), end.Code
	k.status.LastErrorAt = now
	k.journal.ended(x, end, k.entry(now))
}

// entry is what the journal tells beside the session itself.
func (k *keeper) entry(now time.Time) journalEntry {
	return journalEntry{failures: k.failures, wait: k.due.Sub(now), now: now}
}

// plan sets when the next session starts. It is the one place that knows what an
// end means.
func (k *keeper) plan(x *session, end End, now time.Time) {
	after := max(0, end.After)
	k.urgent = false
	switch end.Why {
	case Displaced:
		k.failures++
		k.displaced = true
	case Refused:
		k.failures++
		k.refused = true
		k.due = now.Add(max(after, k.probe()))
	case Asked:
		k.planAsked(x, after, now)
	case Stale:
		if x.seen.from == nil { // it had no position, so another start would be the same
			k.planLost(after, now)
			return
		}
		k.stale = x.seen.from
		k.planAsked(x, after, now)
		k.urgent = false
	default: // Lost, Limited, a Stopped that nobody asked for, and what we do not know
		k.planLost(after, now)
	}
}

// planLost plans a session after one that failed.
func (k *keeper) planLost(after time.Duration, now time.Time) {
	k.failures++
	k.due, k.urgent = now.Add(after+k.redials.Delay(k.failures)), false
}

// A session that was used earns its successor at once, however short it lived: a
// platform that delivers and asks for a redial works. Beyond a burst even those
// get rarer, and one never follows another sooner than askedApart.
const (
	askedBurst = 128
	askedEvery = 10 * time.Second
	askedApart = 100 * time.Millisecond
)

// planAsked plans a session at once, if the one that ends has earned it.
func (k *keeper) planAsked(x *session, after time.Duration, now time.Time) {
	switch {
	case x.proved:
	case x.wentLive && x.used.Load() && k.asked.AllowN(now, 1):
	case x.wentLive && k.failures == 0:
		k.failures++ // the next one that comes this early waits
	default:
		k.planLost(after, now)
		return
	}
	k.due, k.urgent = now.Add(after), after == 0
	if apart := x.seen.begunAt.Add(askedApart); apart.After(k.due) {
		k.due = apart
	}
}

// probe is the wait after a refusal.
func (k *keeper) probe() time.Duration {
	every := k.sup.cfg.ProbeEvery
	return every + rand.N(every/5+1)
}

// retireAged replaces a session that has lived for as long as is allowed.
func (k *keeper) retireAged(now time.Time) {
	x := k.current()
	if x == nil || x.maxAge == 0 || x.seen.begunAt.IsZero() {
		return
	}
	if now.Sub(x.seen.begunAt) >= x.maxAge {
		k.retire(x, now)
		k.due, k.urgent = now, false
		k.journal.aged(x)
	}
}

// leaveOld ends the retiring sessions whose time is over, once a younger one is
// live.
func (k *keeper) leaveOld(now time.Time) {
	for i, x := range k.open {
		if x.retiring && k.succeeded(i) && !now.Before(x.leaveAt) {
			x.end()
		}
	}
}

// succeeded tells whether a younger session than the i-th is live.
func (k *keeper) succeeded(i int) bool {
	return slices.ContainsFunc(k.open[i+1:], (*session).live)
}

// current is the session that needs no successor, nil if there is none.
func (k *keeper) current() *session {
	if n := len(k.open); n > 0 && !k.open[n-1].retiring {
		return k.open[n-1]
	}
	return nil
}

// wanting tells whether a session is needed, now or later.
func (k *keeper) wanting() bool { return !k.displaced && k.current() == nil }

// openNext starts a session if there is room, else it makes room.
func (k *keeper) openNext(ctx context.Context) {
	profile := k.conn.Profile()
	room := 2
	if profile.MaxSessions == 1 {
		room = 1
	}
	if len(k.open) >= room {
		k.makeRoom()
		return
	}
	k.number++
	ctx, cancel := context.WithCancel(ctx)
	x := &session{
		sup: k.sup, number: k.number, conn: k.conn, cancel: cancel,
		urgent: k.urgent, stale: k.stale, maxAge: k.maxAge(),
	}
	k.open = append(k.open, x)
	k.status.Opened++
	k.sessions.Go(func() { x.serve(ctx) })
}

// maxAge is the age at which a session is replaced, 0 if it never is.
func (k *keeper) maxAge() time.Duration {
	limit := k.sup.cfg.MaxAge
	if limit == 0 {
		return 0
	}
	return limit - rand.N(limit/10+1)
}

// makeRoom ends one of the retiring sessions: one that is not live if there is
// one, else the oldest.
func (k *keeper) makeRoom() {
	victim := k.open[0]
	for _, x := range k.open {
		if x.cancelled {
			return // room is being made
		}
		if victim.live() && !x.live() {
			victim = x
		}
	}
	victim.end()
}

// sleep is how long nothing will have to be done, unless news come.
func (k *keeper) sleep(now time.Time) time.Duration {
	next := now.Add(idle)
	by := func(t time.Time) {
		if t.Before(next) {
			next = t
		}
	}
	if k.wanting() && now.Before(k.due) {
		by(k.due)
	}
	for i, x := range k.open {
		if k.proving(x) && !x.seen.ended {
			by(x.seen.begunAt.Add(k.sup.cfg.MinLife))
		}
		if x.retiring && !x.cancelled && k.succeeded(i) {
			by(x.leaveAt)
		}
	}
	if x := k.current(); x != nil && x.maxAge > 0 && !x.seen.begunAt.IsZero() {
		by(x.seen.begunAt.Add(x.maxAge))
	}
	return max(0, next.Sub(now))
}

// wait ends the Run: the sessions have been told by their context.
func (k *keeper) wait() {
	k.sessions.Wait()
	k.hear(time.Now())
	for _, x := range k.open {
		if int(x.seen.end.Why) < whyCount {
			k.status.Ends[x.seen.end.Why]++
		}
	}
	k.open = nil
	k.finish(time.Now())
}

// live tells whether the platform has accepted the session.
func (x *session) live() bool { return !x.seen.liveAt.IsZero() && !x.seen.ended }

// end tells the session to send the acks that it owes and to close. It may be
// called again.
func (x *session) end() {
	x.cancelled = true
	x.cancel()
}
