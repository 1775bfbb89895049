package config_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// toEdge routes everything to the consumer of the edge.
const toEdge = "routes: [{handler: {edge: {consumer: a}}}]\n"

// warnings parses what is accepted and gives what it is warned of, one a line.
func warnings(t *testing.T, text string) string {
	t.Helper()
	return report(accepted(t, text, nil).Warnings)
}

func TestWarnings(t *testing.T) {
	const all = "routes: [{handler: {echo: {}}}]\n"
	const card = "    topics: [/v1.0/im/bot/messages/get, /v1.0/card/instances/callback]\n"
	second := strings.Replace(strings.TrimPrefix(bot, "installations:\n"), "id: bot", "id: two", 1)
	other := strings.Replace(second, "ding1", "ding2", 1)
	for _, tt := range []struct{ name, text, want string }{
		{"nothing", bot + all, ""},
		{"only chats to a consumer", bot + consumer + toEdge, ""},
		{"no routes", bot, "f: routes: is missing, so messages are taken and not handled"},
		{"an empty list of routes", bot + "routes: []", "5: routes: is missing, so messages are taken and not handled"},
		{"no consumers", bot + "edge: {listen: '127.0.0.1:1'}\n" + all, "5: edge: has no consumers, so nobody listens"},
		{"a consumer without a route", bot + consumer + all, "5: edge.consumers[0]: no route leads to this consumer, so it gets no messages"},
		{
			"more than all", bot + "edge: {max_connections: 2, consumers: [{name: a, client_id: a, client_secret: a, max_connections: 3}]}\n" + toEdge,
			"5: edge.consumers[0].max_connections: is above edge.max_connections, which holds for all consumers together",
		},
		{
			"in the clear", bot + "edge:\n  public_url: http://bots.example.com\n  consumers: [{name: a, client_id: a, client_secret: a}]\n" + toEdge,
			"6: edge.public_url: is http and not on loopback, so secrets of consumers and messages cross the network unencrypted",
		},
		{"in the clear on loopback", bot + "edge: {public_url: 'http://localhost:1', consumers: [{name: a, client_id: a, client_secret: a}]}\n" + toEdge, ""},
		{"behind a proxy", bot + "edge: {public_url: 'https://a', consumers: [{name: a, client_id: a, client_secret: a}]}\n" + toEdge, ""},

		{"no cards", bot + inMatch("kinds: [message, card]"), "7: routes[0].match.kinds: card never comes: it needs /v1.0/card/instances/callback in the topics of an installation of this route"},
		{
			"no queries and plugins", bot + card + inMatch("kinds: [query, card, plugin, message, event]"),
			"8: routes[0].match.kinds: plugin never comes: it needs /v1.0/graph/api/invoke in the topics of an installation of this route\n" +
				"8: routes[0].match.kinds: query never comes: it needs /v1.0/card/dynamicData/get in the topics of an installation of this route",
		},
		{"cards", bot + card + inMatch("kinds: [message, card]"), ""},
		{
			"cards of another one", bot + card + other + inMatch("kinds: [message, card], installations: [two]") + "  - handler: {echo: {}}\n",
			"11: routes[0].match.kinds: card never comes: it needs /v1.0/card/instances/callback in the topics of an installation of this route",
		},
		{"cards of one of two", bot + card + other + inMatch("kinds: [message, card], installations: [two, bot]"), ""},
		{"cards of any", bot + other + card + inMatch("kinds: [message, card]"), ""},
		{"cards that no route takes", bot + card + inMatch("kinds: [message]"), "5: installations[0].topics: /v1.0/card/instances/callback brings messages of kind card, which no route takes"},
		{"an installation without a route", bot + other + inMatch("installations: [bot]"), "5: installations[1].topics: /v1.0/im/bot/messages/get brings messages of kind message, which no route takes"},

		{"the same client", bot + second + all, "6: installations[1].client_id: is that on line 3, at the same platform, so each of the two gets only a part of the messages"},
		{"the same client at the same host", bot + second + "    api_base: https://API.dingtalk.com:443/\n" + all, "6: installations[1].client_id: is that on line 3, at the same platform, so each of the two gets only a part of the messages"},
		{"the same client at another host", bot + second + "    api_base: https://a.example\n" + all, ""},
		{"two clients", bot + other + all, ""},

		{"a long route", bot + "routes:\n- handler: {echo: {}}\n  timeout: 3m", "7: routes[0].timeout: is above inbound.timeout (2m, the default), which ends the try first"},
		{"a route that does not wait", bot + consumer + "routes:\n- handler: {edge: {consumer: a}}\n  timeout: 10s", "8: routes[0].timeout: is below edge.ack_within (1m, the default), and ends the wait for the consumer's answer first"},
		{"a route that waits", bot + consumer + "routes:\n- handler: {edge: {consumer: a}}\n  timeout: 1m", ""},
		{"few workers", bot + consumer + "routes: [{match: {prefix: a}, handler: {echo: {}}}, {handler: {edge: {consumer: a}}}]", "f: inbound.workers: is 8 as long as some route does not lead to the edge, so a bot there that works on 8 messages holds up all others; 256 is usual for the edge"},
		{"workers that were chosen", bot + "inbound: {workers: 8}\n" + consumer + "routes: [{match: {prefix: a}, handler: {echo: {}}}, {handler: {edge: {consumer: a}}}]", ""},
		{"a long request", bot + "inbound: {timeout: 50s}\nroutes:\n- handler: {http: {url: 'http://a', timeout: 1m}}", "7: routes[0].handler.http.timeout: is above inbound.timeout (50s on line 5), which ends the try first"},
		{"a long command", bot + "routes:\n- handler: {exec: {command: [sh], timeout: 61s}}\n  timeout: 1m", "6: routes[0].handler.exec.timeout: is above routes[0].timeout (1m on line 7), which ends the try first"},
		{"defaults are not blamed", bot + "routes:\n- handler: {exec: {command: [sh]}}\n  timeout: 1s", ""},
		{"no program", bot + "routes:\n- handler:\n    exec:\n      command: [no-such-program]", `8: routes[0].handler.exec.command[0]: "no-such-program" is no program here that can be run, so messages become dead letters`},
		{"no file", bot + "routes: [{handler: {exec: {command: [./no-such-program]}}}]", `5: routes[0].handler.exec.command[0]: "./no-such-program" is no program here that can be run, so messages become dead letters`},
		{"a program of a directory", bot + "routes: [{handler: {exec: {command: [./sh], dir: /bin}}}]", ""},
		{"a path", bot + "routes: [{handler: {exec: {command: [/bin/sh], dir: .}}}]", ""},
		{"no directory", bot + "routes: [{handler: {exec: {command: [sh], dir: /nowhere}}}]", `5: routes[0].handler.exec.dir: "/nowhere" is no directory here`},
		{"no signature", bot + "routes: [{handler: {http: {url: 'http://a', secret: '${NONE:-}'}}}]", "5: routes[0].handler.http.secret: is empty, so requests are not signed"},
		{"no signature from a file", bot + "routes: [{handler: {http: {url: 'http://a', secret: {file: /dev/null}}}}]", "5: routes[0].handler.http.secret: is empty, so requests are not signed"},
		{"no token", bot + "admin: {token: ''}\n" + all, "5: admin.token: is empty, so requests need none"},
		{"mentions", bot + inMatch("mention: true, chats: [direct]"), "7: routes[0].match.mention: is told of groups only, and chats has no group, so nothing matches"},
		{"no mentions", bot + inMatch("mention: false, chats: [direct]"), ""},
		{"mentions in groups", bot + inMatch("mention: true, chats: [group]"), ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			require.Equal(t, tt.want, warnings(t, tt.text))
		})
	}
}

