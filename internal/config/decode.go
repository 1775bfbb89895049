package config

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"
)

// decoder fills a Config from a document and notes what is wrong. It belongs to
// one call of Parse.
type decoder struct {
	file    string
	getenv  func(string) (string, bool)
	anchors map[string]ast.Node
	lines   map[string]int    // where each key's value stands
	written map[string]string // what each value is before variables are replaced

	problems    Problems
	warnings    Problems        // good only if there are no problems
	faulty      map[string]bool // keys that have a problem
	faultyBelow map[string]bool // keys of which one inside has
	depth       int
	visited     int
}

// maxVisits bounds the nodes of a document, those behind aliases counted each
// time.
const maxVisits = 100_000

// place is where a value belongs, and what its field demands.
type place struct {
	key string
	tag reflect.StructTag
}

func (p place) field(name string, tag reflect.StructTag) place {
	return place{join(p.key, name), tag}
}

// item keeps the demands: they hold for each item of a list.
func (p place) item(i int) place { return place{fmt.Sprintf("%s[%d]", p.key, i), p.tag} }

func join(key, name string) string {
	if key == "" {
		return name
	}
	return key + "." + name
}

// problem reports a problem where n stands; nil is nowhere.
func (d *decoder) problem(n ast.Node, key, format string, args ...any) {
	p := Problem{File: d.file, Key: key, Text: fmt.Sprintf(format, args...)}
	if n != nil {
		p.Line = line(n)
	}
	d.add(p)
}

// at reports a problem with a key, on its line or that of the nearest key above.
// A key that has a problem already is not judged again.
func (d *decoder) at(key, format string, args ...any) {
	if !d.reported(key) {
		d.add(Problem{File: d.file, Line: d.lineOf(key), Key: key, Text: fmt.Sprintf(format, args...)})
	}
}

// warn reports what is allowed and most likely not meant.
func (d *decoder) warn(key, format string, args ...any) {
	d.warnings = append(d.warnings, Problem{
		File: d.file, Line: d.lineOf(key), Key: key, Text: fmt.Sprintf(format, args...),
	})
}

func (d *decoder) add(p Problem) {
	d.problems = append(d.problems, p)
	d.faulty[p.Key] = true
	for key := above(p.Key); key != ""; key = above(key) {
		d.faultyBelow[key] = true
	}
}

// above is the key that holds this one, "" for the outermost.
func above(key string) string { return key[:max(0, strings.LastIndexAny(key, ".["))] }

func (d *decoder) reported(key string) bool { return d.faulty[key] }

func (d *decoder) lineOf(key string) int {
	for key != "" {
		if n, ok := d.lines[key]; ok {
			return n
		}
		key = above(key)
	}
	return 0
}

var (
	typeDuration = reflect.TypeFor[time.Duration]()
	typeSecret   = reflect.TypeFor[Secret]()
	typeSize     = reflect.TypeFor[Size]()
	typePattern  = reflect.TypeFor[Pattern]()
)

// value sets v from n.
func (d *decoder) value(v reflect.Value, n ast.Node, p place) {
	d.depth++
	d.visited++
	defer func() { d.depth-- }()
	switch {
	case d.depth > maxDepth:
		d.problem(n, p.key, "is nested too deep")
		return
	case d.visited == maxVisits:
		d.problem(n, "", "the file is too large when its aliases are followed")
		return
	case d.visited > maxVisits:
		return
	}
	if n = d.resolve(n, p.key); n != nil {
		d.lines[p.key] = line(n)
	}
	switch {
	case n == nil || n.Type() == ast.NullType:
		d.empty(v, p)
	case v.Type() == typeDuration, v.Type() == typeSecret, v.Type() == typeSize,
		v.Type() == typePattern:
		d.scalar(v, n, p)
	default:
		d.byKind(v, n, p)
	}
}

// empty leaves v at its default. An empty mapping is there all the same, so a
// handler without settings is chosen and what it demands is missing.
func (d *decoder) empty(v reflect.Value, p place) {
	if v.Kind() == reflect.Pointer && v.Type().Elem().Kind() == reflect.Struct {
		v.Set(newDefault(v.Type().Elem()))
		v = v.Elem()
	}
	if v.Kind() == reflect.Struct && v.Type() != typePattern {
		d.demand(v, p, nil)
	}
}

