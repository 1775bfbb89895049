package config

import (
	"fmt"
	"net"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"time"
)

// validate checks what no single value can tell.
func (d *decoder) validate(c *Config) {
	d.signs(reflect.ValueOf(*c), "")
	d.admin(c)
	d.limits(c)
	d.installations(c)
	for i := range c.Routes {
		d.route(c, i)
	}
}

// at reports a problem with a key, on its line or that of the nearest key above.
// A key that has a problem already is not judged again.
func (d *decoder) at(key, format string, args ...any) {
	if d.reported(key) {
		return
	}
	d.problems = append(d.problems,
		Problem{File: d.file, Line: d.lineOf(key), Key: key, Text: fmt.Sprintf(format, args...)})
}

func (d *decoder) lineOf(key string) int {
	for key != "" {
		if n, ok := d.lines[key]; ok {
			return n
		}
		key = key[:max(0, strings.LastIndexAny(key, ".["))]
	}
	return 0
}

// signs refuses negative numbers wherever they stand: none means anything.
func (d *decoder) signs(v reflect.Value, key string) {
	switch v.Kind() {
	case reflect.Struct:
		for name, f := range fieldsOf(v.Type()) {
			d.signs(v.FieldByIndex(f.Index), join(key, name))
		}
	case reflect.Slice:
		for i := range v.Len() {
			d.signs(v.Index(i), fmt.Sprintf("%s[%d]", key, i))
		}
	case reflect.Pointer:
		if !v.IsNil() {
			d.signs(v.Elem(), key)
		}
	case reflect.Int, reflect.Int64:
		if v.Int() < 0 {
			d.at(key, "must not be negative")
		}
	case reflect.Float64:
		if !(v.Float() >= 0 && v.Float() <= 1e9) { // also refuses NaN
			d.at(key, "must be between 0 and 1e9")
		}
	}
}

func (d *decoder) admin(c *Config) {
	if c.Admin.Listen == "off" {
		return
	}
	host, _, err := net.SplitHostPort(c.Admin.Listen)
	if err != nil {
		d.at("admin.listen", "%q is not host:port or off", c.Admin.Listen)
		return
	}
	if !loopback(host) && c.Admin.Token == "" {
		d.at("admin.token", "is missing: %s can be reached from other machines", c.Admin.Listen)
	}
}

func loopback(host string) bool {
	if host == "localhost" {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}

func (d *decoder) limits(c *Config) {
	if c.Inbound.RetryMax < c.Inbound.RetryBase {
		d.at("inbound.retry_max", "is below inbound.retry_base")
	}
	if c.Reconnect.Max < c.Reconnect.Base {
		d.at("reconnect.max", "is below reconnect.base")
	}
	if c.Inbound.SyncWithin > 2*time.Second {
		d.at("inbound.sync_within", "is above 2s, after which the platform has given up")
	}
}

func (d *decoder) installations(c *Config) {
	if len(c.Installations) == 0 {
		d.at("installations", "is missing: there is no bot to connect")
	}
	first := map[string]int{}
	for i, in := range c.Installations {
		key := fmt.Sprintf("installations[%d]", i)
		if other, ok := first[in.ID]; ok {
			d.at(key+".id", "%q is used on line %d already", in.ID, d.lineOf(idKey(other)))
		} else {
			first[in.ID] = i
		}
		d.base(in, key+".api_base", in.APIBase)
		d.base(in, key+".oapi_base", in.OAPIBase)
		if in.Silence <= in.PingEvery {
			d.at(key+".silence", "must be above ping_every, else a healthy link is cut")
		}
	}
}

func idKey(i int) string { return fmt.Sprintf("installations[%d].id", i) }

func (d *decoder) base(in Installation, key, base string) {
	u, err := url.Parse(base)
	switch {
	case err != nil || u.Host == "":
		d.at(key, "is not a URL with a host")
	case u.Scheme == "https":
	case u.Scheme != "http":
		d.at(key, "has the scheme %q, not https", u.Scheme)
	case !in.AllowInsec:
		d.at(key, "is http; only allow_insecure: true permits that, on loopback")
	case !loopback(u.Hostname()):
		d.at(key, "is http and %s is not a loopback address", u.Hostname())
	}
}

func (d *decoder) route(c *Config, i int) {
	r := &c.Routes[i]
	key := fmt.Sprintf("routes[%d]", i)
	if r.Name == "" {
		r.Name = fmt.Sprintf("route-%d", i+1)
	}
	n := 0
	for _, set := range []bool{r.Handler.Echo != nil, r.Handler.HTTP != nil, r.Handler.Exec != nil} {
		if set {
			n++
		}
	}
	if n != 1 {
		d.at(key+".handler", "must have exactly one of echo, http, exec; it has %d", n)
	}
	for j, id := range r.Match.Installations {
		if !slices.ContainsFunc(c.Installations, func(in Installation) bool { return in.ID == id }) {
			d.at(fmt.Sprintf("%s.match.installations[%d]", key, j),
				"there is no installation %q", id)
		}
	}
	if h := r.Handler.HTTP; h != nil {
		d.handlerURL(key+".handler.http.url", h.URL.Reveal())
	}
}

func (d *decoder) handlerURL(key, raw string) {
	u, err := url.Parse(raw)
	if err != nil || u.Host == "" || !strings.HasPrefix(u.Scheme, "http") {
		d.at(key, "is not an http or https URL")
	}
}
