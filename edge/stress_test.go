package edge_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/penstock-io/penstock/edge"
	"github.com/penstock-io/penstock/message"
	"github.com/penstock-io/penstock/router"
)

// orders checks that each conversation's messages come in order. One that has been
// seen may come again, and late: a slow connection still holds its first copy when
// the second one has been answered on another.
type orders struct {
	mu   sync.Mutex
	last map[string]int // guarded by mu
	bad  []string       // guarded by mu
}

func (o *orders) see(f frame) {
	var m struct {
		MsgID string `json:"msgId"`
	}
	_ = json.Unmarshal([]byte(f.Data), &m)
	var conversation, n int
	_, _ = fmt.Sscanf(m.MsgID, "%d-%d", &conversation, &n)
	o.mu.Lock()
	defer o.mu.Unlock()
	key := fmt.Sprint(conversation)
	if last := o.last[key]; n > last+1 {
		o.bad = append(o.bad, fmt.Sprintf("%s came after %d", m.MsgID, last))
	}
	o.last[key] = max(n, o.last[key])
}

// moody is a bot that answers well, badly, twice, late, for others, or dies. It is
// well behaved once calm is closed.
func (c *client) moody(o *orders, rng *rand.Rand, calm <-chan struct{}) {
	var owed []frame
	for {
		f, err := c.next()
		if err != nil {
			return
		}
		if f.Type != "CALLBACK" {
			continue
		}
		o.see(f)
		mood := rng.IntN(12)
		select {
		case <-calm:
			mood = 11
		default:
		}
		switch mood {
		case 0:
			c.answer(f.Headers["messageId"], 500, "")
		case 1:
			owed = append(owed, f)
		case 2:
			c.ok(f)
			c.ok(f)
		case 3:
			c.write("nonsense")
			c.ok(f)
		case 4:
			_ = c.ws.Close()
			return
		case 5:
			for _, old := range owed {
				c.ok(old)
			}
			owed = nil
			c.ok(f)
		default:
			c.ok(f)
		}
	}
}

// Conversations keep their order and lose nothing whatever the bots do.
// It is busy, so it has the machine for itself.
func TestOrderUnderMoods(t *testing.T) {
	const conversations, each, bots = 8, 30, 3
	list := consumers()
	list[0].MaxConnections = 100
	b := serve(t, edge.Config{
		Consumers: list, AckWithin: 50 * time.Millisecond, RejoinWithin: 5 * time.Millisecond,
	})
	o := &orders{last: map[string]int{}}
	done, calm := make(chan struct{}), make(chan struct{})
	var people, dialing sync.WaitGroup
	for n := range bots {
		rng := rand.New(rand.NewPCG(uint64(n), 7))
		dialing.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				if c, err := b.tryDial(); err == nil {
					c.moody(o, rng, calm)
				}
			}
		})
	}
	for conversation := range conversations {
		people.Go(func() {
			for n := 1; n <= each; n++ {
				m := robot(fmt.Sprintf("%d-%d", conversation, n), fmt.Sprint(conversation))
				b.untilDone(m)
			}
		})
	}
	quiet := time.AfterFunc(3*time.Second, func() { close(calm) })
	defer quiet.Stop()
	people.Wait()
	close(done)
	b.stop() // which ends the connections
	dialing.Wait()
	o.mu.Lock()
	defer o.mu.Unlock()
	require.Empty(t, o.bad)
	for key, last := range o.last {
		require.Equal(t, each, last, key)
	}
	require.Len(t, o.last, conversations)
	s := b.srv.Stats()
	require.EqualValues(t, conversations*each, s.Outcomes["answered"]+s.Outcomes["answered_late"])
}

// untilDone tries a message as a relay does.
func (b *bench) untilDone(m *message.Inbound) {
	h := b.srv.Handler("one")
	for {
		_, err := h.Handle(b.t.Context(), m)
		var re *router.Error
		switch {
		case err == nil:
			return
		case !errors.As(err, &re):
			b.t.Errorf("%s: %v", m.ID, err)
			return
		case re.Unreached:
			<-time.After(time.Millisecond)
		}
	}
}
