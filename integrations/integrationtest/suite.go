package integrationtest

import (
	"testing"

	"github.com/penstock-io/penstock/integrations"
)

// check is one promise of a connector.
type check struct {
	name string
	run  func(b *bench)
	// needs tells whether a connector makes the promise; nil means that all do.
	needs func(e Env, p integrations.Profile) bool
}

// Run tries every promise that the connector makes, each in a subtest of its own
// with a gateway of its own.
func Run(t *testing.T, env Env) {
	t.Helper()
	for _, c := range applicable(t, env) {
		t.Run(c.name, func(t *testing.T) { c.run(newBench(t, env.withDefaults())) })
	}
}

// applicable gives the checks of a connector.
func applicable(t TB, env Env) (out []check) {
	t.Helper()
	g := env.New(t)
	defer g.Close()
	profile := g.Connector().Profile()
	for _, c := range checks {
		if c.needs == nil || c.needs(env, profile) {
			out = append(out, c)
		}
	}
	return out
}

func acks(_ Env, p integrations.Profile) bool { return p.Ack == integrations.AckEach }

func overlaps(e Env, p integrations.Profile) bool { return acks(e, p) && p.MaxSessions != 1 }

var checks = []check{
	{name: "session goes live and brings messages", run: liveAndMessages},
	{name: "order is kept", run: orderIsKept},
	{name: "redelivery is passed on", run: redelivery},
	{name: "dropped link is lost", run: droppedLink},
	{name: "stop is stopped", run: stopIsStopped},
	{name: "context that is done opens nothing", run: doneContext},
	{name: "stop does not wait for ever", run: stopInTime},
	{name: "run is one session", run: oneSession},
	{name: "closed core is survived", run: closedCore},
	{name: "ack is sent when it is settled", run: ackWhenSettled, needs: acks},
	{name: "drop is acked and retry is not", run: verdicts, needs: acks},
	{name: "second settle does nothing", run: settleTwice, needs: acks},
	{name: "settle from many goroutines", run: settleConcurrently, needs: acks},
	{name: "settle after the end is harmless", run: settleAfterEnd, needs: acks},
	{name: "owed acks are sent on a stop", run: owedAcks, needs: acks},
	{name: "ack goes to the session that delivered", run: ackOnItsSession, needs: overlaps},
	{name: "many sessions at once", run: manySessions, needs: overlaps},
	{
		name: "announced end leaves room for a successor", run: retireOverlaps,
		needs: func(e Env, p integrations.Profile) bool { return e.Features.Retire && overlaps(e, p) },
	},
	{
		name: "announced end is asked", run: retireIsAsked,
		needs: func(e Env, _ integrations.Profile) bool { return e.Features.Retire },
	},
	{
		name: "refused credentials are refused", run: refused,
		needs: func(e Env, _ integrations.Profile) bool { return e.Features.Refuse },
	},
	{
		name: "limit is told with its wait", run: limited,
		needs: func(e Env, _ integrations.Profile) bool { return e.Features.Limit },
	},
	{
		name: "garbage harms nothing", run: garbage,
		needs: func(e Env, _ integrations.Profile) bool { return e.Features.Garble },
	},
	{
		name: "silent link is lost", run: silentLink,
		needs: func(e Env, _ integrations.Profile) bool { return e.Features.Stall },
	},
}
