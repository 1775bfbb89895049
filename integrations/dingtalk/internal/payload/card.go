package payload

import (
	"strings"

	"github.com/penstock-io/penstock/internal/jsonscan"
)

// Bounds of the walk through a card. Each level reads its part of the card again,
// so depth times size is what a hostile card can cost.
const (
	maxCardDepth = 16
	maxCardSize  = 256 << 10
	maxCardRuns  = 512
)

// cardWalk collects the text that a card shows, in the order it stands in.
type cardWalk struct {
	text strings.Builder
	runs int
	lead int // the length of the first run
}

// readCard takes the text out of a tree of elements. A card past the bounds gives
// what is inside them.
func (b *body) readCard(card jsonscan.Value) {
	if len(card.Raw()) > maxCardSize {
		return
	}
	var w cardWalk
	w.walk(card, -1, maxCardDepth)
	b.text, b.lead = w.text.String(), w.lead
}

// walk reads a value. line is where in the text the line begins that all runs
// inside go on with, or -1 if each run is a line of its own.
func (w *cardWalk) walk(v jsonscan.Value, line, depth int) {
	if depth == 0 {
		return
	}
	for e := v.Elements(); e.Next(); {
		w.walk(e.Value(), line, depth-1)
	}
	for m := v.Members(); m.Next(); {
		key, val := m.Key(), m.Value()
		if key == "elementType" && strings.EqualFold(val.Text(), "richText") {
			line = w.text.Len()
		}
		if key == "cardContent" || key == "content" {
			val = open(val)
		}
		if val.Kind() != jsonscan.String {
			w.walk(val, line, depth-1)
		} else if shown(key) {
			w.add(val.Text(), line)
		}
	}
}

// shown tells whether a member of a card's element is text for people.
func shown(key string) bool {
	switch key {
	case "title", "value", "text", "content", "markdown":
		return true
	default:
		return false
	}
}

func (w *cardWalk) add(run string, line int) {
	if run == "" || w.runs == maxCardRuns {
		return
	}
	if n := w.text.Len(); n > 0 && (line < 0 || n == line) {
		w.text.WriteByte('\n')
	}
	w.text.WriteString(run)
	if w.runs++; w.runs == 1 {
		w.lead = len(run)
	}
}
