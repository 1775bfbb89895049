package demo

import (
	"fmt"
	"hash/fnv"
	"slices"
	"sync"
	"time"

	"github.com/penstock-io/penstock/integrations/dingtalk/dingtalktest"
	"github.com/penstock-io/penstock/message"
)

// ledger follows every message. Its methods may be called from any number of
// goroutines.
type ledger struct {
	mu sync.Mutex // guards the following fields
	// entries has every message that was pushed, by its id.
	entries map[message.ID]*entry
	// running has the conversations with a handler at work.
	running map[chat]bool
	// order lists what was handled in each conversation.
	order    map[chat][]*entry
	replies  map[string]int // replies by text
	overlaps int
	again    int // runs that the kill accounts for
	handled  int
	replied  int
	acks     int
	delays   []time.Duration
	// leaving has the socket that was asked to leave, by the number of the app's
	// newest session at that time.
	leaving []leave
	gap     time.Duration
}

// chat is a conversation, in one life of the service or, with 0, in all.
type chat struct {
	life         int
	installation message.InstallationID
	conversation message.ConversationID
}

// entry is one message.
type entry struct {
	pushes  []*dingtalktest.Pushed
	number  int // in its conversation, in the order of pushing
	handled int // runs of the handler
	life    int // of the service at the last of them
	twice   int // runs that the kill does not account for
	doubts  int // times that the service was not sure about the reply
	reply   string
}

// leave is a planned redial whose successor has not carried a message yet.
type leave struct {
	session int
	at      time.Time
	app     *dingtalktest.App
}

func newLedger() *ledger {
	return &ledger{
		entries: make(map[message.ID]*entry),
		running: make(map[chat]bool),
		order:   make(map[chat][]*entry),
		replies: make(map[string]int),
	}
}

// maxHandler is the longest that the demo's handler works.
const maxHandler = 5 * time.Millisecond

// work is how long a message takes: between nothing and maxHandler, by its id.
func work(id message.ID) time.Duration {
	h := fnv.New32a()
	_, _ = h.Write([]byte(id)) // never fails
	return time.Duration(h.Sum32()) % maxHandler
}

// begin notes a run of the handler and gives its reply.
func (l *ledger) begin(k chat, id message.ID, attempt int) (reply string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.running[k] {
		l.overlaps++
	}
	l.running[k] = true
	l.handled++
	e := l.entries[id]
	if e == nil {
		return "unknown message"
	}
	switch {
	case e.handled == 0:
		place := chat{0, k.installation, k.conversation}
		l.order[place] = append(l.order[place], e)
	case k.life > e.life && attempt > 1 && l.replies[e.reply] == 0:
		l.again++ // the kill came before the outcome was on the disk
	default:
		e.twice++
	}
	e.handled++
	e.life = k.life
	return e.reply
}

func (l *ledger) end(k chat) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.running, k)
}

// doubt notes that the service does not know whether a reply has arrived.
func (l *ledger) doubt(id message.ID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if e := l.entries[id]; e != nil {
		e.doubts++
	}
}

// killed notes that redials which were under way are no measure of anything.
func (l *ledger) killed() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.leaving = nil
}

// push records a message before it is pushed.
func (l *ledger) push(id message.ID, number int, reply string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.entries[id] = &entry{number: number, reply: reply}
}

// pushed keeps a push to look at in the end.
func (l *ledger) pushed(id message.ID, p *dingtalktest.Pushed) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.entries[id]
	e.pushes = append(e.pushes, p)
}

func (l *ledger) acked(a dingtalktest.Ack) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.acks++
	l.delays = append(l.delays, a.Latency)
	l.leaving = slices.DeleteFunc(l.leaving, func(v leave) bool {
		if a.Session <= v.session || !has(v.app, a.Session) {
			return false
		}
		l.gap = max(l.gap, a.At.Add(-a.Latency).Sub(v.at))
		return true
	})
}

func has(app *dingtalktest.App, session int) bool {
	return slices.ContainsFunc(app.Sessions(), func(s *dingtalktest.Session) bool {
		return s.Info().ID == session
	})
}

func (l *ledger) asked(app *dingtalktest.App, session int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.leaving = append(l.leaving, leave{session, time.Now(), app})
}

func (l *ledger) sent(s dingtalktest.Sent) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.replied++
	l.replies[s.Text]++
}

func (l *ledger) counts() (acked, handled, replied int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.acks, l.handled, l.replied
}

// lastChances counts the messages that are about to be pushed for the second and
// last time, or have been and are not acknowledged.
func (l *ledger) lastChances() (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range l.entries {
		for _, p := range e.pushes {
			select {
			case <-p.Done():
			default:
				if t := p.Tries(); len(t) > 0 && time.Since(t[0].At) > robotTimeout-startTime {
					n++
				}
			}
		}
	}
	return n
}

// settled tells whether every message has been handled and answered.
func (l *ledger) settled() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range l.entries {
		if e.handled == 0 || l.replies[e.reply] == 0 {
			return false
		}
		for _, p := range e.pushes {
			select {
			case <-p.Done():
			default:
				return false
			}
		}
	}
	return true
}

func replyText(i, conversation, number int) string {
	return fmt.Sprintf("bot %d, conversation %d: answer %d", i+1, conversation, number)
}
