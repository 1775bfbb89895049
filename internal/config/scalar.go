package config

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"
)

// text gives the scalar with variables replaced, and whether there is one.
func (d *decoder) text(n ast.Node, key string) (string, bool) {
	var raw string
	switch x := n.(type) {
	case *ast.StringNode:
		raw = x.Value
	case *ast.LiteralNode:
		raw = strings.TrimRight(x.Value.Value, "\n")
	case ast.ScalarNode:
		raw = x.GetToken().Value
	case nil:
	default:
		d.problem(n, key, "must be a single value, not %s", describe(n))
		return "", false
	}
	d.written[key] = raw
	s, err := expand(raw, d.getenv)
	if err != nil {
		d.problem(n, key, "%v", err)
		return "", false
	}
	return s, true
}

// shown quotes a value as the file has it, that is with the names of variables
// and not what they hold: a variable may hold a secret, also where none belongs.
func (d *decoder) shown(key, value string) string {
	if raw, ok := d.written[key]; ok {
		value = raw
	}
	return strconv.Quote(printable(value))
}

// secret also takes {file: path}.
func (d *decoder) secret(n ast.Node, key string) (string, bool) {
	if _, ok := pairs(n); !ok {
		return d.text(n, key)
	}
	entries, _ := d.entries(n, key)
	if len(entries) != 1 || entries[0].name != "file" {
		d.problem(n, key, "must be text or {file: path}")
		return "", false
	}
	path, ok := d.text(d.resolve(entries[0].value, key), key+".file")
	if !ok {
		return "", false
	}
	b, err := readFile(path, maxSecretFile)
	if err != nil {
		d.problem(n, key, "%s: %v", d.shown(key+".file", path), err)
		return "", false
	}
	return strings.TrimRight(string(b), "\r\n"), true
}

func (d *decoder) scalar(v reflect.Value, n ast.Node, p place) {
	if v.Type() == typeSecret {
		if s, ok := d.secret(n, p.key); ok {
			v.SetString(s)
		}
		return
	}
	s, ok := d.text(n, p.key)
	if !ok {
		return
	}
	err := setScalar(v, s)
	if err == nil {
		err = inRange(v, p.tag)
	}
	if err != nil {
		d.problem(n, p.key, "%s %v", d.shown(p.key, s), err)
	}
}

// setScalar reads s as v's type demands. Errors go on after the value, which they
// do not hold.
func setScalar(v reflect.Value, s string) error {
	switch v.Interface().(type) {
	case time.Duration:
		dur, err := time.ParseDuration(s)
		if _, number := strconv.ParseFloat(s, 64); err != nil && number == nil {
			return errors.New("has no unit; write 500ms, 90s, 5m or 24h")
		}
		v.SetInt(int64(dur))
		return orElse(err, "is not a duration, such as 90s, 5m or 24h")
	case Size:
		n, err := parseSize(s)
		v.SetInt(int64(n))
		return err
	case Pattern:
		re, err := regexp.Compile(s)
		if err != nil {
			return patternError(err)
		}
		v.Set(reflect.ValueOf(Pattern{re}))
		return nil
	}
	return setBasic(v, s)
}

// patternError tells what is wrong with a regular expression without quoting it.
func patternError(err error) error {
	var se *syntax.Error
	if errors.As(err, &se) {
		return fmt.Errorf("is not a regular expression: %s", se.Code)
	}
	return errors.New("is not a regular expression")
}

func setBasic(v reflect.Value, s string) error {
	switch v.Kind() {
	case reflect.String:
		v.SetString(s)
	case reflect.Bool:
		if s != "true" && s != "false" {
			return errors.New("is neither true nor false")
		}
		v.SetBool(s == "true")
	case reflect.Int:
		n, err := strconv.Atoi(s)
		v.SetInt(int64(n))
		return orElse(err, "is not a whole number")
	case reflect.Float64:
		n, err := strconv.ParseFloat(s, 64)
		v.SetFloat(n)
		return orElse(err, "is not a number")
	}
	return nil
}

// short writes a duration as a file would have it: 2m, not 2m0s.
func short(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

func orElse(err error, text string) error {
	if err == nil {
		return nil
	}
	return errors.New(text)
}

// inRange holds a value against the oneof, min and max of its field.
func inRange(v reflect.Value, tag reflect.StructTag) error {
	words := strings.Fields(tag.Get("oneof"))
	if len(words) > 0 && !slices.Contains(words, v.String()) {
		if near := nearest(v.String(), words); near != "" {
			return fmt.Errorf("is not one of %s; did you mean %s?", strings.Join(words, ", "), near)
		}
		return fmt.Errorf("is not one of %s", strings.Join(words, ", "))
	}
	for _, bound := range []struct {
		tag, text string
		wrong     int
	}{{"min", "is below", -1}, {"max", "is above", +1}} {
		limit := tag.Get(bound.tag)
		if limit != "" && compare(v, limit) == bound.wrong {
			return fmt.Errorf("%s %s", bound.text, limit)
		}
	}
	return nil
}

// compare tells whether v is below (-1), at (0) or above (+1) a limit written as in
// a file. What is no number at all is below.
func compare(v reflect.Value, limit string) int {
	to := reflect.New(v.Type()).Elem()
	if err := setScalar(to, limit); err != nil {
		return 0 // no field has such a limit
	}
	if v.Kind() == reflect.Float64 {
		return cmp.Compare(v.Float(), to.Float()) // NaN is below every number
	}
	return cmp.Compare(v.Int(), to.Int())
}
