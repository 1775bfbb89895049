package sqlite

import (
	"fmt"
	"slices"

	"github.com/penstock-io/penstock/message"
	"github.com/penstock-io/penstock/store"
)

// group is what one commit does. Its ops are applied in order to a picture of the
// items that they name, each on what the ones before it left; only the difference
// in the end is written, in as few statements as that takes. It is reused, and
// belongs to the holder of Store.write.
type group struct {
	w       *conn
	boxes   *[2]box
	commit  int64 // its number
	now     int64 // in ms
	expired int64 // ids given at or before this time are forgotten, unless their item is there
	sides   [2]side
	letters []letter  // dead letters in the order of burial
	exhumed []exhumed // dead letters from before that go
	ends    endLog
	// err is a failure of the file, which fails the whole group.
	err error

	// scratch:
	seqs  []store.Seq
	found []int64
	args  []any
	arena []byte
}

// side is what a group does to the inbox or the outbox.
type side struct {
	base, last store.Seq // the highest number before the group, and so far
	items      int64     // before the group
	fresh      []item    // those with the numbers from base+1 on
	touched    []item    // others that were looked up
	place      map[store.Seq]int
	ids        map[idKey]store.Seq // given in this group
	log        idLog
	done       int64
}

// item is what a group knows of an item.
type item struct {
	seq     store.Seq
	key     idKey
	conv    message.ConversationID
	message *message.Inbound  // of a new message
	reply   *message.Outbound // of a new reply
	body    []byte            // of one that was dead

	state    store.State
	attempts int
	at       int64
	reason   string
	changed  bool // state and attempts
	timed    bool // at and reason too
	gone     bool
}

// letter is an item that is buried.
type letter struct {
	item
	box  store.Box
	left bool // and exhumed in the same group
}

type exhumed struct {
	box store.Box
	seq store.Seq
}

// begin makes the group ready for a commit with this number, at this time.
func (g *group) begin(w *conn, boxes *[2]box, commit, now int64) {
	g.w, g.boxes, g.commit, g.now, g.err = w, boxes, commit, now, nil
	for i := range g.sides {
		sd := &g.sides[i]
		clear(sd.fresh)
		clear(sd.touched)
		clear(sd.place)
		clear(sd.ids)
		*sd = side{
			base: boxes[i].last, last: boxes[i].last, items: boxes[i].count,
			fresh: sd.fresh[:0], touched: sd.touched[:0], place: sd.place, ids: sd.ids, log: sd.log,
		}
		sd.log.reset()
		if sd.place == nil {
			sd.place, sd.ids = make(map[store.Seq]int), make(map[idKey]store.Seq)
		}
	}
	clear(g.letters)
	g.letters, g.exhumed = g.letters[:0], g.exhumed[:0]
	g.ends.reset()
}

// named tells whether the group gave a number or ended an item, and so has a row of
// its own.
func (g *group) named() bool {
	in, out := &g.sides[store.BoxInbox], &g.sides[store.BoxOutbox]
	return in.last > in.base || out.last > out.base || g.ends.n > 0
}

// fail notes a failure of the file.
func (g *group) fail(err error) {
	if g.err == nil {
		g.err = err
	}
}

// find gives an item that is in a box at this point of the group, nil if it is
// not. It is valid until the next call of find or put.
func (g *group) find(b store.Box, seq store.Seq) *item {
	sd := &g.sides[b]
	if seq > sd.base {
		if seq > sd.last || sd.fresh[seq-sd.base-1].gone {
			return nil
		}
		return &sd.fresh[seq-sd.base-1]
	}
	if i, ok := sd.place[seq]; ok {
		if sd.touched[i].gone {
			return nil
		}
		return &sd.touched[i]
	}
	has, err := g.boxes[b].open.has(seq)
	if err != nil {
		g.fail(err)
	}
	if !has {
		return nil
	}
	sd.place[seq] = len(sd.touched)
	sd.touched = append(sd.touched, item{seq: seq})
	return &sd.touched[len(sd.touched)-1]
}

// put adds an item and gives its number.
func (g *group) put(b store.Box, it item) store.Seq {
	sd := &g.sides[b]
	sd.last++
	it.seq = sd.last
	sd.fresh = append(sd.fresh, it)
	if it.key.id != "" {
		sd.ids[it.key] = it.seq
		sd.log.add(it.seq, it.key)
	}
	return it.seq
}

// count is how many items are there at this point of the group.
func (sd *side) count() int64 {
	n := sd.items
	for i := range sd.fresh {
		if !sd.fresh[i].gone {
			n++
		}
	}
	for i := range sd.touched {
		if sd.touched[i].gone {
			n--
		}
	}
	return n
}

// known gives the number that an id got last, 0 if it is not remembered.
func (g *group) known(b store.Box, k idKey) (known store.Seq) {
	if k.id == "" {
		return 0
	}
	bx := &g.boxes[b]
	if seq, ok := g.sides[b].ids[k]; ok {
		return seq
	}
	g.found = bx.ids.candidates(bx.ids.hash(k), g.commit-1, g.found[:0])
	for _, commit := range g.found {
		seq, at, err := bx.given(g.w, commit, k)
		if err != nil {
			g.fail(err)
			return 0
		}
		if seq > known && (at > g.expired || g.find(b, seq) != nil) {
			known = seq
		}
	}
	return known
}

// isDead tells whether an item is a dead letter at this point of the group.
func (g *group) isDead(b store.Box, seq store.Seq) bool {
	for i := range g.letters {
		if l := &g.letters[i]; l.box == b && l.seq == seq && !l.left {
			return true
		}
	}
	if slices.Contains(g.exhumed, exhumed{b, seq}) {
		return false
	}
	found, err := g.w.one(hasDead, []any{int64(b), int64(seq)}, func(row) {})
	if err != nil {
		g.fail(err)
	}
	return found
}

// bury makes a dead letter of an item that is there.
func (g *group) bury(b store.Box, seq store.Seq, attempts int, reason string) error {
	it := g.find(b, seq)
	if it == nil {
		return store.ErrNotFound
	}
	l := letter{item: *it, box: b}
	it.gone = true
	if l.message == nil && l.reply == nil && l.body == nil {
		found, err := g.w.one(g.boxes[b].text.item, []any{int64(seq)}, l.fromRow)
		if err == nil && !found {
			err = fmt.Errorf("%w: item %d has no body", ErrDamaged, seq)
		}
		if err != nil {
			g.fail(err)
			return err
		}
	}
	l.attempts, l.reason = attempts, reason
	g.letters = append(g.letters, l)
	g.ends.add(end{box: b, seq: seq, how: endDead})
	return nil
}
