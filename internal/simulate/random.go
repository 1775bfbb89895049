package simulate

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/penstock-io/penstock/integrations/dingtalk/dingtalktest"
	"github.com/penstock-io/penstock/message"
)

// startRandom says things at random, if that is asked for. The function ends it and
// waits for it; further calls do nothing.
func (s *stage) startRandom(ctx context.Context) (stop func()) {
	if !s.opts.Random {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	var group sync.WaitGroup
	group.Go(func() { s.speak(ctx) })
	return func() {
		cancel()
		group.Wait()
	}
}

// speak says something in a random conversation at each tick. While too much is
// open it says nothing, and tells so once.
func (s *stage) speak(ctx context.Context) {
	rng := rand.New(rand.NewPCG(s.opts.Seed, 1))
	tick := time.NewTicker(time.Second / time.Duration(s.opts.Rate))
	defer tick.Stop()
	full := false
	for said := 1; ; said++ {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		err := s.sayAtRandom(rng, said)
		if err != nil && !full {
			s.note("nothing is said at random for now: %v", err)
		}
		full = err != nil
	}
}

// people say things at random.
var people = []string{"Ann", "Bo", "Chen", "Dora", "Emil", "Fang"}

func (s *stage) sayAtRandom(rng *rand.Rand, said int) error {
	conversation := fmt.Sprintf("random-%d", rng.IntN(s.opts.Conversations)+1)
	nick := people[rng.IntN(len(people))]
	text := fmt.Sprintf("message %d", said)
	return s.push(dingtalktest.Robot{
		Conversation: message.ConversationID(conversation), Text: text, Nick: nick,
		Sender: person("$:LWCP_v1:$", nick), Staff: person("staff-", nick),
		Fields: map[string]any{"conversationTitle": conversation},
	}, event{Kind: "text", Conversation: conversation, Sender: nick, Text: text})
}
