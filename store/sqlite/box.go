package sqlite

import (
	"context"

	"github.com/penstock-io/penstock/store"
)

// box is what is known in memory of the inbox or the outbox. Readers look at it
// under Store.mu; who changes it holds Store.write too.
type box struct {
	text  *texts
	open  numbers // owned by the holder of Store.write
	ids   index
	last  store.Seq
	count int64 // items
	dead  int64
	done  int64 // since the store was opened
}

// read fills the box from the file. Ids are added as they were given, so of two
// with the same id the later one is found.
func (bx *box) read(ctx context.Context, c *conn, b store.Box) (err error) {
	bx.ids, bx.last = newIndex(), 0
	err = c.query(bx.text.logs, nil, func(r row) error {
		bx.last = store.Seq(r.int(0))
		if err := ctx.Err(); err != nil {
			return err
		}
		return readIDs(r.bytes(1), func(seq store.Seq, k idKey) { bx.ids.add(bx.ids.hash(k), seq) })
	})
	if err != nil {
		return err
	}
	bx.forget(c)
	if bx.count, err = c.number(bx.text.count); err != nil {
		return err
	}
	bx.dead, err = c.number(countDead, int64(b))
	return err
}

// forget drops what is kept of the numbers, to be read again.
func (bx *box) forget(c *conn) {
	bx.open = numbers{stored: bx.last, load: func(first store.Seq, put func(store.Seq)) error {
		return c.query(bx.text.numbers, []any{int64(first), int64(first + pageLen - 1)},
			func(r row) error { put(store.Seq(r.int(0))); return nil })
	}}
}

// take brings a committed group into the box.
func (bx *box) take(sd *side) {
	for i := range sd.fresh {
		it := &sd.fresh[i]
		if it.key.id != "" {
			bx.ids.add(bx.ids.hash(it.key), it.seq)
		}
		if !it.gone {
			bx.open.put(it.seq)
			bx.count++
		}
	}
	for i := range sd.touched {
		if it := &sd.touched[i]; it.gone { // after the others: an empty page goes
			bx.open.drop(it.seq)
			bx.count--
		}
	}
	bx.last = sd.last
	bx.done += sd.done
}
