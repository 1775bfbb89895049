package openapi

import (
	"strings"
	"unicode/utf8"
)

// block is what a cut is first tried around: a line, or a whole code fence.
type block struct {
	start, end int
	// blank tells a line without anything to see.
	blank bool
	// fence is the line that opens a fence, empty for a line; marker is its run of
	// backticks or tildes, and indent what stands before it. body and shut are
	// where its content begins and ends.
	fence, marker, indent string
	body, shut            int
}

// fenceMax bounds the encoded line that is taken for a fence's: it is repeated in
// each part, so a long one would leave no room.
const fenceMax = 120

// blocks cuts text into lines and, in markdown, fences. Together they are the
// whole text. A fence that is never closed ends with the text.
func blocks(text string, markdown bool) []block {
	var list []block
	open := -1 // which block is a fence that is still open
	for pos := 0; pos < len(text); {
		end := lineEnd(text, pos)
		line := text[pos:end]
		marker, info := fenceLine(line)
		switch {
		case open >= 0:
			f := &list[open]
			f.end, f.shut = end, end
			if info == "" && strings.HasPrefix(marker, f.marker) {
				f.shut = pos
				open = -1
			}
		case markdown && marker != "":
			indent, _, _ := strings.Cut(line, marker)
			list = append(list, block{
				start: pos, end: end, body: end, shut: end,
				fence: trimEnd(line), marker: marker, indent: indent,
			})
			open = len(list) - 1
		default:
			list = append(list, block{
				start: pos, end: end, blank: strings.TrimSpace(line) == "",
			})
		}
		pos = end
	}
	return list
}

// lineEnd is where the line at pos ends, after its newline.
func lineEnd(text string, pos int) int {
	if i := strings.IndexByte(text[pos:], '\n'); i >= 0 {
		return pos + i + 1
	}
	return len(text)
}

// fenceLine reads a line that opens or closes a fence: a run of at least three
// backticks or tildes, at any depth since lists hold fences too, and the info
// string of an opening.
func fenceLine(line string) (marker, info string) {
	rest := strings.TrimSpace(line)
	if rest == "" || rest[0] != '`' && rest[0] != '~' || costOf(trimEnd(line)) > fenceMax {
		return "", ""
	}
	info = strings.TrimLeft(rest, rest[:1])
	marker = rest[:len(rest)-len(info)]
	if len(marker) < 3 || marker[0] == '`' && strings.Contains(info, "`") {
		return "", ""
	}
	return marker, strings.TrimSpace(info)
}

// cut finds where to end a piece that begins at pos inside the fence and has
// room for n bytes: after the last whole line, if there is one with content, else
// inside a line. If it can, it leaves content for the next piece to show.
func (b *block) cut(text string, pos, n int) int {
	least := max(b.body-pos, 0) // an opening line alone shows nothing
	content := trimEnd(text[:b.shut])
	_, size := utf8.DecodeLastRuneInString(content)
	if last := len(content) - size; last > pos+least {
		n = min(n, last-pos)
	}
	if i := strings.LastIndexByte(text[pos:pos+n], '\n'); i > least {
		return i
	}
	return runeCut(text[pos:], n)
}
