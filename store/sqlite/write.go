package sqlite

import (
	"fmt"
	"slices"

	"github.com/penstock-io/penstock/store"
)

// write brings the group's difference to the file.
func (g *group) write() error {
	g.arena = g.arena[:0]
	for b := range g.sides {
		for _, step := range []func(store.Box) error{
			g.writeGone, g.writeChanged, g.writeFresh,
		} {
			if err := step(store.Box(b)); err != nil {
				return err
			}
		}
	}
	return g.writeDead()
}

// writeGone removes what was there before and is not any more. Numbers without
// others between them go as one range.
func (g *group) writeGone(b store.Box) error {
	sd, bx := &g.sides[b], &g.boxes[b]
	g.seqs = g.seqs[:0]
	for i := range sd.touched {
		if sd.touched[i].gone {
			g.seqs = append(g.seqs, sd.touched[i].seq)
		}
	}
	slices.Sort(g.seqs)
	for rest := g.seqs; len(rest) > 0; {
		n := 1
		for n < len(rest) && bx.open.gap(rest[n-1], rest[n]) {
			n++
		}
		for _, text := range []string{bx.text.remove, bx.text.removeBody} {
			got, err := g.w.exec(text, int64(rest[0]), int64(rest[n-1]))
			if err != nil {
				return err
			}
			if got != int64(n) {
				return fmt.Errorf("%w: %d of the items %d to %d are there instead of %d",
					errChanged, got, rest[0], rest[n-1], n)
			}
		}
		rest = rest[n:]
	}
	return nil
}

func (g *group) writeChanged(b store.Box) error {
	sd, text := &g.sides[b], g.boxes[b].text
	for i := range sd.touched {
		it := &sd.touched[i]
		if it.gone || !it.changed {
			continue
		}
		changed := text.attempted
		args := []any{int64(it.seq), state(it.state), int64(it.attempts), it.at, it.reason}
		if it.timed {
			changed = text.changed
		} else {
			args = args[:3]
		}
		got, err := g.w.exec(changed, args...)
		if err != nil {
			return err
		}
		if got != 1 {
			return fmt.Errorf("%w: item %d is gone", errChanged, it.seq)
		}
	}
	return nil
}

// state is how the state of an item is kept.
func state(s store.State) int64 {
	if s == store.StateSending {
		return 1
	}
	return 0
}

func fromState(n int64) store.State {
	if n == 1 {
		return store.StateSending
	}
	return store.StatePending
}

// writeFresh inserts what is new and stays: first the narrow rows, then the bodies.
func (g *group) writeFresh(b store.Box) error {
	sd, text := &g.sides[b], g.boxes[b].text
	left, changed := 0, 0
	for i := range sd.fresh {
		if it := &sd.fresh[i]; !it.gone {
			left++
			if it.changed {
				changed++
			}
		}
	}
	err := g.batches(sd, left-changed, &text.insert, []any{g.now}, func(it *item) []any {
		if it.changed {
			return nil
		}
		return []any{int64(it.seq), string(it.key.in), string(it.conv)}
	})
	if err != nil {
		return err
	}
	for i := range sd.fresh {
		if it := &sd.fresh[i]; it.changed && !it.gone {
			_, err := g.w.exec(text.insertChanged, g.now, int64(it.seq), string(it.key.in),
				string(it.conv), state(it.state), int64(it.attempts), it.at, it.reason)
			if err != nil {
				return err
			}
		}
	}
	return g.batches(sd, left, &text.insertBody, nil, func(it *item) []any {
		return []any{int64(it.seq), g.bodyOf(it)}
	})
}

// batches inserts so many rows for the new items that stay and have one, in as few
// statements as the batch sizes allow.
func (g *group) batches(
	sd *side, rows int, texts *[len(batchRows)]string, common []any, row func(*item) []any,
) error {
	g.args = append(g.args[:0], common...)
	size, in := 0, 0
	for i := range sd.fresh {
		it := &sd.fresh[i]
		if it.gone {
			continue
		}
		args := row(it)
		if args == nil {
			continue
		}
		g.args = append(g.args, args...)
		for batchRows[size] > rows {
			size++
		}
		if in++; in < batchRows[size] {
			continue
		}
		if _, err := g.w.exec(texts[size], g.args...); err != nil {
			return err
		}
		rows -= in
		in = 0
		g.args = append(g.args[:0], common...)
	}
	clear(g.args)
	return nil
}

// bodyOf gives an item in the form in which it is kept.
func (g *group) bodyOf(it *item) []byte {
	from := len(g.arena)
	switch {
	case it.message != nil:
		g.arena = appendInbound(g.arena, it.message)
	case it.reply != nil:
		g.arena = appendOutbound(g.arena, it.reply)
	default:
		return it.body
	}
	return g.arena[from:]
}

func (g *group) writeDead() error {
	for _, x := range g.exhumed {
		if _, err := g.w.exec(removeDead, int64(x.box), int64(x.seq)); err != nil {
			return err
		}
	}
	for i := range g.letters {
		l := &g.letters[i]
		if l.left {
			continue
		}
		_, err := g.w.exec(insertDead, int64(l.box), int64(l.seq), string(l.key.in),
			string(l.conv), g.now, int64(l.attempts), l.reason, g.bodyOf(&l.item))
		if err != nil {
			return err
		}
	}
	return g.writeCommit()
}

// writeCommit notes what the next start of the program, a copy of a message or an
// operator may ask for.
func (g *group) writeCommit() error {
	if !g.named() {
		return nil
	}
	in, out, e := &g.sides[store.BoxInbox], &g.sides[store.BoxOutbox], &g.ends
	_, err := g.w.exec(insertCommit, g.commit, g.now, int64(in.last), int64(out.last),
		in.count(), out.count(),
		int64(e.low[store.BoxInbox]), int64(e.high[store.BoxInbox]),
		int64(e.low[store.BoxOutbox]), int64(e.high[store.BoxOutbox]),
		blob(in.log.b), blob(out.log.b), blob(e.b))
	return err
}

// blob is never null.
func blob(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}
