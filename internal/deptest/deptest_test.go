// Package deptest keeps the import arrows of the project pointing one way.
package deptest

import (
	"encoding/json"
	"os/exec"
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
		[]string{"message", "integrations", "internal/wire", "internal/backoff", "internal/jsonscan"},
		false, "a platform must not learn how messages are kept or handled",
	},
	{"internal/config", []string{"internal/config"}, false, "the configuration is data, read by the wiring"},
	{"internal/wire", nil, false, "the socket writer carries bytes and knows no message"},
	{"internal/backoff", nil, true, "it is arithmetic"},
	{"internal/jsonscan", nil, true, "it is a scanner"},
}

type pkg struct {
	ImportPath string
	Imports    []string
}

func TestImportArrows(t *testing.T) {
	out, err := exec.Command("go", "list", "-json=ImportPath,Imports", module+"...").Output()
	require.NoError(t, err)
	checked := 0
	for dec := json.NewDecoder(strings.NewReader(string(out))); dec.More(); {
		var p pkg
		require.NoError(t, dec.Decode(&p))
		checked += check(t, p)
	}
	require.Positive(t, checked, "no package was checked")
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
