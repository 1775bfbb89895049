package crash_test

import (
	"cmp"
	"fmt"
	"slices"
	"sync"

	"github.com/penstock-io/penstock/integrations/dingtalk/dingtalktest"
	"github.com/penstock-io/penstock/message"
)

// book has what was seen of every message. Its methods may be called from any
// number of goroutines.
type book struct {
	mu sync.Mutex // guards the following fields
	// entries has every message by its id, chats those of a conversation in the
	// order in which they were pushed.
	entries map[message.ID]*entry
	chats   map[int][]*entry
	// active has the conversations with a handler at work, by the daemon's life.
	active map[activity]bool
	order  int // counts runs and sends
	worked int // the last life that a handler was called in
	wrong  []string
	count  tally
	// changed is closed and replaced when something was noted.
	changed chan struct{}
}

type activity struct{ life, chat int }

// entry is one message.
type entry struct {
	id           message.ID
	chat, number int
	push         *dingtalktest.Pushed
	acked        bool
	runs         []handled
	answered     bool // a handler's success was written, not necessarily read
	sends        []int
}

// handled is one run of the handler.
type handled struct{ life, attempt, order int }

// tally is what is told of a run beside the books.
type tally struct {
	pushed, acked, redelivered, givenUp  int
	runs, again, late, sent, twice, asks int
}

func newBook() *book {
	return &book{
		entries: make(map[message.ID]*entry), chats: make(map[int][]*entry),
		active: make(map[activity]bool), changed: make(chan struct{}),
	}
}

func (b *book) change(do func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	do()
	close(b.changed)
	b.changed = make(chan struct{})
}

// complainLocked notes something that must not happen; the caller holds mu.
func (b *book) complainLocked(format string, args ...any) {
	if len(b.wrong) < 100 {
		b.wrong = append(b.wrong, fmt.Sprintf(format, args...))
	}
}

// add makes the next message of a conversation, before it is pushed.
func (b *book) add(chat int) *entry {
	b.mu.Lock()
	defer b.mu.Unlock()
	e := &entry{chat: chat, number: len(b.chats[chat]) + 1}
	e.id = message.ID(fmt.Sprintf("msg-%d-%d", chat, e.number))
	b.entries[e.id] = e
	b.chats[chat] = append(b.chats[chat], e)
	return e
}

func (b *book) pushed(e *entry, p *dingtalktest.Pushed) {
	b.change(func() { e.push = p })
}

func (b *book) ack(a dingtalktest.Ack) {
	b.change(func() {
		if e := b.entries[a.Message]; e != nil && a.Code == 200 {
			e.acked = true
		}
	})
}

// begin notes a run of the handler and judges it. A request of a daemon that is
// dead may be read late; it is not judged by what the next one did meanwhile.
func (b *book) begin(id message.ID, life, attempt int) {
	b.change(func() {
		e := b.entries[id]
		if e == nil {
			b.complainLocked("%s was never pushed", id)
			return
		}
		b.order++
		run := handled{life, attempt, b.order}
		defer func() { e.runs = append(e.runs, run) }()
		b.worked = max(b.worked, life)
		b.count.runs++
		if at := (activity{life, e.chat}); b.active[at] {
			b.complainLocked("%s was handled beside another of its conversation", id)
		} else {
			b.active[at] = true
		}
		if len(e.runs) == 0 {
			return
		}
		if last := slices.MaxFunc(e.runs, byLife); last.life > life {
			b.count.late++
		} else {
			b.judgeLocked(e, last, run)
		}
	})
}

// judgeLocked looks at a run that is not the first of its message.
func (b *book) judgeLocked(e *entry, last, run handled) {
	b.count.again++
	switch {
	case len(e.sends) > 0:
		b.complainLocked("%s was handled again after its reply was sent", e.id)
	case run.life == last.life && e.answered:
		b.complainLocked("%s was handled again after it was answered", e.id)
	case run.attempt < 2, run.life == last.life && run.attempt != last.attempt+1:
		b.complainLocked("%s was handled again as try %d after try %d", e.id, run.attempt, last.attempt)
	}
}

func byLife(a, b handled) int {
	return cmp.Or(cmp.Compare(a.life, b.life), cmp.Compare(a.order, b.order))
}

