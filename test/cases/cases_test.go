package cases_test

import (
	"flag"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
)

var casesDir = flag.String("cases", "../testdata/cases", "folder of the cases to replay")

// waiting lists what the program cannot do yet, by case and expectation; an empty
// key is the whole case. The test fails if one of them is met.
var waiting = []struct{ id, key, why string }{
	{"134", "default", "there are no leases"},
	{"134", "on_lease_loss", "there are no leases"},
	{"097", "coalesce", "cards are not streamed"},
	{"097", "final_state", "cards are not streamed"},
}

// player runs a case against a world and notes what is wrong.
type player func(*world)

// players by kind. The real ones also run over real sockets, where nothing has to
// wait for long.
var players = map[string]struct {
	play player
	real bool
}{
	"inbound":       {playWire, true},
	"frame":         {playWire, true},
	"duplicate":     {playWire, true},
	"system":        {playWire, true},
	"event":         {playWire, true},
	"card":          {playWire, true},
	"open":          {playOpen, false},
	"transport":     {playTransport, false},
	"outbound":      {playOutbound, false},
	"shutdown":      {playShutdown, false},
	"recovery":      {playRecovery, false},
	"observability": {playRedaction, false},
}

// TestCases replays every case in a bubble, where the clock is the case's own and
// every wait has its full length, and those about the wire over TCP as well, where
// gaps between messages are left out.
func TestCases(t *testing.T) {
	all := load(t, *casesDir)
	passed, partly := 0, 0
	for _, c := range all {
		p, ok := players[c.Kind]
		if !ok {
			t.Errorf("case %s: unknown kind %q", c.ID, c.Kind)
			continue
		}
		var f *findings
		good := t.Run(c.ID+"-"+c.Name, func(t *testing.T) {
			t.Run("clock", func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					w := newWorld(t, c, true)
					p.play(w)
					f = w.findings
				})
				settleFindings(t, c, f)
			})
			if p.real && !clockOnly(c) {
				t.Run("socket", func(t *testing.T) {
					w := newWorld(t, c, false)
					p.play(w)
					settleFindings(t, c, w.findings)
				})
			}
		})
		switch {
		case f != nil && len(f.wrong) > 0 && good:
			partly++
		case good:
			passed++
		}
	}
	t.Logf("%d cases replayed: %d passed, %d wait in part for what is not built",
		len(all), passed, partly)
}

// clockOnly tells that a case cannot be played on real sockets: its end could not be
// told there by a last message that is handled like the others.
func clockOnly(c *replayed) bool {
	return waits(c) || len(c.Given) > 0 || strings.Contains(c.words("connection"), "redial")
}

// waits tells whether something of the case is on the list.
func waits(c *replayed) bool {
	return slices.ContainsFunc(waiting, func(w struct{ id, key, why string }) bool {
		return w.id == c.ID
	})
}

// settleFindings fails the test for everything that is wrong and not waited for,
// and for everything that is waited for and right.
func settleFindings(t *testing.T, c *replayed, f *findings) {
	t.Helper()
	for key, value := range f.unknown {
		t.Errorf("unknown expectation %s: %s", key, value)
	}
	wrong := maps.Clone(f.wrong)
	for _, w := range waiting {
		if w.id != c.ID {
			continue
		}
		if len(wrong[w.key]) == 0 {
			t.Errorf("%s is met: take it off the list (%q)", w.key, w.why)
		}
		for _, why := range wrong[w.key] {
			t.Logf("waits: %s: %s (%s)", w.key, why, w.why)
		}
		delete(wrong, w.key)
	}
	for key, whys := range wrong {
		for _, why := range whys {
			t.Errorf("%s %s: expected %s; %s", c.What, key, c.words(key), why)
		}
	}
}
