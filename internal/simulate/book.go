package simulate

import (
	"errors"
	"net/http"
	"time"

	"github.com/penstock-io/penstock/integrations/dingtalk/dingtalktest"
	"github.com/penstock-io/penstock/message"
)

// MaxOpen is how many pushes may wait for their outcome.
const MaxOpen = 10_000

// keepSettled is how many settled pushes are remembered, so that a second answer
// can be told what it belongs to.
const keepSettled = 1000

// entry is one push.
type entry struct {
	n      int // counts from 1
	pushed *dingtalktest.Pushed
}

// book is what has been pushed and what became of it. Its owner guards it.
type book struct {
	pushed, acked, refused, failed int

	open    map[*entry]struct{}
	settled []*entry // oldest first
	frames  map[message.FrameID]*entry
	active  time.Time // when the bot was last seen doing something
}

func newBook() book {
	return book{open: map[*entry]struct{}{}, frames: map[message.FrameID]*entry{}}
}

// add takes in a push.
func (b *book) add(p *dingtalktest.Pushed) *entry {
	b.pushed++
	e := &entry{n: b.pushed, pushed: p}
	b.open[e] = struct{}{}
	return e
}

// find gives the push of a frame and which try of it the frame was, or nil.
func (b *book) find(id message.FrameID) (e *entry, try int) {
	e = b.frames[id]
	if e == nil { // it is new: learn of all frames that have been pushed meanwhile
		for open := range b.open {
			b.learn(open)
		}
		for _, old := range b.settled {
			b.learn(old)
		}
		e = b.frames[id]
	}
	if e == nil {
		return nil, 0
	}
	for i, t := range e.pushed.Tries() {
		if t.Frame == id {
			try = i + 1
		}
	}
	return e, try
}

func (b *book) learn(e *entry) {
	for _, t := range e.pushed.Tries() {
		b.frames[t.Frame] = e
	}
}

// settle records the outcome of a push, and forgets the oldest that is settled.
func (b *book) settle(e *entry, ack dingtalktest.Ack, err error) {
	delete(b.open, e)
	b.settled = append(b.settled, e)
	if len(b.settled) > keepSettled {
		for _, t := range b.settled[0].pushed.Tries() {
			delete(b.frames, t.Frame)
		}
		b.settled = b.settled[1:]
	}
	switch {
	case errors.Is(err, dingtalktest.ErrClosed): // it was open to the last
	case err != nil:
		b.failed++
	case ack.Code != http.StatusOK:
		b.refused++
	default:
		b.acked++
	}
}

// end is the last line.
func (b *book) end(replies int) event {
	return event{Event: evEnd, Totals: &totals{
		Pushed: b.pushed, Acknowledged: b.acked, Refused: b.refused, Failed: b.failed,
		Open: b.pushed - b.acked - b.refused - b.failed, Replies: replies,
	}}
}
