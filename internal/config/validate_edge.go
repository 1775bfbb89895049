package config

import (
	"crypto/tls"
	"encoding/pem"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// edge checks the gateway for consumers, and the routes to them.
func (d *decoder) edge(c *Config) {
	e := &c.Edge
	d.edgeListen(e)
	d.publicURL(e)
	d.pair(e)
	names, ids := map[string]bool{}, map[string]int{}
	for i, consumer := range e.Consumers {
		key := consumerKey(i)
		d.consumer(consumer, key)
		if names[consumer.Name] {
			d.at(key+".name", "is used already")
		}
		if other, ok := ids[consumer.ClientID]; ok {
			d.at(key+".client_id", "is used on line %d already",
				d.lineOf(consumerKey(other)+".client_id"))
		}
		names[consumer.Name], ids[consumer.ClientID] = true, i
	}
	if len(names) > 0 {
		d.inOrder(limit{"edge.ack_within", e.AckWithin}, limit{"inbound.timeout", c.Inbound.Timeout})
		d.listeners(c)
	}
	for i := range c.Routes {
		to := c.Routes[i].Handler.Edge
		if key := routeKey(i) + ".handler.edge.consumer"; to != nil && !names[to.Consumer] {
			d.at(key, "there is no consumer %s in edge.consumers", d.shown(key, to.Consumer))
		}
	}
}

func consumerKey(i int) string { return fmt.Sprintf("edge.consumers[%d]", i) }

func (d *decoder) edgeListen(e *Edge) {
	host, port, err := net.SplitHostPort(e.Listen)
	if err == nil {
		_, err = strconv.ParseUint(port, 10, 16)
	}
	switch {
	case err != nil:
		d.at("edge.listen", "%s is not host:port", d.shown("edge.listen", e.Listen))
	case e.PublicURL == "" && !loopback(host) && len(e.Consumers) > 0:
		d.at("edge.public_url", "is missing: consumers on other machines have to know where to connect")
	}
}

// listeners refuses one address for both. The edge is the later one of the two to
// listen, and fails.
func (d *decoder) listeners(c *Config) {
	const admin, edge = "admin.listen", "edge.listen"
	switch {
	case d.reported(admin) || d.reported(edge) || !collide(c.Admin.Listen, c.Edge.Listen):
	case d.given(edge):
		d.at(edge, "is taken by %s (%s)", admin, d.whence(admin, c.Admin.Listen))
	default:
		d.at(admin, "is taken by %s (%s)", edge, d.whence(edge, c.Edge.Listen))
	}
}

// whence tells on which line a value stands, or the default.
func (d *decoder) whence(key, def string) string {
	if d.given(key) {
		return fmt.Sprintf("line %d", d.lineOf(key))
	}
	return def + ", the default"
}

// collide tells whether nobody can listen on both addresses. What is no address
// collides with nothing.
func collide(a, b string) bool {
	hostA, portA, err := net.SplitHostPort(a)
	hostB, portB, err2 := net.SplitHostPort(b)
	if err != nil || err2 != nil {
		return false
	}
	numberA, _ := strconv.Atoi(portA) // it has been checked
	numberB, _ := strconv.Atoi(portB)
	if numberA != numberB || numberA == 0 {
		return false
	}
	ipA, ipB := address(hostA), address(hostB)
	switch {
	case !ipA.IsValid() || !ipB.IsValid():
		return strings.EqualFold(hostA, hostB)
	case ipA == netip.IPv6Unspecified() || ipB == netip.IPv6Unspecified():
		return true // it stands for both families
	case ipA.IsUnspecified() || ipB.IsUnspecified():
		return ipA.Is4() == ipB.Is4()
	}
	return ipA == ipB
}

// address is what a listener makes of a host, invalid for a name.
func address(host string) netip.Addr {
	switch strings.ToLower(host) {
	case "":
		return netip.IPv6Unspecified()
	case "localhost":
		host = "127.0.0.1"
	}
	ip, _ := netip.ParseAddr(host) // a name has none
	return ip.Unmap()
}

func (d *decoder) publicURL(e *Edge) {
	const key = "edge.public_url"
	u, err := parseURL(e.PublicURL)
	switch {
	case e.PublicURL == "":
	case err != nil || u.User != nil || u.RawQuery != "" ||
		u.Fragment != "" || (u.Scheme != "http" && u.Scheme != "https"):
		d.at(key, "is not an http or https URL, such as https://bots.example.com")
	case address(u.Hostname()).IsUnspecified():
		d.at(key, "names an address to listen on, to which nobody can connect")
	case u.Scheme == "http" && e.TLSCert != "":
		d.at(key, "is http, and must be https: with edge.tls_cert the edge speaks TLS only")
	}
}

// pair checks the certificate and its key, as far as the two files tell.
func (d *decoder) pair(e *Edge) {
	const certKey, keyKey = "edge.tls_cert", "edge.tls_key"
	if (e.TLSCert == "") != (e.TLSKey == "") {
		d.at(certKey, "needs edge.tls_key, and the other way round")
	}
	if e.TLSCert == "" || e.TLSKey == "" {
		return
	}
	d.certificates(certKey, e.TLSCert)
	key, err := readFile(e.TLSKey, maxSecretFile)
	if err != nil {
		d.at(keyKey, "%s: %v", d.shown(keyKey, e.TLSKey), err)
	}
	cert, _ := readFile(e.TLSCert, maxCertificates) // what is wrong with it is reported
	if d.reported(certKey) || d.reported(keyKey) {
		return
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil { // it may tell what the files hold
		d.at(keyKey, "%s %s", d.shown(keyKey, e.TLSKey), noKey(key))
		return
	}
	d.leaf(e, &pair)
}

// noKey tells why a file is no key for a certificate.
func noKey(file []byte) string {
	why := "holds no private key in PEM form"
	for block, rest := pem.Decode(file); block != nil; block, rest = pem.Decode(rest) {
		switch {
		case block.Type == "ENCRYPTED PRIVATE KEY" || block.Headers["DEK-Info"] != "":
			return "is encrypted, and there is nobody to ask for the password"
		case strings.HasSuffix(block.Type, "PRIVATE KEY"):
			why = "does not fit the certificate that edge.tls_cert begins with"
		}
	}
	return why
}

// leaf warns of a certificate that consumers will not take. It is no mistake: it may
// be renewed while the edge serves, or stand behind a proxy that does not look.
func (d *decoder) leaf(e *Edge, pair *tls.Certificate) {
	const key = "edge.tls_cert"
	switch now := time.Now(); {
	case len(e.Consumers) == 0:
		return
	case now.After(pair.Leaf.NotAfter):
		d.warn(key, "the certificate has expired, on %s", pair.Leaf.NotAfter.Format(time.DateOnly))
	case now.Before(pair.Leaf.NotBefore):
		d.warn(key, "the certificate is not valid before %s", pair.Leaf.NotBefore.Format(time.RFC3339))
	}
	where, host := "edge.listen", ""
	if u, err := url.Parse(e.PublicURL); err == nil && e.PublicURL != "" {
		where, host = "edge.public_url", u.Hostname()
	} else if listen, _, err := net.SplitHostPort(e.Listen); err == nil {
		host = address(listen).String()
	}
	if err := pair.Leaf.VerifyHostname(host); err != nil && !d.reported(where) {
		d.warn(key, "the certificate does not name the host of %s, to which consumers connect", where)
	}
}

func (d *decoder) consumer(c Consumer, key string) {
	if !validID.MatchString(c.Name) {
		d.at(key+".name", "must be up to 64 letters, digits, dots, dashes and underscores")
	}
	d.tidy(key+".client_id", c.ClientID)
	d.tidy(key+".client_secret", c.ClientSecret.Reveal())
}
