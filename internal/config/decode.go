package config

import (
	"errors"
	"fmt"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// maxFile bounds a configuration file.
const maxFile = 4 << 20

// Load reads and checks the file at path. The error is Problems when the content
// is at fault.
func Load(path string) (*Config, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("read configuration: %w", err)
	}
	if info.Size() > maxFile {
		return nil, Problems{{File: path, Text: "file is larger than " + Size(maxFile).String()}}
	}
	b, err := os.ReadFile(path) //nolint:gosec // the path is the operator's
	if err != nil {
		return nil, fmt.Errorf("read configuration: %w", err)
	}
	return Parse(path, b, os.LookupEnv)
}

// Parse checks the content of a file. name is used in problems; getenv looks up
// environment variables.
func Parse(name string, b []byte, getenv func(string) (string, bool)) (*Config, error) {
	d := &decoder{file: name, getenv: getenv, anchors: map[string]ast.Node{}, lines: map[string]int{}}
	cfg := Default()
	if body := d.parse(b); body != nil {
		d.value(reflect.ValueOf(&cfg).Elem(), body, "", "")
	}
	d.validate(&cfg)
	if len(d.problems) > 0 {
		return nil, d.problems.sorted()
	}
	return &cfg, nil
}

type decoder struct {
	file     string
	getenv   func(string) (string, bool)
	anchors  map[string]ast.Node
	lines    map[string]int // where each key's value stands
	problems Problems
	depth    int
}

// maxDepth bounds nesting, aliases included.
const maxDepth = 32

func (d *decoder) problem(n ast.Node, key, format string, args ...any) {
	p := Problem{File: d.file, Key: key, Text: fmt.Sprintf(format, args...)}
	if n != nil {
		p.Line = line(n)
	}
	d.problems = append(d.problems, p)
}

func line(n ast.Node) int {
	if m, ok := n.(*ast.MappingNode); ok && len(m.Values) > 0 {
		return line(m.Values[0].Key)
	}
	if t := n.GetToken(); t != nil && t.Position != nil {
		return t.Position.Line
	}
	return 0
}

// parse gives the document's body, nil if there is none or it is not YAML.
func (d *decoder) parse(b []byte) (body ast.Node) {
	defer func() {
		if v := recover(); v != nil {
			body = nil
			d.problem(nil, "", "not YAML: %v", v)
		}
	}()
	f, err := parser.ParseBytes(b, 0)
	if err != nil {
		d.syntax(err)
		return nil
	}
	docs := slices.DeleteFunc(f.Docs, func(doc *ast.DocumentNode) bool {
		return doc.Body == nil || doc.Body.Type() == ast.CommentType
	})
	if len(docs) == 0 {
		return nil
	}
	if len(docs) > 1 {
		d.problem(docs[1].Body, "", "the file holds more than one document")
	}
	return docs[0].Body
}

func (d *decoder) syntax(err error) {
	p := Problem{File: d.file, Text: "not YAML: " + err.Error()}
	var se *yaml.SyntaxError
	if errors.As(err, &se) {
		p.Text = "not YAML: " + se.Message
		if se.Token != nil && se.Token.Position != nil {
			p.Line = se.Token.Position.Line
		}
	}
	d.problems = append(d.problems, p)
}

var (
	typeDuration = reflect.TypeFor[time.Duration]()
	typeSecret   = reflect.TypeFor[Secret]()
	typeSize     = reflect.TypeFor[Size]()
	typePattern  = reflect.TypeFor[Pattern]()
)

// value sets v from n. oneof lists the words that a string may be.
func (d *decoder) value(v reflect.Value, n ast.Node, key, oneof string) {
	d.depth++
	defer func() { d.depth-- }()
	n = d.resolve(n)
	if n != nil {
		d.lines[key] = line(n)
	}
	switch {
	case d.depth > maxDepth:
		d.problem(n, key, "is nested too deep")
	case n == nil || n.Type() == ast.NullType:
		// An empty value leaves the default; an empty handler is still chosen.
		if v.Kind() == reflect.Pointer && v.Type().Elem().Kind() == reflect.Struct {
			v.Set(newDefault(v.Type().Elem()))
		}
	case v.Type() == typeDuration, v.Type() == typeSecret, v.Type() == typeSize,
		v.Type() == typePattern:
		d.scalar(v, n, key, oneof)
	default:
		d.byKind(v, n, key, oneof)
	}
}

