package config

import (
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// validate checks what no single value can tell.
func (d *decoder) validate(c *Config) {
	d.admin(c)
	d.store(c)
	d.inOrder(limit{"inbound.retry_base", c.Inbound.RetryBase},
		limit{"inbound.retry_max", c.Inbound.RetryMax})
	d.inOrder(limit{"reconnect.base", c.Reconnect.Base}, limit{"reconnect.max", c.Reconnect.Max})
	if age := c.Reconnect.MaxAge; age > 0 && age < minAge {
		d.at("reconnect.max_age", "is above 0, which is never, and below %s", short(minAge))
	}
	if len(c.Installations) == 0 {
		d.at("installations", "is missing: there is no bot to connect")
	}
	first := map[string]int{} // the installations by id
	for i, in := range c.Installations {
		d.installation(in, installationKey(i))
		if other, ok := first[in.ID]; ok {
			d.at(installationKey(i)+".id", "is used on line %d already",
				d.lineOf(installationKey(other)+".id"))
		} else {
			first[in.ID] = i
		}
	}
	d.routes(c.Routes, first)
	d.edge(c)
}

// routes checks each route, and what they are to each other.
func (d *decoder) routes(routes []Route, installations map[string]int) {
	names := map[string]int{} // the routes by name
	last := len(routes)       // the first route that takes everything
	for i := range routes {
		r, key := &routes[i], routeKey(i)
		if r.Name == "" {
			r.Name = fmt.Sprintf("route-%d", i+1)
		}
		d.route(r, key)
		d.match(r.Match, key+".match", installations)
		if other, ok := names[r.Name]; ok {
			d.at(key+".name", "is used on line %d already", d.lineOf(routeKey(other)+".name"))
		} else {
			names[r.Name] = i
		}
		switch {
		case i > last:
			d.at(key, "is never reached, because the route on line %d takes everything",
				d.lineOf(routeKey(last)))
		case r.Match.all() && !d.faulty[key+".match"] && !d.faultyBelow[key+".match"]:
			last = i
		}
	}
}

// all tells whether nothing is asked.
func (m *Match) all() bool {
	return len(m.Installations)+len(m.Platforms)+len(m.Kinds)+len(m.Chats) == 0 &&
		m.Mention == nil && m.Prefix == "" && m.Pattern.Regexp == nil
}

func installationKey(i int) string { return fmt.Sprintf("installations[%d]", i) }

func routeKey(i int) string { return fmt.Sprintf("routes[%d]", i) }

// minAge is twice as long as a session has to live to be a good one: replaced
// earlier, it would never become that.
const minAge = time.Minute

// limit is the value of a key that is compared with another.
type limit struct {
	key   string
	value time.Duration
}

// inOrder reports a pair of limits that contradict each other, at the one that the
// file has.
func (d *decoder) inOrder(low, high limit) {
	switch {
	case low.value <= high.value || d.reported(low.key) || d.reported(high.key):
	case d.given(high.key):
		d.at(high.key, "is below %s", d.named(low))
	default:
		d.at(low.key, "is above %s", d.named(high))
	}
}

// given tells whether the file has a value for the key.
func (d *decoder) given(key string) bool {
	_, ok := d.written[key]
	return ok
}

// named is a key with its value, for what is said of another one.
func (d *decoder) named(l limit) string {
	if !d.given(l.key) {
		return fmt.Sprintf("%s (%s, the default)", l.key, short(l.value))
	}
	return fmt.Sprintf("%s (%s on line %d)", l.key, printable(d.written[l.key]), d.lineOf(l.key))
}

// minFile is room for an empty store and a few messages.
const minFile Size = 1 << 20

// store checks what is known of files that are not open yet.
func (d *decoder) store(c *Config) {
	if c.Store.Kind != "sqlite" {
		return
	}
	if m := c.Store.MaxFile; m > 0 && m < minFile {
		d.at("store.max_file", "is above 0, which is as large as the disk allows, and below %s", minFile)
	}
	info, err := os.Stat(c.Store.Path)
	switch {
	case c.Store.Path == "":
		d.at("store.path", "is empty")
	case err == nil && info.IsDir():
		d.at("store.path", "is a directory, and should be a file in one")
	case c.Admin.Socket != "" && filepath.Clean(c.Admin.Socket) == filepath.Clean(c.Store.Path):
		d.at("admin.socket", "is the file of store.path")
	}
}

// maxSocket leaves room below the 104 bytes that a socket's name may have on every
// system: while it is made, it stands in a directory of its own.
const maxSocket = 84

func (d *decoder) admin(c *Config) {
	if len(c.Admin.Socket) > maxSocket {
		d.at("admin.socket", "is longer than %d bytes; systems bound the names of sockets", maxSocket)
	}
	if c.Admin.Listen == "off" {
		return
	}
	host, port, err := net.SplitHostPort(c.Admin.Listen)
	if err == nil {
		_, err = strconv.ParseUint(port, 10, 16)
	}
	if err != nil {
		d.at("admin.listen", "%s is not host:port or off", d.shown("admin.listen", c.Admin.Listen))
		return
	}
	d.tidy("admin.token", c.Admin.Token.Reveal())
	if !loopback(host) && c.Admin.Token == "" {
		d.at("admin.token", "is missing: other machines can reach admin.listen")
	}
}

func loopback(host string) bool {
	if host == "localhost" {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}

// validID keeps ids fit for labels, paths and headers.
var validID = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

func (d *decoder) installation(in Installation, key string) {
	if !validID.MatchString(in.ID) {
		d.at(key+".id", "must be up to 64 letters, digits, dots, dashes and underscores")
	}
	d.tidy(key+".client_id", in.ClientID)
	d.tidy(key+".client_secret", in.ClientSecret.Reveal())
	d.tidy(key+".robot_code", in.RobotCode)
	d.base(in, key+".api_base", in.APIBase)
	d.base(in, key+".oapi_base", in.OAPIBase)
	d.proxy(key+".proxy", in.Proxy.Reveal())
	d.certificates(key+".ca_file", in.CAFile)
	ping, silence := limit{key + ".ping_every", in.PingEvery}, limit{key + ".silence", in.Silence}
	if in.Silence == in.PingEvery {
		d.at(silence.key, "must be above %s, else a healthy link is cut", d.named(ping))
	}
	d.inOrder(ping, silence)
	for i, host := range in.ReplyHosts {
		d.host(fmt.Sprintf("%s.reply_hosts[%d]", key, i), host)
	}
}

// tidy refuses what copying a credential leaves around it: the platform's answer
// would only say that it is wrong.
func (d *decoder) tidy(key, value string) {
	odd := func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }
	if strings.ContainsFunc(value, odd) {
		d.at(key, "holds white space or a control character")
	}
}

var errURL = errors.New("not a URL with a host that can be dialled")

// parseURL reads a URL with a host and, if there is one, a port that can be dialled.
func parseURL(s string) (*url.URL, error) {
	u, err := url.Parse(s)
	if err != nil || u.Hostname() == "" {
		return nil, errURL
	}
	if port := u.Port(); port != "" {
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
			return nil, errURL
		}
	}
	return u, nil
}

