package relay

import (
	"sync"
	"time"

	"github.com/penstock-io/penstock/message"
)

// Bounds of the answers that are remembered.
const (
	maxAnswers     = 4096
	maxAnswer      = 64 << 10 // a larger one is not
	maxAnswerBytes = 16 << 20
)

// answers remembers what synchronous messages were answered: a platform that pushes
// one again wants the same once more. It may be used from any number of goroutines.
type answers struct {
	mu sync.Mutex // guards the following fields
	by map[claimKey]*answer
	// order has the keys, oldest first; some may be gone.
	order []claimKey
	bytes int // of all bodies
}

// answer is what a message was answered, or who waits for it.
type answer struct {
	given   bool
	verdict message.Verdict
	body    []byte
	copies  []*task // that came before the answer
}

// expect notes that a message is going to be answered.
func (a *answers) expect(k claimKey) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.by == nil {
		a.by = map[claimKey]*answer{}
	}
	a.by[k] = &answer{}
	a.order = append(a.order, k)
	for len(a.order) > maxAnswers || a.bytes > maxAnswerBytes {
		a.dropLocked(a.order[0])
		a.order = a.order[1:]
	}
}

func (a *answers) dropLocked(k claimKey) {
	if r := a.by[k]; r != nil {
		a.bytes -= len(r.body)
		delete(a.by, k)
	}
}

// give records an answer, also in place of the one that was given because the right
// one was late, and settles the copies that wait.
func (a *answers) give(k claimKey, v message.Verdict, body []byte) {
	a.mu.Lock()
	r := a.by[k]
	var copies []*task
	if r != nil {
		copies, r.copies = r.copies, nil
		a.bytes -= len(r.body)
		r.given, r.verdict, r.body = true, v, body
		a.bytes += len(body)
		if len(body) > maxAnswer {
			a.dropLocked(k)
		}
	}
	a.mu.Unlock()
	for _, t := range copies {
		t.timer.Stop()
		t.settle(v, body)
	}
}

// join settles a copy of a message as the message was, or lets it wait for that. It is
// false if nothing is known of the message.
func (a *answers) join(t *task) bool {
	a.mu.Lock()
	r := a.by[t.claim()]
	switch {
	case r == nil:
		a.mu.Unlock()
		return false
	case r.given:
		v, body := r.verdict, r.body
		a.mu.Unlock()
		t.settle(v, body)
		return true
	}
	defer a.mu.Unlock()
	t.timer = time.AfterFunc(time.Until(t.msg.AnswerBy), func() { t.settle(message.Accept, nil) })
	r.copies = append(r.copies, t)
	return true
}
