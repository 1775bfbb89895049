package config

import (
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// maxFile bounds a configuration file.
const maxFile = 1 << 20

// Load reads and checks the file at path. The error is always Problems; there is
// no configuration beside one.
func Load(path string) (*Config, error) {
	b, err := readFile(path, maxFile)
	if err != nil {
		return nil, Problems{{File: path, Text: err.Error()}}
	}
	return Parse(path, b, os.LookupEnv)
}

// readFile reads a file of at most limit bytes. Its errors do not name the file.
func readFile(path string, limit int64) ([]byte, error) {
	f, err := os.Open(path) //nolint:gosec // the path is the operator's
	if err != nil {
		return nil, reason(err)
	}
	defer func() { _ = f.Close() }() // it was only read
	b, err := io.ReadAll(io.LimitReader(f, limit+1))
	switch {
	case err != nil:
		return nil, reason(err)
	case int64(len(b)) > limit:
		return nil, fmt.Errorf("the file is larger than %s", Size(limit))
	}
	return b, nil
}

// reason is what went wrong with a file, without its path.
func reason(err error) error {
	var pe *os.PathError
	switch {
	case errors.Is(err, os.ErrNotExist):
		return errors.New("the file does not exist")
	case errors.As(err, &pe):
		return fmt.Errorf("the file cannot be read: %w", pe.Err)
	}
	return fmt.Errorf("the file cannot be read: %w", err)
}

// Parse checks the content of a file. name is used in problems; getenv looks up
// environment variables. The error is always Problems. Files that the content
// names are read, or looked up if they are for writing; nothing else outside is
// touched.
func Parse(name string, b []byte, getenv func(string) (string, bool)) (*Config, error) {
	d, cfg := newDecoder(name, getenv), Default()
	d.whole(&cfg, b)
	if len(d.problems) > 0 {
		return nil, d.problems.sorted()
	}
	cfg.Warnings = d.warnings.sorted()
	return &cfg, nil
}

func newDecoder(name string, getenv func(string) (string, bool)) *decoder {
	return &decoder{
		file: name, getenv: getenv, anchors: map[string]ast.Node{},
		lines: map[string]int{}, written: map[string]string{},
		faulty: map[string]bool{}, faultyBelow: map[string]bool{},
	}
}

// Locate reads of the file at path only what tells where its service is: store and
// admin.socket. The rest keeps what it had or lacks, and is not judged, so that who
// has not the secrets of a service can still find it. The error is Problems.
func Locate(path string) (*Config, error) {
	b, err := readFile(path, maxFile)
	if err != nil {
		return nil, Problems{{File: path, Text: err.Error()}}
	}
	d, cfg := newDecoder(path, os.LookupEnv), Default()
	d.whole(&cfg, b)
	problems := slices.DeleteFunc(d.problems, func(p Problem) bool {
		section, rest, _ := strings.Cut(p.Key, ".")
		return section != "" && section != "store" && (section != "admin" || rest != "" && rest != "socket")
	})
	if len(problems) > 0 {
		return nil, problems.sorted()
	}
	return &cfg, nil
}

// whole decodes and validates. A panic of the YAML library becomes a problem; its
// value is left out because it may quote the file.
func (d *decoder) whole(cfg *Config, b []byte) {
	defer func() {
		if recover() != nil {
			d.problem(nil, "", "not YAML that can be read: the parser gave up")
		}
	}()
	body := d.parse(b)
	if len(d.problems) > 0 {
		return
	}
	if body != nil {
		d.value(reflect.ValueOf(cfg).Elem(), body, place{})
	}
	if !d.reported("") { // else the rest would be guesses
		d.validate(cfg)
	}
	if len(d.problems) == 0 {
		d.review(cfg)
	}
}

// parse gives the document's body, nil if there is none or it is not YAML.
func (d *decoder) parse(b []byte) ast.Node {
	text := strings.TrimPrefix(string(b), "\ufeff")
	if line := badLine(text); line > 0 {
		d.add(Problem{File: d.file, Line: line, Text: "not text in UTF-8"})
		return nil
	}
	tokens := lexer.Tokenize(text)
	if tk, why := oversized(tokens); tk != nil {
		d.add(Problem{File: d.file, Line: tk.Position.Line, Text: why})
		return nil
	}
	f, err := parser.Parse(tokens, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		d.syntax(err)
		return nil
	}
	docs := slices.DeleteFunc(f.Docs, func(doc *ast.DocumentNode) bool {
		return doc.Body == nil || doc.Body.Type() == ast.CommentType
	})
	switch len(docs) {
	case 0:
		return nil
	case 1:
		return docs[0].Body
	}
	d.problem(docs[1].Body, "", "the file holds more than one document")
	return nil
}

// badLine finds the first line that is not UTF-8 or holds a NUL, 0 if none does.
func badLine(text string) int {
	for i, r := range text {
		if r == 0 {
			return 1 + strings.Count(text[:i], "\n")
		}
		if r == utf8.RuneError && strings.HasPrefix(text[i:], "\ufffd") {
			continue // the character itself
		}
		if r == utf8.RuneError {
			return 1 + strings.Count(text[:i], "\n")
		}
	}
	return 0
}

// syntax reports what the parser refused. Its messages do not quote the file.
func (d *decoder) syntax(err error) {
	p := Problem{File: d.file, Text: "not YAML"}
	var se *yaml.SyntaxError
	if errors.As(err, &se) {
		p.Text = "not YAML: " + se.Message
		if se.Token != nil && se.Token.Position != nil {
			p.Line = se.Token.Position.Line
			if strings.HasPrefix(strings.TrimLeft(se.Token.Origin, "\n "), "\t") {
				p.Text = "not YAML: a tab stands where spaces must indent"
			}
		}
	}
	d.add(p)
}

// Bounds of what is given to the parser, whose time and stack grow with the
// square of them.
const (
	maxDepth    = 32   // brackets, and items that open on one line
	maxSiblings = 2000 // keys of one mapping
)

// oversized finds the first token that goes beyond the bounds.
func oversized(tokens token.Tokens) (*token.Token, string) {
	var g guard
	for _, tk := range tokens {
		if why := g.take(tk); why != "" {
			return tk, why
		}
	}
	return nil, ""
}

// guard counts along the tokens of a file.
type guard struct {
	line, openers int         // of the current line: items, keys, anchors, tags
	brackets      int         // that are open
	keys          map[int]int // of the block mappings that are open, by column
	column        int         // of the token before
}

func (g *guard) take(tk *token.Token) (why string) {
	if tk.Position.Line != g.line {
		g.line, g.openers = tk.Position.Line, 0
		g.leave(tk.Position.Column)
	}
	switch tk.Type {
	case token.SequenceStartType, token.MappingStartType:
		g.brackets++
	case token.SequenceEndType, token.MappingEndType:
		g.brackets--
	case token.SequenceEntryType, token.MappingKeyType, token.AnchorType, token.TagType:
		g.openers++
		g.leave(tk.Position.Column)
	case token.MappingValueType:
		return g.key()
	}
	g.column = tk.Position.Column
	if g.brackets > maxDepth || (g.openers > maxDepth && g.brackets == 0) {
		return "is nested too deep"
	}
	return ""
}

// leave forgets the mappings to the right of a column.
func (g *guard) leave(column int) {
	for c := range g.keys {
		if c > column {
			delete(g.keys, c)
		}
	}
}

// key counts the key that ends here.
func (g *guard) key() string {
	if g.brackets > 0 {
		return ""
	}
	if g.keys == nil {
		g.keys = map[int]int{}
	}
	g.keys[g.column]++
	if g.keys[g.column] > maxSiblings {
		return fmt.Sprintf("more than %d keys in one mapping", maxSiblings)
	}
	return ""
}
