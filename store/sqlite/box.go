package sqlite

import (
	"errors"

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

// forget drops what is kept of the numbers, to be read again.
func (bx *box) forget(c *conn) {
	bx.open = numbers{stored: bx.last, load: func(first store.Seq, put func(store.Seq)) error {
		return c.query(bx.text.numbers, []any{int64(first), int64(first + pageLen - 1)},
			func(r row) error { put(store.Seq(r.int(0))); return nil })
	}}
}

// take brings a committed group into the box.
func (bx *box) take(sd *side, commit int64) {
	for i := range sd.fresh {
		it := &sd.fresh[i]
		if it.key.id != "" {
			bx.ids.add(bx.ids.hash(it.key), commit)
		}
		if !it.gone {
			bx.open.put(it.seq)
		}
	}
	for i := range sd.touched {
		if it := &sd.touched[i]; it.gone { // after the others: an empty page goes
			bx.open.drop(it.seq)
		}
	}
	bx.last, bx.count = sd.last, sd.count()
	bx.done += sd.done
}

// given tells which number an id got in a commit, 0 for none, and when.
func (bx *box) given(c *conn, commit int64, k idKey) (seq store.Seq, at int64, err error) {
	var bad error
	_, err = c.one(bx.text.ids, []any{commit}, func(r row) {
		at = r.int(0)
		bad = readIDs(r.bytes(1), func(n store.Seq, other idKey) {
			if other == k {
				seq = n
			}
		})
	})
	return seq, at, errors.Join(err, bad)
}
