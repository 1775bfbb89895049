package dedup_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/penstock-io/penstock/dedup"
)

const (
	modelWindow = 60 * time.Millisecond
	modelMax    = 3
)

// model is a window told slowly: a list of commits and a set of claims.
type model struct {
	commits []commit
	claims  map[int]bool
	evicted uint64
}

type commit struct {
	key int
	at  time.Time
}

func (m *model) expire() {
	m.commits = slices.DeleteFunc(m.commits, func(c commit) bool {
		return time.Since(c.at) >= modelWindow
	})
}

func (m *model) claim(k int) dedup.State {
	m.expire()
	switch {
	case m.claims[k]:
		return dedup.InFlight
	case slices.ContainsFunc(m.commits, func(c commit) bool { return c.key == k }):
		return dedup.Seen
	}
	m.claims[k] = true
	return dedup.Fresh
}

func (m *model) commit(k int) {
	if !m.claims[k] {
		return
	}
	m.expire()
	delete(m.claims, k)
	m.commits = append(m.commits, commit{k, time.Now()})
	if len(m.commits) > modelMax {
		m.commits = m.commits[1:]
		m.evicted++
	}
}

// bubbleT keeps rapid from asking a test in a bubble for its deadline, which is
// not allowed.
type bubbleT struct{ testing.TB }

// TestModel compares a window with the model over random calls and waits.
func TestModel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rapid.Check(bubbleT{t}, func(t *rapid.T) {
			w, err := dedup.New[int](dedup.Config{Window: modelWindow, Max: modelMax})
			require.NoError(t, err)
			m := &model{claims: map[int]bool{}}
			key := rapid.IntRange(0, 7)
			t.Repeat(map[string]func(*rapid.T){
				"claim": func(t *rapid.T) {
					k := key.Draw(t, "key")
					require.Equal(t, m.claim(k), w.Claim(k))
				},
				"commit": func(t *rapid.T) {
					k := key.Draw(t, "key")
					m.commit(k)
					w.Commit(k)
				},
				"release": func(t *rapid.T) {
					k := key.Draw(t, "key")
					delete(m.claims, k)
					w.Release(k)
				},
				"wait": func(t *rapid.T) {
					<-time.After(time.Duration(rapid.IntRange(1, 70).Draw(t, "ms")) * time.Millisecond)
				},
				"": func(t *rapid.T) {
					s := w.Stats()
					require.Equal(t, len(m.claims), s.InFlight)
					require.Equal(t, m.evicted, s.Evicted)
					m.expire()
					require.GreaterOrEqual(t, s.Held, len(m.commits))
				},
			})
		})
	})
}
