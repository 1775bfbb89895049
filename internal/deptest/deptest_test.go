// Package deptest keeps the import arrows of the project pointing one way.
package deptest

import (
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const module = "github.com/penstock-io/penstock/"

// rule lists what packages under a prefix may import of this module, and why.
type rule struct {
	prefix  string
	allowed []string
	stdOnly bool
	reason  string
}

// rules are tried in order; the first whose prefix matches applies.
var rules = []rule{
	{"message", nil, true, "it is the vocabulary that everything imports"},
	{"dispatch", nil, true, "it is a generic queue and knows no message"},
	{"dedup", nil, true, "it is generic and knows no message"},
	{"router", []string{"message", "router"}, false, "a handler must not learn how messages come or are kept"},
	{"store", []string{"message", "store"}, false, "a store keeps messages and knows nobody who uses it"},
	{
		"relay",
		[]string{"message", "store", "dispatch", "dedup", "router"},
		false, "the pipeline must work for every platform, so it may know none",
	},
	{
		"integrations",
		[]string{"message", "integrations", "internal/wire", "internal/backoff", "internal/jsonscan", "internal/spelling"},
		false, "a platform must not learn how messages are kept or handled",
	},
	{
		"edge",
		[]string{"message", "router", "internal/wire", "internal/jsonscan"},
		false, "a gateway for consumers must not learn where messages come from or are kept",
	},
	{"internal/config", []string{"internal/config", "internal/spelling"}, false, "the configuration is data, read by the wiring"},
	{
		"internal/ops",
		[]string{"message", "store", "relay"},
		false, "an operator's verbs must work for every platform, whoever wires them",
	},
	{"internal/wire", nil, false, "the socket writer carries bytes and knows no message"},
	{"internal/backoff", nil, true, "it is arithmetic"},
	{"internal/spelling", nil, true, "it is arithmetic"},
	{"internal/jsonscan", nil, true, "it is a scanner"},
}

// pkg is a package and what its files, tests left out, import.
type pkg struct {
	ImportPath string
	Imports    []string
}

// packages reads the import lines of the whole module. It opens the files itself,
// so that a cached result of this test is not used after one of them has changed.
func packages(t *testing.T) (all []pkg) {
	root, err := filepath.Abs(filepath.Join("..", ".."))
	require.NoError(t, err)
	imports := map[string][]string{}
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "testdata" || strings.HasPrefix(d.Name(), ".")):
			return filepath.SkipDir
		case !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		dir, err := filepath.Rel(root, filepath.Dir(path))
		for _, spec := range f.Imports {
			name, _ := strconv.Unquote(spec.Path.Value) // the parser has checked it
			imports[dir] = append(imports[dir], name)
		}
		return err
	})
	require.NoError(t, err)
	for dir, list := range imports {
		all = append(all, pkg{module + filepath.ToSlash(dir), list})
	}
	return all
}

func TestImportArrows(t *testing.T) {
	checked := 0
	for _, p := range packages(t) {
		checked += check(t, p)
	}
	require.Greater(t, checked, 10, "the module was not found")
}

func check(t *testing.T, p pkg) int {
	for _, r := range rules {
		if !under(p.ImportPath, r.prefix) {
			continue
		}
		for _, imp := range p.Imports {
			if !r.allows(imp) {
				t.Errorf("%s imports %s: packages under %s may not, because %s",
					p.ImportPath, imp, r.prefix, r.reason)
			}
		}
		return 1
	}
	return 0
}

func (r rule) allows(imp string) bool {
	if !strings.HasPrefix(imp, module) {
		return !r.stdOnly || !strings.Contains(strings.SplitN(imp, "/", 2)[0], ".")
	}
	for _, a := range append([]string{r.prefix}, r.allowed...) {
		if under(imp, a) {
			return true
		}
	}
	return false
}

func under(path, prefix string) bool {
	rest, ok := strings.CutPrefix(path, module+prefix)
	return ok && (rest == "" || rest[0] == '/')
}

func TestRuleAllows(t *testing.T) {
	r := rule{prefix: "message", stdOnly: true}
	require.True(t, r.allows("encoding/json"))
	require.False(t, r.allows("github.com/stretchr/testify/require"))
	require.False(t, r.allows(module+"store"))
	require.True(t, rule{prefix: "relay", allowed: []string{"store"}}.allows(module+"store/memory"))
	require.False(t, rule{prefix: "relay", allowed: []string{"store"}}.allows(module+"storeroom"))
}
