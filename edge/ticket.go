package edge

import (
	"sync"
	"time"
)

// maxTickets bounds the tickets of one consumer that wait to be used.
const maxTickets = 256

// ticket lets one connection in.
type ticket struct {
	id       string
	consumer *consumer
	secret   string // of the consumer when it was given
	subs     map[subscription]bool
	agent    string
	expires  time.Time
}

// tickets are those that nobody has used. It may be used from any number of
// goroutines.
type tickets struct {
	mu sync.Mutex // guards the following fields
	// byID has those that are good or have expired lately.
	byID map[string]*ticket
	// given has them by consumer, oldest first.
	given map[*consumer][]*ticket
}

// add keeps a ticket. If its consumer has too many, its oldest is void.
func (t *tickets) add(tk *ticket, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	list := t.given[tk.consumer]
	for len(list) > 0 && (len(list) >= maxTickets || !now.Before(list[0].expires)) {
		delete(t.byID, list[0].id)
		list = list[1:]
	}
	t.byID[tk.id] = tk
	t.given[tk.consumer] = append(list, tk)
}

// take gives a ticket and makes it void; nil if it is not good.
func (t *tickets) take(id string, now time.Time) *ticket {
	t.mu.Lock()
	defer t.mu.Unlock()
	tk := t.byID[id]
	if tk == nil {
		return nil
	}
	delete(t.byID, id)
	list := t.given[tk.consumer]
	for i, other := range list {
		if other == tk {
			t.given[tk.consumer] = append(list[:i:i], list[i+1:]...)
			break
		}
	}
	if len(t.given[tk.consumer]) == 0 {
		delete(t.given, tk.consumer)
	}
	if !now.Before(tk.expires) {
		return nil
	}
	return tk
}

// forget makes all tickets of a consumer void.
func (t *tickets) forget(c *consumer) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, tk := range t.given[c] {
		delete(t.byID, tk.id)
	}
	delete(t.given, c)
}