// inMatch is a route with this match, two lines after what is before it.
func inMatch(match string) string {
	return "routes:\n  - handler: {echo: {}}\n    match: {" + match + "}\n"
}

// Two addresses are one if the second listener would fail.
func TestListenersThatCollide(t *testing.T) {
	for _, tt := range []struct {
		admin, edge string
		collide     bool
	}{
		{"127.0.0.1:1", "127.0.0.1:01", true},
		{"localhost:1", "127.0.0.1:1", true},
		{":1", "127.0.0.1:1", true},
		{"127.0.0.1:1", "0.0.0.0:1", true},
		{"0.0.0.0:1", ":1", true},
		{"[::]:1", "[::1]:1", true},
		{"Bots.example:1", "bots.example:1", true},
		{"0.0.0.0:1", "[::1]:1", false},
		{"127.0.0.1:1", "127.0.0.2:1", false},
		{"127.0.0.1:1", "[::1]:1", false},
		{"127.0.0.1:1", "127.0.0.1:2", false},
		{"127.0.0.1:0", "127.0.0.1:0", false},
		{"bots.example:1", "127.0.0.1:1", false},
		{"off", "127.0.0.1:1", false},
	} {
		text := bot + "admin: {listen: '" + tt.admin + "', token: t}\nedge:\n  listen: '" + tt.edge + "'\n" +
			"  public_url: https://a\n  consumers: [{name: a, client_id: a, client_secret: a}]\n" + toEdge
		if tt.collide {
			require.Equal(t, "7: edge.listen: is taken by admin.listen (line 5)",
				report(problems(t, text, noEnv)), tt)
			continue
		}
		require.Empty(t, warnings(t, text), tt)
	}
}

// An edge that does not listen takes no address.
func TestNoCollisionWithoutConsumers(t *testing.T) {
	require.Contains(t, warnings(t, bot+"admin: {listen: 'localhost:8975'}\nedge: {listen: 'localhost:8975'}"),
		"has no consumers")
}
