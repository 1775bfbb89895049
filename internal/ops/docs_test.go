package ops_test

import (
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/penstock-io/penstock/internal/ops"
)

// Every field that the commands print stands in the documentation, under the verb
// that prints it.
func TestFieldsAreDocumented(t *testing.T) {
	text, err := os.ReadFile("../../docs/operations.md")
	require.NoError(t, err)
	_, rest, ok := strings.Cut(string(text), "\n## JSON\n")
	require.True(t, ok)
	for _, tt := range []struct {
		from, to string
		of       reflect.Type
	}{
		{"**list**", "**show** adds", reflect.TypeFor[ops.Entry]()},
		{"**show** adds", "**requeue**", reflect.TypeFor[ops.Reply]()},
		{"**send**", "**trace**", reflect.TypeFor[ops.Sent]()},
		{"**trace**", "**edge list**", reflect.TypeFor[ops.Trace]()},
		{"**trace**", "**edge list**", reflect.TypeFor[ops.ReplyTrace]()},
		{"**edge list**", "**edge frames**", reflect.TypeFor[ops.Consumer]()},
		{"**edge list**", "**edge frames**", reflect.TypeFor[ops.Connection]()},
		{"**edge frames**", "## Exit codes", reflect.TypeFor[ops.Frame]()},
	} {
		_, section, ok := strings.Cut(rest, tt.from)
		require.True(t, ok, tt.from)
		section, _, ok = strings.Cut(section, tt.to)
		require.True(t, ok, tt.to)
		for f := range tt.of.Fields() {
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			require.Contains(t, section, "`"+name+"`", "%s of %s", f.Name, tt.of)
		}
	}
}
