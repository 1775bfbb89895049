package config

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// Secret is a value that no log, error or page shows.
type Secret string

// String hides the value.
func (s Secret) String() string {
	if s == "" {
		return ""
	}
	return "[secret]"
}

// GoString hides the value.
func (s Secret) GoString() string { return strconv.Quote(s.String()) }

// Reveal gives the value itself.
func (s Secret) Reveal() string { return string(s) }

// Size is a number of bytes. In YAML it is a number, or a number with one of the
// units B, KiB, MiB, GiB.
type Size int64

// String writes the size with the largest unit that divides it.
func (s Size) String() string {
	for _, u := range []struct {
		name string
		n    Size
	}{{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}} {
		if s != 0 && s%u.n == 0 {
			return strconv.FormatInt(int64(s/u.n), 10) + u.name
		}
	}
	return strconv.FormatInt(int64(s), 10) + "B"
}

// parseSize reads a size. Errors go on after the text, which they do not hold.
func parseSize(text string) (Size, error) {
	num := strings.TrimRight(text, "BiKMGkmgb")
	unit := strings.ToLower(text[len(num):])
	n, err := strconv.ParseInt(strings.TrimSpace(num), 10, 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		return 0, errors.New("is not a size, such as 4MiB")
	}
	factor := map[string]int64{"": 1, "b": 1, "kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30}[unit]
	if factor == 0 {
		return 0, errors.New("has none of the units B, KiB, MiB, GiB")
	}
	if err != nil || n < 0 || n > (1<<62)/factor {
		return 0, errors.New("is out of range")
	}
	return Size(n * factor), nil
}

// Pattern is a regular expression in RE2 syntax; nil when there is none.
type Pattern struct{ *regexp.Regexp }

// maxSecretFile bounds a file named by {file: …}.
const maxSecretFile = 64 << 10

// expand replaces ${NAME} and ${NAME:-default}; $${ stands for ${, and any other
// dollar for itself. Errors name variables, never what they hold.
func expand(s string, getenv func(string) (string, bool)) (string, error) {
	var b strings.Builder
	var missing []string
	for {
		before, rest, found := strings.Cut(s, "${")
		if !found {
			break
		}
		if plain, escaped := strings.CutSuffix(before, "$"); escaped {
			b.WriteString(plain + "${")
			s = rest
			continue
		}
		inside, after, closed := strings.Cut(rest, "}")
		if !closed {
			return "", errors.New("${ is not closed by }; $${ stands for ${ itself")
		}
		value, name, err := lookUp(inside, getenv)
		if err != nil {
			return "", err
		}
		if name != "" {
			missing = append(missing, name)
		}
		b.WriteString(before + value)
		s = after
	}
	if len(missing) > 0 {
		return "", fmt.Errorf("environment variable %s is not set", strings.Join(missing, ", "))
	}
	return b.String() + s, nil
}

var variable = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// lookUp gives what NAME or NAME:-default stands for, or the name that is missing.
func lookUp(inside string, getenv func(string) (string, bool)) (value, missing string, err error) {
	name, def, hasDef := strings.Cut(inside, ":-")
	if !variable.MatchString(name) {
		return "", "", errors.New("${…} does not hold the name of a variable; $${ stands for ${ itself")
	}
	if strings.Contains(def, "${") {
		return "", "", fmt.Errorf("the default of ${%s:-…} holds another ${", name)
	}
	v, ok := getenv(name)
	switch {
	case ok && (v != "" || !hasDef):
		return v, "", nil
	case hasDef:
		return def, "", nil
	}
	return "", name, nil
}
