package memory

import (
	"hash/maphash"

	"github.com/penstock-io/penstock/message"
	"github.com/penstock-io/penstock/store"
)

// fingerprint stands for an id of an installation: two hashes under seeds that
// nobody can know. It has no pointers, so the collector skips it and it keeps no
// message alive. Two ids share one with a chance of 2^-128.
type fingerprint [2]uint64

// known is where the first copy of an id stands.
type known struct {
	seq  store.Seq
	dead bool
}

// remembered is an id in the order in which ids came.
type remembered struct {
	print fingerprint
	at    int64
}

// ids remembers the ids of items, while live says that the item is in the store
// and for the window. It is not safe for concurrent use.
type ids struct {
	max       int
	window    int64
	live      func(store.Seq) bool
	seeds     [2]maphash.Seed
	items     map[fingerprint]known
	order     series[remembered] // by number; only live items may be older
	forgotten uint64             // ids dropped inside the window, to keep to max
}

func newIDs(cfg Config, live func(store.Seq) bool) ids {
	return ids{
		max:    cfg.MaxIDs,
		window: int64(cfg.Window),
		live:   live,
		seeds:  [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()},
		items:  make(map[fingerprint]known),
	}
}

func (d *ids) print(in message.InstallationID, id message.ID) fingerprint {
	key := struct {
		message.InstallationID
		message.ID
	}{in, id}
	return fingerprint{
		maphash.Comparable(d.seeds[0], key),
		maphash.Comparable(d.seeds[1], key),
	}
}

// find gives the first copy of an id, unless it has been forgotten by now.
func (d *ids) find(p fingerprint, now int64) (known, bool) {
	k, ok := d.items[p]
	if !ok || d.live(k.seq) {
		return k, ok
	}
	r := d.order.get(k.seq)
	return k, r != nil && now-r.at < d.window
}

// add remembers the id of a new item. Each call clears up to two others, so what
// has expired shrinks while ids come.
func (d *ids) add(p fingerprint, k known, now int64) {
	for range 2 {
		seq, oldest := d.order.first()
		if oldest == nil {
			break
		}
		expired := now-oldest.at >= d.window
		if !expired && d.order.len < d.max {
			break
		}
		d.forget(seq, oldest.print, expired)
	}
	d.items[p] = k
	d.order.put(k.seq, remembered{p, now})
}

// forget takes the oldest id out of the order. That of a live item stays known
// until the item is settled.
func (d *ids) forget(seq store.Seq, p fingerprint, expired bool) {
	d.order.remove(seq)
	if d.live(seq) || d.items[p].seq != seq {
		return
	}
	delete(d.items, p)
	if !expired {
		d.forgotten++
	}
}

// settle notes that an item has left the store.
func (d *ids) settle(p fingerprint, k known) {
	switch {
	case d.items[p].seq != k.seq:
	case d.order.get(k.seq) == nil:
		delete(d.items, p)
	case k.dead:
		d.items[p] = k
	}
}

// exhume notes that a dead letter was purged.
func (d *ids) exhume(p fingerprint, seq store.Seq) {
	if k, ok := d.items[p]; ok && k.seq == seq {
		d.items[p] = known{seq: seq}
	}
}