func (d *decoder) byKind(v reflect.Value, n ast.Node, key, oneof string) {
	switch v.Kind() {
	case reflect.Struct:
		d.mapping(v, n, key)
	case reflect.Slice:
		d.sequence(v, n, key, oneof)
	case reflect.Map:
		d.dict(v, n, key)
	case reflect.Pointer:
		p := newDefault(v.Type().Elem())
		d.value(p.Elem(), n, key, oneof)
		v.Set(p)
	default:
		d.scalar(v, n, key, oneof)
	}
}

// newDefault makes a pointer to a value of type t with its defaults.
func newDefault(t reflect.Type) reflect.Value {
	p := reflect.New(t)
	switch dst := p.Interface().(type) {
	case *Installation:
		*dst = defaultInstallation()
	case *HTTP:
		*dst = defaultHTTP()
	case *Exec:
		*dst = defaultExec()
	}
	return p
}

// resolve follows anchors, aliases and tags.
func (d *decoder) resolve(n ast.Node) ast.Node {
	for range maxDepth {
		switch x := n.(type) {
		case *ast.AnchorNode:
			d.anchors[x.Name.String()] = x.Value
			n = x.Value
		case *ast.AliasNode:
			target, ok := d.anchors[x.Value.String()]
			if !ok {
				d.problem(n, "", "alias *%s has no anchor", x.Value)
				return nil
			}
			n = target
		case *ast.TagNode:
			n = x.Value
		default:
			return n
		}
	}
	d.problem(n, "", "aliases are nested too deep")
	return nil
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

func (d *decoder) mapping(v reflect.Value, n ast.Node, key string) {
	kvs, ok := pairs(n)
	if !ok {
		d.problem(n, key, "must be a mapping of keys, not %s", describe(n))
		return
	}
	fields := fieldsOf(v.Type())
	seen := map[string]bool{}
	for _, kv := range kvs {
		name := keyText(kv)
		f, ok := fields[name]
		switch {
		case !ok:
			d.unknown(kv.Key, key, name, fields)
			continue
		case seen[name]:
			d.problem(kv.Key, join(key, name), "is given twice")
			continue
		}
		seen[name] = true
		d.value(v.FieldByIndex(f.Index), kv.Value, join(key, name), f.Tag.Get("oneof"))
	}
	d.finish(v, n, key, seen, fields)
}

// finish looks for keys that must be there.
func (d *decoder) finish(
	v reflect.Value, n ast.Node, key string, seen map[string]bool, fields map[string]reflect.StructField,
) {
	for _, name := range sortedKeys(fields) {
		f := fields[name]
		if f.Tag.Get("required") == "" || !v.FieldByIndex(f.Index).IsZero() {
			continue
		}
		if !seen[name] {
			d.problem(n, join(key, name), "is missing")
		} else if !d.reported(join(key, name)) {
			d.problem(n, join(key, name), "is empty")
		}
	}
}

func (d *decoder) reported(key string) bool {
	return slices.ContainsFunc(d.problems, func(p Problem) bool { return p.Key == key })
}

func (d *decoder) unknown(
	n ast.Node, key, name string, fields map[string]reflect.StructField,
) {
	hint := ""
	if near := nearest(name, sortedKeys(fields)); near != "" {
		hint = fmt.Sprintf("; did you mean %s?", near)
	} else {
		hint = "; the keys here are " + strings.Join(sortedKeys(fields), ", ")
	}
	d.problem(n, join(key, name), "no such key%s", hint)
}

func keyText(kv *ast.MappingValueNode) string {
	if s, ok := kv.Key.(*ast.StringNode); ok {
		return s.Value
	}
	return kv.Key.String()
}

func join(key, name string) string {
	if key == "" {
		return name
	}
	return key + "." + name
}

func fieldsOf(t reflect.Type) map[string]reflect.StructField {
	m := map[string]reflect.StructField{}
	for f := range t.Fields() {
		if tag := f.Tag.Get("yaml"); tag != "" {
			m[tag] = f
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

func (d *decoder) sequence(v reflect.Value, n ast.Node, key, oneof string) {
	seq, ok := n.(*ast.SequenceNode)
	if !ok {
		d.problem(n, key, "must be a list, not %s", describe(n))
		return
	}
	out := reflect.MakeSlice(v.Type(), 0, len(seq.Values))
	for i, item := range seq.Values {
		e := newDefault(v.Type().Elem()).Elem()
		d.value(e, item, fmt.Sprintf("%s[%d]", key, i), oneof)
		out = reflect.Append(out, e)
	}
	v.Set(out)
}

func (d *decoder) dict(v reflect.Value, n ast.Node, key string) {
	kvs, ok := pairs(n)
	if !ok {
		d.problem(n, key, "must be a mapping of keys, not %s", describe(n))
		return
	}
	m := reflect.MakeMap(v.Type())
	for _, kv := range kvs {
		e := reflect.New(v.Type().Elem()).Elem()
		d.value(e, kv.Value, join(key, keyText(kv)), "")
		m.SetMapIndex(reflect.ValueOf(keyText(kv)), e)
	}
	v.Set(m)
}

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
	default:
		return "text"
	}
}

// text gives the scalar as it is written, with variables replaced.
func (d *decoder) text(n ast.Node, key string) (string, bool) {
	var raw string
	switch x := n.(type) {
	case *ast.StringNode:
		raw = x.Value
	case *ast.LiteralNode:
		raw = x.Value.Value
	case ast.ScalarNode:
		raw = x.GetToken().Value
	default:
		d.problem(n, key, "must be a single value, not %s", describe(n))
		return "", false
	}
	s, err := expand(raw, d.getenv)
	if err != nil {
		d.problem(n, key, "%v", err)
		return "", false
	}
	return s, true
}

// secret also takes {file: path}.
func (d *decoder) secret(n ast.Node, key string) (string, bool) {
	kvs, ok := pairs(n)
	if !ok {
		return d.text(n, key)
	}
	if len(kvs) != 1 || keyText(kvs[0]) != "file" {
		d.problem(n, key, "must be text or {file: path}")
		return "", false
	}
	path, ok := d.text(d.resolve(kvs[0].Value), key+".file")
	if !ok {
		return "", false
	}
	s, err := readSecretFile(path)
	if err != nil {
		d.problem(n, key, "%v", err)
		return "", false
	}
	return s, true
}

func (d *decoder) scalar(v reflect.Value, n ast.Node, key, oneof string) {
	if v.Type() == typeSecret {
		if s, ok := d.secret(n, key); ok {
			v.SetString(s)
		}
		return
	}
	s, ok := d.text(n, key)
	if !ok {
		return
	}
	if err := setScalar(v, s, oneof); err != nil {
		d.problem(n, key, "%v", err)
	}
}

func setScalar(v reflect.Value, s, oneof string) error {
	switch v.Interface().(type) {
	case time.Duration:
		dur, err := time.ParseDuration(s)
		if err != nil {
			return fmt.Errorf("%q is not a duration, such as 90s or 5m", s)
		}
		v.SetInt(int64(dur))
		return nil
	case Size:
		n, err := parseSize(s)
		v.SetInt(int64(n))
		return err
	case Pattern:
		re, err := regexp.Compile(s)
		if err != nil {
			return fmt.Errorf("not a regular expression: %w", err)
		}
		v.Set(reflect.ValueOf(Pattern{re}))
		return nil
	}
	return setBasic(v, s, oneof)
}

func setBasic(v reflect.Value, s, oneof string) error {
	switch v.Kind() {
	case reflect.String:
		if words := strings.Fields(oneof); oneof != "" && !slices.Contains(words, s) {
			return fmt.Errorf("%q is not one of %s", s, strings.Join(words, ", "))
		}
		v.SetString(s)
	case reflect.Bool:
		if s != "true" && s != "false" {
			return fmt.Errorf("%q is neither true nor false", s)
		}
		v.SetBool(s == "true")
	case reflect.Int:
		n, err := strconv.Atoi(s)
		if err != nil {
			return fmt.Errorf("%q is not a whole number", s)
		}
		v.SetInt(int64(n))
	case reflect.Float64:
		n, err := strconv.ParseFloat(s, 64)
		if err != nil {
			return fmt.Errorf("%q is not a number", s)
		}
		v.SetFloat(n)
	}
	return nil
}
