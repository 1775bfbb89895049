package integrations

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/penstock-io/penstock/message"
)

// ErrSessionOver is what a session gets that offers a delivery after its Run has
// returned. The delivery will not be settled.
var ErrSessionOver = errors.New("session is over")

// session is one call of a connector's Run, and the Intake lent to it.
type session struct {
	// Immutable.
	sup    *Supervisor
	number uint64
	conn   Connector
	cancel context.CancelFunc
	urgent bool          // the platform asked for it
	stale  Cursor        // the position that the platform does not know any more
	maxAge time.Duration // 0: none

	over atomic.Bool // Offer refuses; set once
	used atomic.Bool // a delivery came; set once

	news news // guarded by sup.mu

	// Owned by the goroutine of Supervisor.Run.
	seen      news
	wentLive  bool      // seen.liveAt has been acted upon
	retiring  bool      // it needs a successor
	leaveAt   time.Time // when it is closed once a successor is live; if retiring
	cancelled bool      // it has been told to end
	proved    bool      // it lived long enough
}

// news is what the goroutines of a session tell the one of Run.
type news struct {
	begunAt time.Time // the connector's Run was called
	liveAt  time.Time
	asked   bool // the platform announced the end ...
	within  time.Duration
	ended   bool
	end     End
	from    Cursor
	done    func() // gives the Pacer's turn back; nil outside of a turn
}

// tell changes the news under the lock and wakes Run up.
func (x *session) tell(change func(*news)) {
	x.sup.mu.Lock()
	if !x.news.ended {
		change(&x.news)
	}
	x.sup.mu.Unlock()
	x.sup.nudge()
}

// Live implements Intake.
func (x *session) Live() {
	now := time.Now()
	x.tell(func(n *news) {
		if n.liveAt.IsZero() {
			n.liveAt = now
			x.sup.lastFrame.Store(now.UnixNano())
		}
	})
	x.Opened()
}

// Opened is the optional part of an Intake.
func (x *session) Opened() {
	x.sup.mu.Lock()
	done := x.news.done
	x.news.done = nil
	x.sup.mu.Unlock()
	if done != nil {
		done()
	}
}

// Offer implements Intake. It takes no lock, for it is called for every message.
func (x *session) Offer(ctx context.Context, d message.Delivery) error {
	if x.over.Load() {
		return ErrSessionOver
	}
	if !x.used.Load() {
		x.used.Store(true)
	}
	x.sup.lastFrame.Store(time.Now().UnixNano())
	return x.sup.cfg.Sink(ctx, d)
}

// Retire implements Intake.
func (x *session) Retire(within time.Duration) {
	x.tell(func(n *news) {
		if !n.asked {
			n.asked, n.within = true, max(0, within)
		}
	})
}

// serve is the goroutine of a session: it waits for its turn, runs the connector
// and reports the end.
func (x *session) serve(ctx context.Context) {
	end := x.open(ctx)
	x.over.Store(true)
	x.Opened()
	x.cancel()
	x.tell(func(n *news) { n.ended, n.end = true, end })
}

func (x *session) open(ctx context.Context) End {
	done, err := x.sup.cfg.Pacer.Wait(ctx, x.urgent)
	if err != nil {
		return End{Why: Stopped}
	}
	x.tell(func(n *news) { n.begunAt, n.done = time.Now(), done })
	from, err := x.position(ctx)
	if err != nil {
		return End{Why: Lost, Code: "cursor_failed", Err: fmt.Errorf("read cursor: %w", err)}
	}
	return x.run(ctx, from)
}

// position gives where the session goes on: nowhere if the platform has called
// that very position stale.
func (x *session) position(ctx context.Context) (Cursor, error) {
	if x.sup.cfg.Cursor == nil {
		return nil, nil
	}
	from, err := x.sup.cfg.Cursor(ctx)
	if err != nil {
		return nil, err
	}
	if x.stale != nil && string(from) == string(x.stale) {
		return nil, nil
	}
	x.tell(func(n *news) { n.from = from })
	return from, nil
}

// run calls the connector and makes a lost session of a panic or of a goroutine
// that the connector ended.
func (x *session) run(ctx context.Context, from Cursor) (end End) {
	returned := false
	defer func() {
		if !returned {
			end = x.crash(recover())
		}
	}()
	end = x.conn.Run(ctx, from, x)
	returned = true
	return end
}

// crash tells only the type of what was panicked with, unless the runtime made
// it: anything else may hold a secret.
func (x *session) crash(v any) End {
	err := fmt.Errorf("connector panicked with a %T", v)
	if re, ok := v.(runtime.Error); ok {
		err = fmt.Errorf("connector panicked: %w", re)
	}
	return End{Why: Lost, Code: "panic", Err: &crashError{error: err, stack: debug.Stack()}}
}

// crashError is a panic of a connector.
type crashError struct {
	error
	stack []byte
}

// Unwrap gives the error of the runtime, if there is one.
func (e *crashError) Unwrap() error { return errors.Unwrap(e.error) }