func (d *decoder) byKind(v reflect.Value, n ast.Node, p place) {
	switch v.Kind() {
	case reflect.Struct:
		d.mapping(v, n, p)
	case reflect.Slice:
		d.sequence(v, n, p)
	case reflect.Map:
		d.dict(v, n, p)
	case reflect.Pointer:
		to := newDefault(v.Type().Elem())
		d.value(to.Elem(), n, p)
		v.Set(to)
	default:
		d.scalar(v, n, p)
	}
}

// newDefault makes a pointer to a value of type t with its defaults.
func newDefault(t reflect.Type) reflect.Value {
	p := reflect.New(t)
	switch dst := p.Interface().(type) {
	case *Installation:
		*dst = defaultInstallation()
	case *Consumer:
		*dst = defaultConsumer()
	case *HTTP:
		*dst = defaultHTTP()
	case *Exec:
		*dst = defaultExec()
	}
	return p
}

func (d *decoder) mapping(v reflect.Value, n ast.Node, p place) {
	entries, ok := d.entries(n, p.key)
	if !ok {
		return
	}
	fields := fieldsOf(v.Type())
	seen := map[string]bool{}
	for _, e := range entries {
		f, ok := fields[e.name]
		switch {
		case !ok && p.key == "" && strings.HasPrefix(e.name, "x-"):
			d.gather(e.value) // a place for anchors
		case !ok:
			d.unknown(e, p.key, fields)
		default:
			seen[e.name] = true
			d.value(v.FieldByIndex(f.Index), e.value, p.field(e.name, f.Tag))
		}
	}
	d.demand(v, p, seen)
}

// demand looks for keys that must be there.
func (d *decoder) demand(v reflect.Value, p place, seen map[string]bool) {
	for f := range v.Type().Fields() {
		name := f.Tag.Get("yaml")
		if f.Tag.Get("required") == "" || !v.FieldByIndex(f.Index).IsZero() {
			continue
		}
		if seen[name] {
			d.at(join(p.key, name), "is empty")
		} else {
			d.at(join(p.key, name), "is missing")
		}
	}
}

// unknown refuses a key and looks for the one that was meant.
func (d *decoder) unknown(e entry, key string, fields map[string]reflect.StructField) {
	d.gather(e.value)
	hint := "the keys here are " + strings.Join(sortedKeys(fields), ", ")
	if near := nearest(e.name, sortedKeys(fields)); near != "" {
		hint = "did you mean " + near + "?"
	} else if len(fields) == 0 {
		hint = "there are none here"
	}
	d.problem(e.at, join(key, printable(e.name)), "no such key; %s", hint)
}

func fieldsOf(t reflect.Type) map[string]reflect.StructField {
	m := map[string]reflect.StructField{}
	for f := range t.Fields() {
		if name := f.Tag.Get("yaml"); name != "" {
			m[name] = f
		}
	}
	return m
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

func (d *decoder) sequence(v reflect.Value, n ast.Node, p place) {
	seq, ok := n.(*ast.SequenceNode)
	if !ok {
		d.problem(n, p.key, "must be a list, not %s", describe(n))
		return
	}
	out := reflect.MakeSlice(v.Type(), 0, len(seq.Values))
	for i, item := range seq.Values {
		e := newDefault(v.Type().Elem()).Elem()
		d.value(e, item, p.item(i))
		if e.Kind() == reflect.String && e.Len() == 0 {
			d.at(p.item(i).key, "is empty")
		}
		out = reflect.Append(out, e)
	}
	v.Set(out)
}

func (d *decoder) dict(v reflect.Value, n ast.Node, p place) {
	entries, ok := d.entries(n, p.key)
	if !ok {
		return
	}
	m := reflect.MakeMap(v.Type())
	for _, e := range entries {
		to := reflect.New(v.Type().Elem()).Elem()
		d.value(to, e.value, place{key: join(p.key, printable(e.name))})
		m.SetMapIndex(reflect.ValueOf(e.name), to)
	}
	v.Set(m)
}
