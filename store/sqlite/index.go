package sqlite

import (
	"hash/maphash"

	"github.com/penstock-io/penstock/message"
)

const (
	indexParts = 256
	tagBits    = 24
	commitBits = 64 - tagBits
	commitMask = 1<<commitBits - 1
)

// index finds the commits in which ids were given numbers, in about 14 bytes an id.
// It holds 32 bits of a hash and the low bits of the commit's number, so it gives
// candidates: the commit's row tells whether it has the id. The hash is seeded anew
// in each process, so nobody can choose ids that collide.
//
// It is cut in parts that grow on their own, so that no growth takes long. It is
// not safe for concurrent use.
type index struct {
	seed  maphash.Seed
	parts [indexParts]indexPart
	len   int
}

// indexPart is a hash table with open addressing. A slot is a tag, which is not 0,
// above the low bits of a commit's number; a free one is 0.
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

// part gives the part for a hash, and what a slot for it has at its top.
func (x *index) part(hash uint64) (p *indexPart, tag uint64) {
	return &x.parts[hash>>56], max(1, hash>>32&(1<<tagBits-1)) << commitBits
}

// add notes that an id got a number in a commit.
func (x *index) add(hash uint64, commit int64) {
	p, tag := x.part(hash)
	if p.len >= len(p.slots)/4*3 {
		p.resize(max(8, 2*len(p.slots)))
	}
	p.insert(tag | uint64(commit)&commitMask)
	x.len++
}

// candidates appends the commits in which an id may have got a number: the highest
// ones that it can be, none above last.
func (x *index) candidates(hash uint64, last int64, to []int64) []int64 {
	p, tag := x.part(hash)
	if len(p.slots) == 0 {
		return to
	}
	for i := p.home(tag); p.slots[i] != 0; i = p.next(i) {
		if p.slots[i]&^commitMask == tag {
			low := int64(p.slots[i] & commitMask)
			to = append(to, last-(last-low)&commitMask)
		}
	}
	return to
}

// remove forgets that an id got a number in a commit.
func (x *index) remove(hash uint64, commit int64) {
	p, tag := x.part(hash)
	if len(p.slots) == 0 || !p.remove(tag|uint64(commit)&commitMask) {
		return
	}
	x.len--
	if len(p.slots) > 64 && p.len < len(p.slots)/8 {
		p.resize(len(p.slots) / 4)
	}
}

// home is where the search for a slot begins.
func (p *indexPart) home(slot uint64) uint64 {
	return slot >> commitBits & (uint64(len(p.slots)) - 1)
}

func (p *indexPart) next(i uint64) uint64 { return (i + 1) & (uint64(len(p.slots)) - 1) }

func (p *indexPart) insert(slot uint64) {
	i := p.home(slot)
	for p.slots[i] != 0 {
		i = p.next(i)
	}
	p.slots[i] = slot
	p.len++
}

func (p *indexPart) resize(size int) {
	old := p.slots
	p.slots, p.len = make([]uint64, size), 0
	for _, slot := range old {
		if slot != 0 {
			p.insert(slot)
		}
	}
}

// remove takes a slot out and moves later ones of its run back, so that no search
// ends too early.
func (p *indexPart) remove(slot uint64) bool {
	i := p.home(slot)
	for p.slots[i] != slot {
		if p.slots[i] == 0 {
			return false
		}
		i = p.next(i)
	}
	mask := uint64(len(p.slots)) - 1
	for j := p.next(i); p.slots[j] != 0; j = p.next(j) {
		if (j-p.home(p.slots[j]))&mask >= (j-i)&mask { // its search passes i
			p.slots[i] = p.slots[j]
			i = j
		}
	}
	p.slots[i] = 0
	p.len--
	return true
}
