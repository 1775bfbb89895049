package config

import (
	"errors"
	"fmt"
	"os"
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

func parseSize(text string) (Size, error) {
	num := strings.TrimRight(text, "BiKMGkmg")
	unit := strings.ToLower(strings.TrimSpace(text[len(num):]))
	n, err := strconv.ParseInt(strings.TrimSpace(num), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%q is not a size, such as 4MiB", text)
	}
	factor := map[string]int64{"": 1, "b": 1, "kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30}[unit]
	if factor == 0 {
		return 0, fmt.Errorf("%q has no unit B, KiB, MiB or GiB", text)
	}
	if n < 0 || n > (1<<62)/factor {
		return 0, fmt.Errorf("%q is out of range", text)
	}
	return Size(n * factor), nil
}

// Pattern is a regular expression in RE2 syntax; nil when there is none.
type Pattern struct{ *regexp.Regexp }

// maxSecretFile bounds a file named by {file: …}.
const maxSecretFile = 64 << 10

func readSecretFile(path string) (string, error) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return "", fmt.Errorf("file %s does not exist", path)
	case err != nil:
		return "", fmt.Errorf("read file: %w", err)
	case !info.Mode().IsRegular():
		return "", fmt.Errorf("file %s is not a regular file", path)
	case info.Size() > maxSecretFile:
		return "", fmt.Errorf("file %s is larger than %s", path, Size(maxSecretFile))
	}
	b, err := os.ReadFile(path) //nolint:gosec // the path is the operator's
	if err != nil {
		return "", fmt.Errorf("read file: %w", err)
	}
	return strings.TrimRight(string(b), "\r\n"), nil
}

// expand replaces ${NAME} and ${NAME:-default}; $$ stands for one dollar.
func expand(s string, getenv func(string) (string, bool)) (string, error) {
	if !strings.Contains(s, "$") {
		return s, nil
	}
	var b strings.Builder
	var missing []string
	for i := 0; i < len(s); i++ {
		switch {
		case strings.HasPrefix(s[i:], "$$"):
			b.WriteByte('$')
			i++
		case strings.HasPrefix(s[i:], "${"):
			end := strings.IndexByte(s[i:], '}')
			if end < 0 {
				return "", errors.New("${ is not closed by }")
			}
			name, def, hasDef := strings.Cut(s[i+2:i+end], ":-")
			v, ok := getenv(name)
			switch {
			case ok && (v != "" || !hasDef):
				b.WriteString(v)
			case hasDef:
				b.WriteString(def)
			default:
				missing = append(missing, name)
			}
			i += end
		default:
			b.WriteByte(s[i])
		}
	}
	if len(missing) > 0 {
		return "", fmt.Errorf("environment variable %s is not set", strings.Join(missing, ", "))
	}
	return b.String(), nil
}
