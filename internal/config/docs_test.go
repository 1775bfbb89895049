package config_test

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/penstock-io/penstock/internal/config"
)

// row is what the documentation's tables say of a key, but for its meaning.
type row struct{ key, kind, def, limits string }

// rows lists the keys of a struct and of those inside it.
func rows(v reflect.Value, prefix string) []row {
	var all []row
	for f := range v.Type().Fields() {
		if f.Tag.Get("yaml") == "" {
			continue // the file does not hold it
		}
		key := prefix + f.Tag.Get("yaml")
		value := v.FieldByIndex(f.Index)
		switch t := f.Type; {
		case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Struct:
			all = append(all, rows(filled(t.Elem()), key+"[].")...)
		case t == reflect.TypeFor[*config.Echo]():
			all = append(all, row{key, "mapping", "none", ""})
		case t.Kind() == reflect.Pointer && t.Elem().Kind() == reflect.Struct:
			all = append(all, rows(filled(t.Elem()), key+".")...)
		case t.Kind() == reflect.Struct && t != reflect.TypeFor[config.Pattern]():
			all = append(all, rows(value, key+".")...)
		default:
			all = append(all, row{key, kind(t), def(value, f.Tag), limits(t, f.Tag)})
		}
	}
	return all
}

// filled is a value of type t as a file that says nothing about it gives.
func filled(t reflect.Type) reflect.Value {
	cfg, err := config.Parse("f", []byte(bot+`
edge: {consumers: [{name: a, client_id: a, client_secret: a}]}
routes:
- match: {prefix: a}
  handler: {http: {url: "http://a"}}
- handler: {exec: {command: [a]}}
`), noEnv)
	if err != nil {
		panic(err)
	}
	switch t {
	case reflect.TypeFor[config.Installation]():
		return reflect.ValueOf(cfg.Installations[0])
	case reflect.TypeFor[config.Consumer]():
		return reflect.ValueOf(cfg.Edge.Consumers[0])
	case reflect.TypeFor[config.HTTP]():
		return reflect.ValueOf(*cfg.Routes[0].Handler.HTTP)
	case reflect.TypeFor[config.Exec]():
		return reflect.ValueOf(*cfg.Routes[1].Handler.Exec)
	}
	return reflect.New(t).Elem()
}

func kind(t reflect.Type) string {
	names := map[reflect.Type]string{
		reflect.TypeFor[time.Duration](): "duration", reflect.TypeFor[config.Size](): "size",
		reflect.TypeFor[config.Secret](): "secret", reflect.TypeFor[config.Pattern](): "pattern",
		reflect.TypeFor[string](): "text", reflect.TypeFor[bool](): "truth",
		reflect.TypeFor[int](): "integer", reflect.TypeFor[float64](): "number",
	}
	switch {
	case names[t] != "":
		return names[t]
	case t.Kind() == reflect.Slice:
		return "list of " + kind(t.Elem())
	case t.Kind() == reflect.Map:
		return "map of " + kind(t.Elem())
	default:
		return kind(t.Elem())
	}
}

// def is a default as a file would have it.
func def(v reflect.Value, tag reflect.StructTag) string {
	switch {
	case tag.Get("required") != "":
		return "required"
	case v.Kind() == reflect.Slice && v.Len() > 0:
		var items []string
		for i := range v.Len() {
			items = append(items, scalar(v.Index(i)))
		}
		return "`[" + strings.Join(items, ", ") + "]`"
	case v.IsZero() && v.Kind() != reflect.Bool && !v.CanInt() && !v.CanFloat():
		return "none"
	}
	return "`" + scalar(v) + "`"
}

func scalar(v reflect.Value) string {
	switch x := v.Interface().(type) {
	case time.Duration:
		s := x.String()
		s = regexp.MustCompile(`(\D)0s$`).ReplaceAllString(s, "$1")
		return regexp.MustCompile(`(\D)0m$`).ReplaceAllString(s, "$1")
	case config.Size:
		return x.String()
	}
	return fmt.Sprint(v.Interface())
}

func limits(t reflect.Type, tag reflect.StructTag) string {
	words := strings.Fields(tag.Get("oneof"))
	low, high := tag.Get("min"), tag.Get("max")
	switch {
	case len(words) > 0:
		return "`" + strings.Join(words, "`, `") + "`"
	case low != "" && high != "":
		return "`" + low + "` to `" + high + "`"
	case low != "":
		return "at least `" + low + "`"
	case t.Kind() == reflect.Bool:
		return "`true`, `false`"
	}
	return ""
}

// documented reads the rows of the documentation's tables.
func documented(t *testing.T) []row {
	t.Helper()
	b, err := os.ReadFile("../../docs/configuration.md")
	require.NoError(t, err)
	var all []row
	for line := range strings.Lines(string(b)) {
		cells := strings.Split(strings.TrimSpace(line), "|")
		if len(cells) != 7 || !strings.HasPrefix(cells[1], " `") {
			continue
		}
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		require.NotEmpty(t, cells[5], "%s has no meaning", cells[1])
		all = append(all, row{strings.Trim(cells[1], "`"), cells[2], cells[3], cells[4]})
	}
	return all
}

// The tables list every key, in the order of the code, with its type, default and
// range.
func TestEveryKeyIsDocumented(t *testing.T) {
	want := rows(reflect.ValueOf(config.Default()), "")
	require.Equal(t, want, documented(t))
}

// Every default is inside its range, and every number has one.
func TestEveryRangeIsOne(t *testing.T) {
	for _, r := range rows(reflect.ValueOf(config.Default()), "") {
		switch r.kind {
		case "integer", "number", "duration", "size", "list of duration":
			require.NotEmpty(t, r.limits, r.key)
		}
		if strings.Contains(r.key, "[]") || !strings.HasPrefix(r.def, "`") {
			continue
		}
		section, key, nested := strings.Cut(r.key, ".")
		text := section + ": " + strings.Trim(r.def, "`")
		if nested {
			text = section + ": {" + key + ": '" + strings.Trim(r.def, "`") + "'}"
		}
		if r.kind == "list of duration" {
			text = strings.ReplaceAll(text, "'", "")
		}
		require.Equal(t, config.Default().Log, accepted(t, bot+text, nil).Log, r.key)
	}
}

// The examples of the documentation are configurations, and nothing is odd about them.
func TestTheExamplesOfTheDocumentationWork(t *testing.T) {
	for path, least := range map[string]int{"configuration.md": 2, "simulate.md": 1} {
		b, err := os.ReadFile(filepath.Join("../../docs", path))
		require.NoError(t, err)
		examples := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(string(b), -1)
		require.GreaterOrEqual(t, len(examples), least)
		secret := regexp.MustCompile(`\{file: [^}]*\}`)
		for _, example := range examples {
			cfg, err := config.Parse("f", []byte(secret.ReplaceAllString(example[1], "s3")),
				func(name string) (string, bool) { return name, true })
			require.NoError(t, err, example[1])
			for _, w := range cfg.Warnings { // one shows keys to share, and has no route
				require.Equal(t, "routes", w.Key, w)
			}
		}
	}
}
