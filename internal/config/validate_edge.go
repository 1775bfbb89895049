package config

import (
	"fmt"
	"net"
	"net/url"
	"strconv"
)

// edge checks the gateway for consumers, and the routes to them.
func (d *decoder) edge(c *Config) {
	e := &c.Edge
	d.edgeListen(e)
	d.publicURL(e.PublicURL)
	if (e.TLSCert == "") != (e.TLSKey == "") {
		d.at("edge.tls_cert", "needs edge.tls_key, and the other way round")
	}
	names, ids := map[string]bool{}, map[string]int{}
	for i, consumer := range e.Consumers {
		key := fmt.Sprintf("edge.consumers[%d]", i)
		d.consumer(consumer, key)
		if names[consumer.Name] {
			d.at(key+".name", "is used already")
		}
		if other, ok := ids[consumer.ClientID]; ok {
			d.at(key+".client_id", "is used on line %d already",
				d.lineOf(fmt.Sprintf("edge.consumers[%d].client_id", other)))
		}
		names[consumer.Name], ids[consumer.ClientID] = true, i
	}
	if len(names) > 0 {
		d.inOrder(e.AckWithin <= c.Inbound.Timeout, "edge.ack_within", "inbound.timeout")
	}
	for i := range c.Routes {
		to := c.Routes[i].Handler.Edge
		if key := routeKey(i) + ".handler.edge.consumer"; to != nil && !names[to.Consumer] {
			d.at(key, "there is no consumer %s in edge.consumers", d.shown(key, to.Consumer))
		}
	}
}

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

func (d *decoder) publicURL(public string) {
	u, err := url.Parse(public)
	if public != "" && (err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" ||
		u.Fragment != "" || (u.Scheme != "http" && u.Scheme != "https")) {
		d.at("edge.public_url", "is not an http or https URL, such as https://bots.example.com")
	}
}

func (d *decoder) consumer(c Consumer, key string) {
	if !validID.MatchString(c.Name) {
		d.at(key+".name", "must be up to 64 letters, digits, dots, dashes and underscores")
	}
	d.tidy(key+".client_id", c.ClientID)
	d.tidy(key+".client_secret", c.ClientSecret.Reveal())
}
