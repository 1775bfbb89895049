package config

import (
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// review looks in a configuration without mistakes for what has no effect, or another
// one than it seems to have.
func (d *decoder) review(c *Config) {
	d.reviewEdge(c)
	d.reviewClients(c.Installations)
	d.open("admin.token", c.Admin.Token, "requests need none")
	if len(c.Routes) == 0 {
		d.warn("routes", "is missing, so messages are taken and not handled")
		return
	}
	d.reviewTopics(c)
	for i := range c.Routes {
		d.reviewTimes(c, i)
		d.reviewMatch(&c.Routes[i].Match, routeKey(i)+".match")
		d.reviewHandler(&c.Routes[i].Handler, routeKey(i)+".handler")
	}
}

func (d *decoder) reviewEdge(c *Config) {
	if len(c.Edge.Consumers) == 0 {
		if _, ok := d.lines["edge"]; ok {
			d.warn("edge", "has no consumers, so nobody listens")
		}
		return
	}
	u, err := url.Parse(c.Edge.PublicURL)
	if err == nil && u.Scheme == "http" && !loopback(u.Hostname()) {
		d.warn("edge.public_url", "is http and not on loopback, so secrets of consumers and "+
			"messages cross the network unencrypted")
	}
	named := map[string]bool{}
	for _, r := range c.Routes {
		if r.Handler.Edge != nil {
			named[r.Handler.Edge.Consumer] = true
		}
	}
	if len(named) > 0 && c.Inbound.Workers == 0 && c.InboundWorkers() == workers {
		d.warn("inbound.workers", "is %d as long as some route does not lead to the edge, "+
			"so a bot there that works on %d messages holds up all others; %d is usual for the edge",
			workers, workers, edgeWorkers)
	}
	for i, consumer := range c.Edge.Consumers {
		if !named[consumer.Name] {
			d.warn(consumerKey(i), "no route leads to this consumer, so it gets no messages")
		}
		if key := consumerKey(i) + ".max_connections"; d.given(key) &&
			consumer.MaxConnections > c.Edge.MaxConnections {
			d.warn(key, "is above edge.max_connections, which holds for all consumers together")
		}
	}
}

// reviewClients looks for two sessions of one bot, between which its gateway divides
// the messages at random.
func (d *decoder) reviewClients(installations []Installation) {
	type client struct{ platform, base, id string }
	first := map[client]int{}
	for i, in := range installations {
		this := client{in.Platform, origin(in.APIBase), in.ClientID}
		other, ok := first[this]
		if !ok {
			first[this] = i
			continue
		}
		d.warn(installationKey(i)+".client_id", "is that on line %d, at the same platform, "+
			"so each of the two gets only a part of the messages",
			d.lineOf(installationKey(other)+".client_id"))
	}
}

// origin is what two spellings of a host have in common.
func origin(base string) string {
	u, err := url.Parse(base)
	if err != nil {
		return base
	}
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return strings.ToLower(u.Hostname()) + ":" + port
}

// topicOf is the callback that brings messages of a kind. Events need none.
var topicOf = map[string]string{
	"message":  "/v1.0/im/bot/messages/get",
	"delegate": "/v1.0/im/bot/messages/delegate",
	"card":     "/v1.0/card/instances/callback",
	"query":    "/v1.0/card/dynamicData/get",
	"plugin":   "/v1.0/graph/api/invoke",
}

// set is a set of words.
type set map[string]bool

func setOf(words []string) set {
	s := set{}
	for _, w := range words {
		s[w] = true
	}
	return s
}

// reviewTopics compares what installations subscribe to with what routes ask for.
func (d *decoder) reviewTopics(c *Config) {
	byBot, all := map[string]set{}, set{}
	for _, in := range c.Installations {
		byBot[in.ID] = setOf(in.Topics)
		for topic := range byBot[in.ID] {
			all[topic] = true
		}
	}
	taken := taken(c.Routes)
	for i, in := range c.Installations {
		for _, kind := range sortedKeys(topicOf) {
			topic := topicOf[kind]
			if byBot[in.ID][topic] && !taken[in.ID][kind] && !taken[""][kind] {
				key := installationKey(i) + ".topics"
				d.warn(key, "%s brings messages of kind %s, which no route takes", topic, kind)
			}
		}
	}
	for i := range c.Routes {
		m, key := &c.Routes[i].Match, routeKey(i)+".match.kinds"
		for _, kind := range sortedKeys(setOf(m.Kinds)) {
			topic := topicOf[kind]
			listed := topic == "" || len(m.Installations) == 0 && all[topic] ||
				slices.ContainsFunc(m.Installations, func(id string) bool { return byBot[id][topic] })
			if !listed {
				d.warn(key, "%s never comes: it needs %s in the topics of an installation "+
					"of this route", kind, topic)
			}
		}
	}
}

// taken gives the kinds that some route may take, by installation; those of any
// installation stand under no name.
func taken(routes []Route) map[string]set {
	out := map[string]set{}
	for _, r := range routes {
		kinds, bots := r.Match.Kinds, r.Match.Installations
		if len(kinds) == 0 {
			kinds = sortedKeys(topicOf)
		}
		if len(bots) == 0 {
			bots = []string{""}
		}
		kinds = sortedKeys(setOf(kinds))
		for _, bot := range bots {
			if out[bot] == nil {
				out[bot] = set{}
			}
			for _, kind := range kinds {
				out[bot][kind] = true
			}
		}
	}
	return out
}

// reviewTimes looks for limits of a route that another one always undercuts.
func (d *decoder) reviewTimes(c *Config, i int) {
	r, key := &c.Routes[i], routeKey(i)
	least := limit{"inbound.timeout", c.Inbound.Timeout}
	under := func(key string, value time.Duration) {
		if d.given(key) && value > least.value {
			d.warn(key, "is above %s, which ends the try first", d.named(least))
		}
	}
	under(key+".timeout", r.Timeout)
	if r.Timeout > 0 && r.Timeout < least.value {
		least = limit{key + ".timeout", r.Timeout}
	}
	if ack := (limit{"edge.ack_within", c.Edge.AckWithin}); r.Handler.Edge != nil &&
		r.Timeout > 0 && r.Timeout < ack.value {
		d.warn(key+".timeout", "is below %s, and ends the wait for the consumer's answer first",
			d.named(ack))
	}
	if h := r.Handler.HTTP; h != nil {
		under(key+".handler.http.timeout", h.Timeout)
	}
	if h := r.Handler.Exec; h != nil {
		under(key+".handler.exec.timeout", h.Timeout)
	}
}

// reviewMatch looks for what no message can have together.
func (d *decoder) reviewMatch(m *Match, key string) {
	if m.Mention != nil && *m.Mention && len(m.Chats) > 0 && !slices.Contains(m.Chats, "group") {
		d.warn(key+".mention", "is told of groups only, and chats has no group, so nothing matches")
	}
}

// reviewHandler looks for what the handler does not do, or cannot.
func (d *decoder) reviewHandler(h *Handler, key string) {
	if h.HTTP != nil {
		d.open(key+".http.secret", h.HTTP.Secret, "requests are not signed")
	}
	if h.Exec == nil {
		return
	}
	if info, err := os.Stat(h.Exec.Dir); h.Exec.Dir != "" && (err != nil || !info.IsDir()) {
		d.warn(key+".exec.dir", "%s is no directory here", d.shown(key+".exec.dir", h.Exec.Dir))
		return
	}
	program := h.Exec.Command[0]
	if strings.Contains(program, "/") && !filepath.IsAbs(program) {
		program = filepath.Join(h.Exec.Dir, program)
		if !filepath.IsAbs(program) {
			program = "./" + program // else it would be looked for in PATH
		}
	}
	if _, err := exec.LookPath(program); err != nil {
		at := key + ".exec.command[0]"
		d.warn(at, "%s is no program here that can be run, so messages become dead letters",
			d.shown(at, h.Exec.Command[0]))
	}
}

// open warns of a secret that the file has and that is empty, as a variable may be.
func (d *decoder) open(key string, s Secret, so string) {
	if s == "" && (d.given(key) || d.given(key+".file")) {
		d.warn(key, "is empty, so %s", so)
	}
}
