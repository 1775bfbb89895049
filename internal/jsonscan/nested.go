package jsonscan

// nesting is the stack of open brackets, a bit each: 1 is an object. The 64
// innermost levels stand in word, the others in spill.
type nesting struct {
	word  uint64
	depth int
	spill []uint64
}

func (n *nesting) push(object bool) {
	if n.depth > 0 && n.depth%64 == 0 {
		n.spill = append(n.spill, n.word)
	}
	n.word <<= 1
	if object {
		n.word |= 1
	}
	n.depth++
}

func (n *nesting) pop() {
	n.depth--
	n.word >>= 1
	if n.depth > 0 && n.depth%64 == 0 {
		last := len(n.spill) - 1
		n.word, n.spill = n.spill[last], n.spill[:last]
	}
}

func (n *nesting) inObject() bool { return n.word&1 == 1 }

// bracket is what closes the innermost level.
func (n *nesting) bracket() byte {
	if n.inObject() {
		return '}'
	}
	return ']'
}

// scanNested reads the object or array that starts at s[i], flat: the nesting is
// kept as bits, so depth costs no stack. It may be limit levels deep.
func scanNested(s string, i, limit int) (end int, err error) {
	var open nesting
	comma := false
	for {
		if !comma && i < len(s) && (s[i] == '{' || s[i] == '[') {
			if open.depth >= limit {
				return i, ErrTooDeep
			}
			open.push(s[i] == '{')
			i++
		}
		i, comma, err = scanItem(s, i, &open, comma)
		if err != nil || open.depth == 0 {
			return i, err
		}
	}
}

// scanItem goes on inside the innermost level by one step: past its closing
// bracket, past a scalar, or up to the bracket that opens the next level. comma
// tells, both ways, that an item came before, so that a comma is due.
func scanItem(s string, i int, open *nesting, comma bool) (next int, due bool, err error) {
	i, closes := nextItem(s, i, open.bracket(), comma)
	if closes {
		open.pop()
		return i, true, nil
	}
	if i < 0 {
		return 0, false, ErrSyntax
	}
	if open.inObject() {
		var ok bool
		if _, i, ok = scanKey(s, i); !ok {
			return i, false, ErrSyntax
		}
	}
	if i < len(s) && (s[i] == '{' || s[i] == '[') {
		return i, false, nil
	}
	_, i, ok := scanScalar(s, i)
	if !ok {
		return i, false, ErrSyntax
	}
	return i, true, nil
}