// end notes that a run is over, before its answer is written.
func (b *book) end(id message.ID, life int, success bool) {
	b.change(func() {
		if e := b.entries[id]; e != nil {
			delete(b.active, activity{life, e.chat})
			e.answered = success
			if !success {
				b.count.asks++
			}
		}
	})
}

// send notes a reply that reached the platform.
func (b *book) send(id message.ID) {
	b.change(func() {
		e := b.entries[id]
		if e == nil || len(e.runs) == 0 {
			b.complainLocked("a reply to %s was sent before it was handled", id)
			return
		}
		b.order++
		b.count.sent++
		e.sends = append(e.sends, b.order)
	})
}

// settled tells whether nothing more is to be expected.
func (b *book) settled() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, e := range b.entries {
		if e.push == nil || (e.acked || len(e.runs) > 0) && len(e.sends) == 0 {
			return false
		}
		select {
		case <-e.push.Done():
		default:
			return false
		}
	}
	return true
}

// compare adds what is wrong in the end. maybe has how often the daemon said of a
// reply that it may have arrived.
func (b *book) compare(maybe map[message.ID]int) (tally, []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, e := range b.entries {
		b.closeLocked(e, maybe[e.id])
	}
	for chat, all := range b.chats {
		b.inOrderLocked(chat, "handled", all, func(e *entry) (handled, bool) {
			if len(e.runs) == 0 {
				return handled{}, false
			}
			return slices.MinFunc(e.runs, byLife), true
		})
		b.inOrderLocked(chat, "answered", all, func(e *entry) (handled, bool) {
			if len(e.sends) == 0 {
				return handled{}, false
			}
			return handled{order: e.sends[0]}, true
		})
	}
	return b.count, b.wrong
}

func (b *book) closeLocked(e *entry, maybe int) {
	b.count.pushed++
	b.count.redelivered += len(e.push.Tries()) - 1
	b.count.twice += max(0, len(e.sends)-1)
	switch {
	case e.acked:
		b.count.acked++
	default:
		b.count.givenUp++
	}
	switch {
	case e.acked && len(e.runs) == 0:
		b.complainLocked("LOST: %s was acknowledged and never handled", e.id)
	case len(e.runs) > 0 && len(e.sends) == 0:
		b.complainLocked("LOST: the reply to %s was never sent", e.id)
	case len(e.sends)-1 > maybe:
		b.complainLocked("the reply to %s was sent %d times; the daemon was in doubt %d times",
			e.id, len(e.sends), maybe)
	}
}

// inOrderLocked wants the first time that something happened to each message of a
// conversation to be in the order of pushing. A message that was pushed twice may
// have arrived the second time only, and is left out.
func (b *book) inOrderLocked(
	chat int, what string, all []*entry, first func(*entry) (handled, bool),
) {
	var last handled
	for _, e := range all {
		at, ok := first(e)
		if !ok || len(e.push.Tries()) != 1 {
			continue
		}
		if byLife(at, last) < 0 {
			b.complainLocked("conversation %d: %s was %s before one that came earlier", chat, e.id, what)
		}
		last = at
	}
}

// runsOf is how often a message has been handled so far.
func (b *book) runsOf(id message.ID) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	if e := b.entries[id]; e != nil {
		return len(e.runs)
	}
	return 0
}

// hasWorked tells whether a handler was called in this life of the daemon.
func (b *book) hasWorked(life int) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.worked >= life
}

// unsettled tells what is waited for.
func (b *book) unsettled() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	n, text := 0, ""
	for _, e := range b.entries {
		if e.acked && len(e.sends) > 0 {
			continue
		}
		if n++; n <= 5 {
			text += fmt.Sprintf(" %s (acknowledged %t, handled %d times)", e.id, e.acked, len(e.runs))
		}
	}
	return fmt.Sprintf("%d of %d messages:%s", n, len(b.entries), text)
}

func (b *book) sendsOf(id message.ID) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.entries[id].sends)
}

func (b *book) isAcked(id message.ID) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.entries[id].acked
}

// triesOf are the numbers that the daemon gave the runs of a message.
func (b *book) triesOf(id message.ID) (tries []int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, r := range b.entries[id].runs {
		tries = append(tries, r.attempt)
	}
	return tries
}
