package sqlite

import (
	"fmt"

	"github.com/penstock-io/penstock/message"
	"github.com/penstock-io/penstock/store"
)

// logVersion is the first byte of what a commit's row tells of ids and ends, unless
// that is empty.
const logVersion = 1

// idLog collects the ids that a commit gave numbers, for its row. Rows come in the
// order of commits, so writing one touches the end of the table only, where a
// table ordered by ids would have each of them touch a page of its own.
type idLog struct {
	codec
	last message.InstallationID
	n    int
}

func (l *idLog) reset() { *l = idLog{codec: codec{b: l.b[:0]}} }

// add notes an id. An installation that is the same as before is left out.
func (l *idLog) add(seq store.Seq, k idKey) {
	if l.n == 0 {
		l.b = append(l.b, logVersion)
	}
	in := k.in
	again := l.n > 0 && in == l.last
	l.bool(&again)
	if !again {
		str(&l.codec, &in)
	}
	integer(&l.codec, &seq)
	str(&l.codec, &k.id)
	l.last = in
	l.n++
}

// readIDs gives the ids of a row. The keys share one copy of the row.
func readIDs(row []byte, each func(store.Seq, idKey)) error {
	c, err := openLog(row)
	if err != nil {
		return err
	}
	var k idKey
	for len(c.text) > 0 {
		var again bool
		var seq store.Seq
		if c.bool(&again); !again {
			str(&c, &k.in)
		}
		integer(&c, &seq)
		str(&c, &k.id)
		if c.bad {
			return fmt.Errorf("%w: log of ids cannot be read", ErrDamaged)
		}
		each(seq, k)
	}
	return nil
}

func openLog(row []byte) (codec, error) {
	if len(row) == 0 {
		return codec{}, nil
	}
	if row[0] != logVersion {
		return codec{}, fmt.Errorf("%w: log in an unknown form", ErrDamaged)
	}
	return codec{reading: true, text: string(row[1:])}, nil
}

// end is how an item ended.
type end struct {
	box     store.Box // BoxInbox or BoxOutbox
	seq     store.Seq
	how     endKind
	replies []store.Seq     // of a message; of a requeued item its new number
	receipt message.Receipt // of a reply
}

// endKind tells what became of an item that is not there any more.
type endKind int

const (
	endDone endKind = iota // handled or sent
	endDead
	endPurged
	endUnrouted // done, and handled by nobody
	endRequeued // it was dead, and has a new number
)

func (e *end) code(c *codec) {
	integer(c, &e.box)
	integer(c, &e.seq)
	integer(c, &e.how)
	list(c, &e.replies, integer)
	if e.box == store.BoxOutbox && e.how == endDone {
		str(c, &e.receipt.ID)
		str(c, &e.receipt.Route)
		str(c, &e.receipt.Warning)
	}
}

// endLog collects how items ended in a commit, for its row.
type endLog struct {
	codec
	low, high [2]store.Seq // by box, 0 for none
	n         int
}

func (l *endLog) reset() { *l = endLog{codec: codec{b: l.b[:0]}} }

func (l *endLog) add(e end) {
	if l.n == 0 {
		l.b = append(l.b, logVersion)
	}
	e.code(&l.codec)
	if l.n++; l.low[e.box] == 0 || e.seq < l.low[e.box] {
		l.low[e.box] = e.seq
	}
	l.high[e.box] = max(l.high[e.box], e.seq)
}

// readEnds gives the ends of a row until each says no.
func readEnds(row []byte, each func(end) bool) error {
	c, err := openLog(row)
	if err != nil {
		return err
	}
	for len(c.text) > 0 {
		var e end
		if e.code(&c); c.bad || e.box > store.BoxOutbox {
			return fmt.Errorf("%w: log of ends cannot be read", ErrDamaged)
		}
		if !each(e) {
			return nil
		}
	}
	return nil
}
