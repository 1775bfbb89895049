package sqlite

import (
	"hash/maphash"

	"github.com/penstock-io/penstock/message"
	"github.com/penstock-io/penstock/store"
)

const (
	indexParts = 256
	tagBits    = 24
	seqBits    = 64 - tagBits
	seqMask    = 1<<seqBits - 1
)

// index finds the numbers that ids were given, in about 14 bytes an id. It holds
// 32 bits of a hash and the low bits of the number, so it gives candidates: the
// log tells whether one of them is the id. The hash is seeded anew in each
// process, so nobody can choose ids that collide.
//
// It is cut in parts that grow on their own, so that no growth takes long. It is
// not safe for concurrent use.
type index struct {
	seed  maphash.Seed
	parts [indexParts]indexPart
	len   int
}

// indexPart is a hash table with open addressing. A slot is a tag above the low
// bits of a number; 0 is free, which numbers from 1 leave it to be.
type indexPart struct {
	slots []uint64 // as many as a power of two
	len   int
}

// idKey is an id with its installation.
type idKey struct {
	in message.InstallationID
	id message.ID
}

func newIndex() index { return index{seed: maphash.MakeSeed()} }

func (x *index) hash(k idKey) uint64 { return maphash.Comparable(x.seed, k) }

func (x *index) part(hash uint64) (*indexPart, uint64) {
	return &x.parts[hash>>56], hash >> 32 & (1<<tagBits - 1)
}

// add notes that an id got a number.
func (x *index) add(hash uint64, seq store.Seq) {
	p, tag := x.part(hash)
	if p.len >= len(p.slots)/4*3 {
		p.grow()
	}
	p.insert(tag<<seqBits | uint64(seq)&seqMask)
	x.len++
}

// candidates appends the numbers that an id may have got, the highest possible
// ones that are not above last.
func (x *index) candidates(hash uint64, last store.Seq, to []store.Seq) []store.Seq {
	p, tag := x.part(hash)
	if len(p.slots) == 0 {
		return to
	}
	mask := uint64(len(p.slots) - 1)
	for i := tag & mask; p.slots[i] != 0; i = (i + 1) & mask {
		if p.slots[i]>>seqBits == tag {
			low := store.Seq(p.slots[i] & seqMask)
			to = append(to, last-(last-low)&seqMask)
		}
	}
	return to
}

// remove forgets that an id got a number.
func (x *index) remove(hash uint64, seq store.Seq) {
	p, tag := x.part(hash)
	if p.remove(tag<<seqBits | uint64(seq)&seqMask) {
		x.len--
	}
}

func (p *indexPart) insert(slot uint64) {
	mask := uint64(len(p.slots) - 1)
	i := slot >> seqBits & mask
	for p.slots[i] != 0 {
		i = (i + 1) & mask
	}
	p.slots[i] = slot
	p.len++
}

func (p *indexPart) grow() {
	old := p.slots
	p.slots, p.len = make([]uint64, max(8, 2*len(old))), 0
	for _, slot := range old {
		if slot != 0 {
			p.insert(slot)
		}
	}
}

// remove takes a slot out and moves later ones of its run back, so that no probe
// stops too early.
func (p *indexPart) remove(slot uint64) bool {
	if len(p.slots) == 0 {
		return false
	}
	mask := uint64(len(p.slots) - 1)
	i := slot >> seqBits & mask
	for p.slots[i] != slot {
		if p.slots[i] == 0 {
			return false
		}
		i = (i + 1) & mask
	}
	for j := (i + 1) & mask; p.slots[j] != 0; j = (j + 1) & mask {
		home := p.slots[j] >> seqBits & mask
		if (j-home)&mask >= (j-i)&mask {
			p.slots[i] = p.slots[j]
			i = j
		}
	}
	p.slots[i] = 0
	p.len--
	p.shrink()
	return true
}

// shrink gives memory back when most slots are free.
func (p *indexPart) shrink() {
	if len(p.slots) > 64 && p.len < len(p.slots)/8 {
		old := p.slots
		p.slots, p.len = make([]uint64, len(old)/4), 0
		for _, slot := range old {
			if slot != 0 {
				p.insert(slot)
			}
		}
	}
}
