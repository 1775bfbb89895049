package jsonscan

import (
	"errors"
	"unsafe"
)

// MaxDepth is how deep a document may be nested: as deep as encoding/json reads.
const MaxDepth = 10_000

// What can be wrong with a document.
var (
	ErrSyntax    = errors.New("malformed JSON")
	ErrTooDeep   = errors.New("JSON nested too deep")
	ErrNotObject = errors.New("not a JSON object")
	ErrNotArray  = errors.New("not a JSON array")
)

// View gives b as a string without copying it. The string, and everything cut
// from it, is good only as long as nobody changes b.
func View(b []byte) string {
	// The same bytes under another type; the caller keeps them from changing.
	return unsafe.String(unsafe.SliceData(b), len(b))
}

// Parse checks a whole document and gives its value.
func Parse(doc string) (Value, error) {
	i := skipSpace(doc, 0)
	v, end, err := scanValue(doc, i, MaxDepth)
	if err != nil {
		return Value{}, err
	}
	if skipSpace(doc, end) != len(doc) {
		return Value{}, ErrSyntax
	}
	return v, nil
}

// Members walks the members of an object in the order they stand in. A key may
// come more than once; encoding/json lets the last one win.
//
//	for m := jsonscan.ReadObject(doc); m.Next(); {
//		switch m.Key() {
//		case "id":
//			id = m.Value().Text()
//		}
//	}
type Members struct {
	doc  string
	pos  int  // the start of the value while it is pending, else behind it
	more bool // a member has been read, so the next one needs a comma
	done bool
	// pending is set until the value of the current member has been read.
	pending bool
	err     error
	key     Value
	val     Value
}

// ReadObject walks a document that is one object. Each value is checked as it is
// passed, whether it is asked for or not; Err is nil after the walk if the whole
// document is well formed.
func ReadObject(doc string) Members {
	i := skipSpace(doc, 0)
	if i < len(doc) && doc[i] == '{' {
		return Members{doc: doc, pos: i + 1}
	}
	_, err := Parse(doc)
	if err == nil {
		err = ErrNotObject
	}
	return Members{err: err, done: true}
}

// Next goes to the next member. It is false at the end and at a mistake.
func (m *Members) Next() bool {
	if m.pending {
		m.read()
	}
	if m.done {
		return false
	}
	i, end := nextItem(m.doc, m.pos, '}', m.more)
	if end {
		return m.stop(closed(m.doc, i))
	}
	if i < 0 {
		return m.stop(ErrSyntax)
	}
	var ok bool
	m.key, m.pos, ok = scanKey(m.doc, i)
	if !ok {
		return m.stop(ErrSyntax)
	}
	m.more, m.pending = true, true
	return true
}

// Key gives the member's name.
func (m *Members) Key() string { return m.key.Text() }

// Value reads the member's value. It is the missing value if it is malformed; the
// walk ends there.
func (m *Members) Value() Value {
	if m.pending {
		m.read()
	}
	return m.val
}

// End tells where in the document the member's value ends, which is where it
// starts plus the length of its Raw. It reads the value.
func (m *Members) End() int {
	if m.pending {
		m.read()
	}
	return m.pos
}

// AppendText appends the text of the member's value, as [Value.AppendText] does,
// and reads a string only once for it. Call it instead of Value, not after it.
// For a malformed value it appends anything.
func (m *Members) AppendText(dst []byte) []byte {
	if !m.pending || m.pos >= len(m.doc) || m.doc[m.pos] != '"' {
		return m.Value().AppendText(dst)
	}
	dst, end, ok := appendScanned(dst, m.doc, m.pos)
	m.pending, m.val = false, Value{}
	if !ok {
		m.stop(ErrSyntax)
		return dst
	}
	m.val, m.pos = Value{raw: m.doc[m.pos:end], kind: String}, end
	return dst
}

// Err tells what ended the walk early: [ErrSyntax], [ErrTooDeep], [ErrNotObject],
// or nil.
func (m *Members) Err() error { return m.err }

func (m *Members) read() {
	var err error
	m.pending = false
	m.val, m.pos, err = scanValue(m.doc, m.pos, MaxDepth-1)
	if err != nil {
		m.stop(err)
	}
}

func (m *Members) stop(err error) bool {
	m.done, m.err = true, err
	return false
}

// Elements walks the elements of an array in order.
type Elements struct {
	doc  string
	pos  int
	more bool // an element has been read, so the next one needs a comma
	done bool
	err  error
	val  Value
}

// ReadArray walks a document that is one array, as ReadObject does an object.
func ReadArray(doc string) Elements {
	i := skipSpace(doc, 0)
	if i < len(doc) && doc[i] == '[' {
		return Elements{doc: doc, pos: i + 1}
	}
	_, err := Parse(doc)
	if err == nil {
		err = ErrNotArray
	}
	return Elements{err: err, done: true}
}

// Next goes to the next element. It is false at the end and at a mistake.
func (e *Elements) Next() bool {
	if e.done {
		return false
	}
	i, end := nextItem(e.doc, e.pos, ']', e.more)
	if end {
		return e.stop(closed(e.doc, i))
	}
	if i < 0 {
		return e.stop(ErrSyntax)
	}
	val, i, err := scanValue(e.doc, i, MaxDepth-1)
	if err != nil {
		return e.stop(err)
	}
	e.val, e.pos, e.more = val, i, true
	return true
}

// Value gives the element.
func (e *Elements) Value() Value { return e.val }

// Err tells what ended the walk early: [ErrSyntax], [ErrTooDeep], [ErrNotArray],
// or nil.
func (e *Elements) Err() error { return e.err }

func (e *Elements) stop(err error) bool {
	e.done, e.err = true, err
	return false
}

// nextItem finds the start of the next member or element, or the end of the
// container: then i is after the bracket. i is -1 if there is neither.
func nextItem(doc string, i int, bracket byte, comma bool) (next int, end bool) {
	i = skipSpace(doc, i)
	if i >= len(doc) {
		return -1, false
	}
	if doc[i] == bracket {
		return i + 1, true
	}
	if !comma {
		return i, false
	}
	if doc[i] != ',' {
		return -1, false
	}
	return skipSpace(doc, i+1), false
}

// closed tells whether nothing but space follows the end of a document.
func closed(doc string, i int) error {
	if skipSpace(doc, i) != len(doc) {
		return ErrSyntax
	}
	return nil
}
