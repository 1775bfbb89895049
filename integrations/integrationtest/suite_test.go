package integrationtest_test

import (
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/penstock-io/penstock/integrations"
	"github.com/penstock-io/penstock/integrations/integrationtest"
)

var everything = integrationtest.Features{
	Retire: true, Refuse: true, Limit: true, Garble: true, Stall: true,
}

// env is the environment of a platform in memory, with a flaw or none.
func env(f flaw) integrationtest.Env {
	return integrationtest.Env{
		New:      func(integrationtest.TB) integrationtest.Gateway { return newPlatform(f) },
		Features: everything,
		Grace:    400 * time.Millisecond,
	}
}

func TestSoundConnectorPasses(t *testing.T) {
	integrationtest.Run(t, env(""))
}

// recorder is a TB that remembers instead of failing.
type recorder struct {
	mu       sync.Mutex
	failed   bool     // guarded by mu
	cleanups []func() // guarded by mu
}

func (r *recorder) Helper() {}

func (r *recorder) Errorf(string, ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failed = true
}

func (r *recorder) FailNow() {
	r.Errorf("")
	runtime.Goexit()
}

func (r *recorder) Cleanup(f func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cleanups = append(r.cleanups, f)
}

// run calls f in a goroutine of its own, which FailNow may end, and then what f
// wants to be called at its end.
func (r *recorder) run(f func()) (failed bool) {
	r.apart(f)
	r.mu.Lock()
	cleanups := slices.Clone(r.cleanups)
	r.mu.Unlock()
	slices.Reverse(cleanups)
	for _, c := range cleanups {
		r.apart(c)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.failed
}

func (r *recorder) apart(f func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	<-done
}

func record() (integrationtest.TB, func(func()) bool) {
	r := &recorder{}
	return r, r.run
}

// TestEveryFlawIsFound breaks the connector in one way at a time and wants the
// check that is meant for it to fail.
func TestEveryFlawIsFound(t *testing.T) {
	flaws := map[flaw]string{
		"never live":               "session goes live and brings messages",
		"drops copies":             "redelivery is passed on",
		"lost is stopped":          "dropped link is lost",
		"stop is lost":             "stop is stopped",
		"dials when done":          "context that is done opens nothing",
		"stops too late":           "stop does not wait for ever",
		"redials by itself":        "run is one session",
		"acks what is refused":     "closed core is survived",
		"acks early":               "ack is sent when it is settled",
		"acks a retry":             "drop is acked and retry is not",
		"keeps quiet about a drop": "drop is acked and retry is not",
		"acks twice":               "second settle does nothing",
		"panics after the end":     "settle after the end is harmless",
		"owes when it stops":       "owed acks are sent on a stop",
		"acks elsewhere":           "ack goes to the session that delivered",
		"leaves when asked":        "announced end leaves room for a successor",
		"asked is lost":            "announced end is asked",
		"retires in silence":       "announced end is asked",
		"refused is lost":          "refused credentials are refused",
		"limit without its wait":   "limit is told with its wait",
		"panics on garbage":        "garbage harms nothing",
		"deaf to silence":          "silent link is lost",
	}
	for f, want := range flaws {
		t.Run(string(f), func(t *testing.T) {
			e := env(f)
			e.Patience = 100 * time.Millisecond
			require.True(t, integrationtest.RunOnly(record, e, want), want)
		})
	}
}

func TestLeftoverGoroutineIsFound(t *testing.T) {
	var all []*platform
	e := env("leaks")
	e.New = func(integrationtest.TB) integrationtest.Gateway {
		all = append(all, newPlatform("leaks"))
		return all[len(all)-1]
	}
	failed := integrationtest.RunOnly(record, e, "dropped link is lost")
	for _, p := range all {
		close(p.closed)
		p.wg.Wait()
	}
	require.True(t, failed)
}

func TestWrongDeclarationIsFound(t *testing.T) {
	e := env("")
	e.Features.Stall = false
	require.True(t, integrationtest.RunOnly(record, e, "dropped link is lost"))
}

// TestProfileChoosesTheChecks gives the suite a platform without acks, which
// allows one session only.
func TestProfileChoosesTheChecks(t *testing.T) {
	e := env("acks early")
	e.New = func(integrationtest.TB) integrationtest.Gateway {
		p := newPlatform("acks early")
		p.profile.Ack, p.profile.MaxSessions = integrations.AckNone, 1
		return p
	}
	integrationtest.Run(t, e)
}
