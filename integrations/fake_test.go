package integrations_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/penstock-io/penstock/integrations"
	"github.com/penstock-io/penstock/message"
)

// act is the script of one session of a fake connector. Its times count from the
// start of the session; a time that is 0 is at once, never is never.
type act struct {
	liveAt   time.Duration
	retireAt time.Duration
	within   time.Duration
	lives    time.Duration
	grace    time.Duration // from the end of the context to the return
	offers   bool          // a delivery comes as soon as it is live
	end      integrations.End
	panics   any
}

const never = time.Duration(1 << 62)

// steady lives until it is told to stop.
var steady = act{retireAt: never, lives: never}

func lasting(d time.Duration, why integrations.Why) act {
	return act{retireAt: never, lives: d, end: integrations.End{Why: why}}
}

func failing(why integrations.Why) act {
	return act{liveAt: never, retireAt: never, end: integrations.End{Why: why}}
}

// opening is one session that a fake connector was asked for.
type opening struct {
	at     time.Time
	ended  time.Time // zero while it lives
	from   integrations.Cursor
	in     integrations.Intake
	cancel time.Time // when its context ended
	conn   *fake
}

// gateway remembers the sessions of the fakes that belong to it.
type gateway struct {
	mu       sync.Mutex
	openings []*opening // guarded by mu
	open     int        // guarded by mu
	most     int        // guarded by mu: the highest of open
}

// fake is a connector that plays one act after the other, and the last one from
// then on.
type fake struct {
	gate    *gateway
	acts    []act
	profile integrations.Profile
	played  int // guarded by gate.mu
}

func newFake(acts ...act) *fake { return &fake{gate: &gateway{}, acts: acts} }

func (f *fake) Profile() integrations.Profile { return f.profile }

func (f *fake) Run(ctx context.Context, from integrations.Cursor, in integrations.Intake) integrations.End {
	a, o := f.begin(from, in)
	defer f.gate.finish(o)
	if a.panics != nil {
		panic(a.panics)
	}
	for _, cue := range a.cues() {
		select {
		case <-ctx.Done():
			f.gate.mark(&o.cancel)
			<-time.After(a.grace)
			return integrations.End{Why: integrations.Stopped}
		case <-time.After(time.Until(o.at.Add(cue.at))):
			cue.do(in)
		}
	}
	return a.end
}

type cue struct {
	at time.Duration
	do func(integrations.Intake)
}

// cues gives what an act does, in order of time.
func (a act) cues() (out []cue) {
	nothing := func(integrations.Intake) {}
	live := cue{a.liveAt, func(in integrations.Intake) {
		in.Live()
		if a.offers {
			_ = in.Offer(context.Background(), message.Delivery{}) // the sink takes all
		}
	}}
	retire := cue{a.retireAt, func(in integrations.Intake) { in.Retire(a.within) }}
	first, second := live, retire
	if retire.at < live.at {
		first, second = retire, live
	}
	for _, c := range []cue{first, second} {
		if c.at <= a.lives && c.at != never {
			out = append(out, c)
		}
	}
	return append(out, cue{a.lives, nothing})
}

func (f *fake) begin(from integrations.Cursor, in integrations.Intake) (act, *opening) {
	g := f.gate
	g.mu.Lock()
	defer g.mu.Unlock()
	a := f.acts[min(f.played, len(f.acts)-1)]
	f.played++
	o := &opening{at: time.Now(), from: from, in: in, conn: f}
	g.openings = append(g.openings, o)
	g.open++
	g.most = max(g.most, g.open)
	return a, o
}

func (g *gateway) mark(t *time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	*t = time.Now()
}

func (g *gateway) finish(o *opening) {
	g.mu.Lock()
	defer g.mu.Unlock()
	o.ended = time.Now()
	g.open--
}

// log gives copies of the sessions so far.
func (g *gateway) log() []opening {
	g.mu.Lock()
	defer g.mu.Unlock()
	out := make([]opening, len(g.openings))
	for i, o := range g.openings {
		out[i] = *o
	}
	return out
}

func (g *gateway) peak() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.most
}

// alive gives the sessions that have not ended.
func (g *gateway) alive() (out []opening) {
	for _, o := range g.log() {
		if o.ended.IsZero() {
			out = append(out, o)
		}
	}
	return out
}

// rig is a running supervisor inside a bubble.
type rig struct {
	*integrations.Supervisor
	t     testing.TB
	gate  *gateway
	start time.Time
	stop  func()
}

// launch runs a supervisor of f until the test ends or stop is called. Call it
// inside a bubble.
func launch(t testing.TB, f *fake, change func(*integrations.Config)) *rig {
	t.Helper()
	cfg := integrations.Config{
		Installation: "support",
		Connector:    f,
		Sink:         func(context.Context, message.Delivery) error { return nil },
	}
	if change != nil {
		change(&cfg)
	}
	s, err := integrations.NewSupervisor(cfg)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	r := &rig{Supervisor: s, t: t, gate: f.gate, start: time.Now()}
	var once sync.Once
	r.stop = func() {
		once.Do(func() {
			cancel()
			require.NoError(t, <-done)
		})
	}
	t.Cleanup(r.stop)
	go func() { done <- s.Run(ctx) }()
	synctest.Wait()
	return r
}

// pass lets time go by.
func (r *rig) pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// begun gives when the n-th session began, from 0, counted from the launch.
func (r *rig) begun(n int) time.Duration {
	r.t.Helper()
	log := r.gate.log()
	require.Greater(r.t, len(log), n, "so many sessions were not opened")
	return log[n].at.Sub(r.start)
}

func (r *rig) requireState(want integrations.State) {
	r.t.Helper()
	require.Equal(r.t, want, r.Status().State)
}
