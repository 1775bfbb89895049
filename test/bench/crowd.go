package main

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/gorilla/websocket"

	"github.com/penstock-io/penstock/test/bench/internal/socket"
)

// crowd is a consumer of the edge with sockets in this process. Each socket is read
// by a goroutine of its own, and leave waits for all of them.
type crowd struct {
	// immutable
	url   string
	chats int // in how many conversations a blast takes turns

	readers sync.WaitGroup
	left    chan struct{} // closed by leave

	mu sync.Mutex
	// guarded by mu:
	sockets    []*websocket.Conn
	over       bool // nobody dials again
	seen       map[int]bool
	last       map[int]int // by conversation
	inversions int
	again      int // deliveries after the first
	failed     int // dials
	arrivals   []arrival
}

// arrival is the first delivery of a message that tells when it was pushed.
type arrival struct {
	chat   int
	pushed time.Time
	took   time.Duration
}

func newCrowd(url string, chats int) *crowd {
	return &crowd{
		url: url, chats: chats, left: make(chan struct{}),
		seen: map[int]bool{}, last: map[int]int{},
	}
}

// join keeps one more socket connected, which answers after a while of work.
func (c *crowd) join(work time.Duration) {
	c.readers.Go(func() {
		for {
			ws, err := socket.Open(c.url, "bench-0")
			if err == nil && c.enter(ws) {
				_ = c.serve(ws, work) // it was cut
				c.exit(ws)
			}
			c.mu.Lock()
			over := c.over
			if err != nil {
				c.failed++
			}
			c.mu.Unlock()
			switch {
			case over:
				return
			case err != nil:
				<-time.After(10 * time.Millisecond)
			}
		}
	})
}

func (c *crowd) enter(ws *websocket.Conn) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over {
		_ = ws.Close()
		return false
	}
	c.sockets = append(c.sockets, ws)
	return true
}

func (c *crowd) exit(ws *websocket.Conn) {
	_ = ws.Close()
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, s := range c.sockets {
		if s == ws {
			c.sockets = append(c.sockets[:i], c.sockets[i+1:]...)
			return
		}
	}
}

// leave ends all sockets and waits for their readers.
func (c *crowd) leave() {
	c.mu.Lock()
	c.over = true
	close(c.left)
	for _, ws := range c.sockets {
		_ = ws.Close()
	}
	c.mu.Unlock()
	c.readers.Wait()
}

func (c *crowd) serve(ws *websocket.Conn, work time.Duration) error {
	for {
		if err := c.next(ws, work); err != nil {
			return err
		}
	}
}

// next reads a frame and answers it.
func (c *crowd) next(ws *websocket.Conn, work time.Duration) error {
	_, raw, err := ws.ReadMessage()
	if err != nil {
		return err
	}
	now := time.Now()
	id, err := socket.ID(raw)
	if err != nil {
		return err
	}
	if n, err := numberOf(raw); err == nil {
		c.see(n, pushedAt(raw), now)
		if work > 0 {
			<-time.After(work)
		}
	}
	return ws.WriteMessage(websocket.TextMessage, socket.Ack(id))
}

// see notes a message that has come. Only its first delivery has a place in the
// order: a copy may come late.
func (c *crowd) see(n int, pushed, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.seen[n] {
		c.again++
		return
	}
	c.seen[n] = true
	chat := n % c.chats
	if last, ok := c.last[chat]; ok && n < last {
		c.inversions++
	}
	c.last[chat] = n
	if !pushed.IsZero() {
		c.arrivals = append(c.arrivals, arrival{chat, pushed, now.Sub(pushed)})
	}
}

// waits are the delays, the shortest first, of what was pushed between two times and
// belongs to the conversations of which is says so.
func (c *crowd) waits(from, to time.Time, is func(chat int) bool) (all []time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, a := range c.arrivals {
		if !a.pushed.Before(from) && a.pushed.Before(to) && is(a.chat) {
			all = append(all, a.took)
		}
	}
	slices.Sort(all)
	return all
}

// killUntil cuts a socket at random every now and then, and gives how many.
func (c *crowd) killUntil(stop <-chan struct{}) (n int) {
	tick := time.NewTicker(killEvery)
	defer tick.Stop()
	for {
		select {
		case <-stop:
			return n
		case <-tick.C:
			n += c.killOne()
		}
	}
}

func (c *crowd) killOne() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.sockets) == 0 {
		return 0
	}
	_ = c.sockets[rand.IntN(len(c.sockets))].NetConn().Close() // its reader notices
	return 1
}

// told adds what has come of so many messages.
func (c *crowd) told(pushed int, got *samples) {
	c.mu.Lock()
	defer c.mu.Unlock()
	got.add("lost", float64(pushed-len(c.seen)), "")
	got.add("inversions", float64(c.inversions), "")
	got.add("came again", float64(c.again), "")
	got.add("dials that failed", float64(c.failed), "")
}

var errNoNumber = errors.New("no message of a blast")

// numberOf finds the number of a blast's message in its id.
func numberOf(raw []byte) (int, error) {
	const before, run, digits = "msgBlast", 5, 10
	i := bytes.Index(raw, []byte(before))
	if i < 0 || len(raw) < i+len(before)+run+digits {
		return 0, errNoNumber
	}
	at := i + len(before) + run
	return strconv.Atoi(string(raw[at : at+digits]))
}

// pushedAt finds when a message was pushed; it is zero if that is not told.
func pushedAt(raw []byte) time.Time {
	_, rest, ok := bytes.Cut(raw, []byte(pushedMark))
	digits, _, _ := bytes.Cut(rest, []byte(" "))
	ns, err := strconv.ParseInt(string(digits), 10, 64)
	if !ok || err != nil {
		return time.Time{}
	}
	return time.Unix(0, ns)
}
