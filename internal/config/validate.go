package config

import (
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"net"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"unicode"
)

// validate checks what no single value can tell.
func (d *decoder) validate(c *Config) {
	d.admin(c)
	d.inOrder(c.Inbound.RetryBase <= c.Inbound.RetryMax, "inbound.retry_base", "inbound.retry_max")
	d.inOrder(c.Reconnect.Base <= c.Reconnect.Max, "reconnect.base", "reconnect.max")
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

// inOrder reports a pair of limits that contradict each other, with the one that
// the file has.
func (d *decoder) inOrder(ok bool, low, high string) {
	if ok || d.reported(low) || d.reported(high) {
		return
	}
	name := func(key string) string { return key[strings.LastIndexByte(key, '.')+1:] }
	if _, given := d.lines[high]; given {
		d.at(high, "is below %s", name(low))
	} else {
		d.at(low, "is above %s, which has its default", name(high))
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
	if in.Silence == in.PingEvery {
		d.at(key+".silence", "must be above ping_every, else a healthy link is cut")
	}
	d.inOrder(in.PingEvery <= in.Silence, key+".ping_every", key+".silence")
}

// tidy refuses what copying a credential leaves around it: the platform's answer
// would only say that it is wrong.
func (d *decoder) tidy(key, value string) {
	odd := func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }
	if strings.ContainsFunc(value, odd) {
		d.at(key, "holds white space or a control character")
	}
}

func (d *decoder) base(in Installation, key, base string) {
	u, err := url.Parse(base)
	switch {
	case err != nil || u.Host == "" || u.User != nil || u.RawQuery != "",
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
	u, err := url.Parse(proxy)
	if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "socks5") {
		d.at(key, "is not an http or socks5 URL, nor none")
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
	u, err := url.Parse(h.URL.Reveal())
	if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
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
