package openapi

import (
	"fmt"
	"strings"

	"github.com/penstock-io/penstock/message"
)

// Split cuts a reply into parts that DingTalk takes, in order, whichever route
// each takes later: encoded, neither its webhook body nor its msgParam is longer
// than Config.MaxBody. A reply that fits comes back alone and unchanged but for
// Part, Parts and Group. It does not block and keeps nothing.
//
// Cuts are made at the border of a paragraph, a line, a sentence, a word or at
// least a visible character, and cost only white space. In markdown a code fence
// stays whole if it fits into one part; one that does not is closed at the cut
// and opened again in the next part. Only the first part mentions people, and all
// parts bear the title of the first.
func (s *Sender) Split(o message.Outbound) []message.Outbound {
	if o.Group == "" {
		o.Group = o.ID
	}
	o.Part, o.Parts = 1, 1
	if o.Format == message.FormatCard || o.Format == message.FormatVendor || s.fits(&o) {
		return []message.Outbound{o}
	}
	if o.Format == message.FormatMarkdown {
		o.Title = titleOf(&o)
	}
	return number(o, s.pieces(&o))
}

// fits tells whether a reply can go in one, on both routes.
func (s *Sender) fits(o *message.Outbound) bool {
	_, param := msgParam(o)
	return len(param) <= s.cfg.MaxBody && len(s.webhookBody(o)) <= s.cfg.MaxBody
}

// room is how many encoded bytes of text o has room for.
func (s *Sender) room(o message.Outbound) int {
	o.Title, o.Text = titleOf(&o), ""
	_, param := msgParam(&o)
	return s.cfg.MaxBody - max(len(param), len(s.webhookBody(&o)))
}

func (s *Sender) pieces(o *message.Outbound) []piece {
	rest := *o
	rest.Mentions, rest.MentionAll = nil, false
	p := packer{text: o.Text, first: s.room(*o), other: s.room(rest)}
	for _, b := range blocks(o.Text, o.Format == message.FormatMarkdown) {
		p.add(b)
	}
	p.flush()
	return p.out
}

// number makes parts of pieces. Their ids follow from the group's, so that the
// same reply always has the same parts.
func number(o message.Outbound, pieces []piece) []message.Outbound {
	if len(pieces) == 0 { // nothing but white space
		o.Text = ""
		return []message.Outbound{o}
	}
	parts := make([]message.Outbound, len(pieces))
	for i, p := range pieces {
		parts[i] = o
		parts[i].ID = message.ID(fmt.Sprintf("%s-%d", o.Group, i+1))
		parts[i].Text = p.before + p.body + p.after
		parts[i].Part, parts[i].Parts = i+1, len(pieces)
		if i > 0 {
			parts[i].Mentions, parts[i].MentionAll = nil, false
		}
	}
	return parts
}

// piece is the text of one part: a stretch of the reply, between the fence that
// is opened again for it and the one that is closed for it.
type piece struct{ before, body, after string }

// packer lays blocks into pieces, as full as the borders allow. It is owned by
// one call of Split.
type packer struct {
	text         string
	first, other int // encoded bytes that the first piece and others have
	out          []piece

	// The piece in the making: text[start:end], used encoded bytes with before.
	before     string
	start, end int
	used       int
	// para is where the last paragraph in it begins, 0 if it is the first, and
	// paraUsed is used up to there.
	para, paraUsed int
}

func (p *packer) room() int {
	if len(p.out) == 0 {
		return p.first
	}
	return p.other
}

// add lays down the next block.
func (p *packer) add(b block) {
	full := costOf(p.text[b.start:b.end])
	// White space at the end of a piece is cut, so it needs no room.
	bare := costOf(trimEnd(p.text[b.start:b.end]))
	if p.used+bare > p.room() {
		p.breakAtPara()
	}
	if p.used+bare > p.room() {
		p.flush()
	}
	switch {
	case p.used+bare <= p.room():
		p.extend(b, full)
	case b.fence != "":
		p.cutFence(b)
	default:
		p.cutLine(b.start, b.end)
	}
}

// extend takes a block that fits into the piece in the making.
func (p *packer) extend(b block, full int) {
	if p.start == p.end {
		p.start = b.start
	}
	p.end = b.end
	p.used += full
	if b.blank {
		p.para, p.paraUsed = p.end, p.used
	}
}

// breakAtPara ends the piece in the making before its last paragraph, if that
// leaves it at least half full. A piece that continues a fence stays.
func (p *packer) breakAtPara() {
	if p.para == 0 || p.para >= p.end || p.paraUsed < p.room()/2 {
		return
	}
	end, used := p.end, p.used-p.paraUsed
	start := p.para
	p.end = p.para
	p.flush()
	p.start, p.end, p.used = start, end, used
}

// flush ends the piece in the making.
func (p *packer) flush() {
	p.emit(p.before, p.text[p.start:p.end], "")
	p.before, p.start, p.end, p.used, p.para, p.paraUsed = "", 0, 0, 0, 0, 0
}

// emit adds a piece, unless it has nothing but white space.
func (p *packer) emit(before, body, after string) {
	if before == "" {
		body = trimBlankLines(body)
	}
	if body = trimEnd(body); strings.TrimSpace(body) != "" {
		p.out = append(p.out, piece{before, body, after})
	}
}

// cutLine cuts text[pos:end], a line too long for a piece of its own. Its tail
// begins the next piece.
func (p *packer) cutLine(pos, end int) {
	for {
		pos += len(p.text[pos:end]) - len(trimStart(p.text[pos:end]))
		tail := p.text[pos:end]
		if within(trimEnd(tail), p.room()) {
			p.start, p.end, p.used = pos, end, costOf(tail)
			return
		}
		n := cutAt(tail, fit(tail, p.room()))
		p.emit("", tail[:n], "")
		pos += n
	}
}

// cutFence cuts a fence that is too long for a piece of its own, at lines if it
// can. Each piece but the last gets a closing line, each but the first an opening
// one. Its tail begins the next piece.
func (p *packer) cutFence(b block) {
	before, after := "", "\n"+b.indent+b.marker
	pos := b.start
	for {
		room := p.room() - costOf(before)
		tail := p.text[pos:b.end]
		if within(trimEnd(tail), room) {
			p.before, p.start, p.end = before, pos, b.end
			p.used = costOf(before) + costOf(tail)
			return
		}
		n := b.cut(p.text, pos, fit(tail, room-costOf(after)))
		p.emit(before, tail[:n], after)
		pos += n
		if pos < b.end && p.text[pos] == '\n' {
			pos++
		}
		before = b.fence + "\n"
	}
}
