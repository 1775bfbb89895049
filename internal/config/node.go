package config

import (
	"slices"
	"strings"
	"unicode"

	"github.com/goccy/go-yaml/ast"
)

// line is where a node begins, 0 if it does not know.
func line(n ast.Node) int {
	if m, ok := n.(*ast.MappingNode); ok && len(m.Values) > 0 {
		return line(m.Values[0].Key)
	}
	if t := n.GetToken(); t != nil && t.Position != nil {
		return t.Position.Line
	}
	return 0
}

// describe names the kind of a node for a person.
func describe(n ast.Node) string {
	switch n.Type() {
	case ast.MappingType, ast.MappingValueType:
		return "a mapping"
	case ast.SequenceType:
		return "a list"
	case ast.BoolType:
		return "true or false"
	case ast.IntegerType, ast.FloatType:
		return "a number"
	case ast.NullType:
		return "empty"
	default:
		return "text"
	}
}

// knownTags change nothing: every value is read as its field demands.
var knownTags = []string{"!!str", "!!int", "!!float", "!!bool", "!!null", "!!map", "!!seq"}

// resolve follows anchors, aliases and tags.
func (d *decoder) resolve(n ast.Node, key string) ast.Node {
	for range maxDepth {
		switch x := n.(type) {
		case *ast.AnchorNode:
			d.anchors[x.Name.String()] = x.Value
			n = x.Value
		case *ast.AliasNode:
			target, ok := d.anchors[x.Value.String()]
			if !ok {
				d.problem(n, key, "alias *%s has no anchor before it", printable(x.Value.String()))
				return nil
			}
			n = target
		case *ast.TagNode:
			if !slices.Contains(knownTags, x.Start.Value) {
				d.problem(n, key, "has the tag %s, which means nothing here", printable(x.Start.Value))
				return nil
			}
			n = x.Value
		default:
			return n
		}
	}
	d.problem(n, key, "aliases are nested too deep")
	return nil
}

// gather notes the anchors inside a node that is not decoded.
func (d *decoder) gather(n ast.Node) {
	if n != nil {
		ast.Walk(anchorVisitor{d}, n)
	}
}

type anchorVisitor struct{ d *decoder }

// Visit implements ast.Visitor.
func (v anchorVisitor) Visit(n ast.Node) ast.Visitor {
	if a, ok := n.(*ast.AnchorNode); ok {
		v.d.anchors[a.Name.String()] = a.Value
	}
	return v
}

// entry is one key of a mapping with its value.
type entry struct {
	name  string
	at    ast.Node // the key
	value ast.Node // may be nil
}

// entries lists the keys of a mapping; those that << brings come last and give
// way to the mapping's own.
func (d *decoder) entries(n ast.Node, key string) ([]entry, bool) {
	kvs, ok := pairs(n)
	if !ok {
		d.problem(n, key, "must be a mapping of keys, not %s", describe(n))
		return nil, false
	}
	var own, merged []entry
	taken := map[string]bool{}
	for _, kv := range kvs {
		e := entry{keyText(kv), kv.Key, kv.Value}
		switch {
		case kv.Key.Type() == ast.MergeKeyType:
			merged = append(merged, d.merge(kv.Value, key)...)
		case taken[e.name]:
			d.problem(e.at, join(key, printable(e.name)), "is given twice")
		default:
			taken[e.name] = true
			own = append(own, e)
		}
	}
	for _, e := range merged {
		if !taken[e.name] {
			taken[e.name] = true
			own = append(own, e)
		}
	}
	return own, true
}

// merge gives what << brings: the keys of one mapping, or of several, of which the
// first one wins.
func (d *decoder) merge(n ast.Node, key string) []entry {
	d.depth++
	d.visited++
	defer func() { d.depth-- }()
	if d.depth > maxDepth || d.visited > maxVisits {
		d.problem(n, key, "<< is nested too deep")
		return nil
	}
	n = d.resolve(n, key)
	if n == nil {
		return nil
	}
	if seq, ok := n.(*ast.SequenceNode); ok {
		var all []entry
		for _, item := range seq.Values {
			all = append(all, d.merge(item, key)...)
		}
		return all
	}
	if _, ok := pairs(n); !ok {
		d.problem(n, key, "<< must name a mapping, not %s", describe(n))
		return nil
	}
	entries, _ := d.entries(n, key)
	return entries
}

func pairs(n ast.Node) ([]*ast.MappingValueNode, bool) {
	switch m := n.(type) {
	case *ast.MappingNode:
		return m.Values, true
	case *ast.MappingValueNode:
		return []*ast.MappingValueNode{m}, true
	}
	return nil, false
}

func keyText(kv *ast.MappingValueNode) string {
	if s, ok := kv.Key.(*ast.StringNode); ok {
		return s.Value
	}
	return kv.Key.String()
}

// maxShown bounds what a problem quotes of the file.
const maxShown = 40

// printable makes a name of the file fit for a line of a report.
func printable(s string) string {
	s = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, s)
	if r := []rune(s); len(r) > maxShown {
		s = string(r[:maxShown]) + "…"
	}
	return s
}