func (d *decoder) base(in Installation, key, base string) {
	u, err := parseURL(base)
	switch {
	case err != nil || u.User != nil || u.RawQuery != "",
		strings.Trim(u.Path, "/") != "":
		d.at(key, "must be a scheme and a host, such as https://api.dingtalk.com")
	case u.Scheme == "https":
	case u.Scheme != "http":
		d.at(key, "does not begin with https://")
	case !in.AllowInsec:
		d.at(key, "is http; only allow_insecure: true permits that, on loopback")
	case !loopback(u.Hostname()):
		d.at(key, "is http, and its host is not a loopback address")
	}
}

func (d *decoder) proxy(key, proxy string) {
	if proxy == "" || proxy == "none" {
		return
	}
	u, err := parseURL(proxy)
	if err != nil || (u.Scheme != "http" && u.Scheme != "socks5") {
		d.at(key, "is not an http or socks5 URL, nor none")
	}
}

// host refuses what no host is equal to.
func (d *decoder) host(key, host string) {
	switch u, err := parseURL("https://" + host); {
	case err != nil || u.Host != host:
		d.at(key, "is not a host, nor a host with a port")
	case u.Port() == "443":
		d.at(key, "has the port that https has anyway; leave it out")
	}
}

// maxCertificates bounds a file of certificates.
const maxCertificates = 16 << 20

func (d *decoder) certificates(key, path string) {
	if path == "" {
		return
	}
	b, err := readFile(path, maxCertificates)
	switch {
	case err != nil:
		d.at(key, "%s: %v", d.shown(key, path), err)
	case !x509.NewCertPool().AppendCertsFromPEM(b):
		d.at(key, "%s holds no certificate in PEM form", d.shown(key, path))
	}
}

func (d *decoder) route(r *Route, key string) {
	d.oneHandler(r.Handler, key+".handler")
	if h := r.Handler.HTTP; h != nil {
		d.http(h, key+".handler.http")
	}
	if h := r.Handler.Exec; h != nil && len(h.Command) == 0 {
		d.at(key+".handler.exec.command", "is empty")
	}
}

func (d *decoder) match(m Match, key string, installations map[string]int) {
	if strings.TrimLeftFunc(m.Prefix, unicode.IsSpace) != m.Prefix {
		d.at(key+".prefix", "begins with white space, which is left out of the text")
	}
	for i, id := range m.Installations {
		at := fmt.Sprintf("%s.installations[%d]", key, i)
		if _, ok := installations[id]; !ok {
			d.at(at, "there is no installation %s", d.shown(at, id))
		}
	}
}

func (d *decoder) oneHandler(h Handler, key string) {
	n := 0
	for _, set := range []bool{h.Echo != nil, h.HTTP != nil, h.Exec != nil, h.Edge != nil} {
		if set {
			n++
		}
	}
	switch {
	case n == 0 && !d.faultyBelow[key]:
		d.at(key, "is missing; it is one of echo, http, exec, edge")
	case n > 1:
		d.at(key, "has %d of echo, http, exec, edge, and may have one", n)
	}
}

func (d *decoder) http(h *HTTP, key string) {
	u, err := parseURL(h.URL.Reveal())
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") {
		d.at(key+".url", "is not an http or https URL")
	}
	if len(h.OldSecrets) > 0 && h.Secret == "" {
		d.at(key+".old_secrets", "is set, and secret is not")
	}
	d.signing(key+".secret", h.Secret)
	for i, s := range h.OldSecrets {
		d.signing(fmt.Sprintf("%s.old_secrets[%d]", key, i), s)
	}
}

// signing checks the form of a secret that says that it is base64.
func (d *decoder) signing(key string, s Secret) {
	encoded, ok := strings.CutPrefix(s.Reveal(), "whsec_")
	if !ok {
		return
	}
	b, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(encoded, "="))
	if err != nil || len(b) == 0 {
		d.at(key, "begins with whsec_ and is not base64 after it")
	}
}
