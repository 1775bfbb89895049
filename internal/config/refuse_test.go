package config_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// inRoute puts the lines of a handler or match into a route; they begin on line 7.
func inRoute(lines string) string {
	return bot + "routes:\n  - name: r\n    " + strings.ReplaceAll(lines, "\n", "\n    ") + "\n"
}

// consumer is an edge with one consumer, as a line.
const consumer = "edge: {consumers: [{name: a, client_id: a, client_secret: a}]}\n"

var refusals = []struct {
	name, text string
	want       string // the report
}{
	{"nothing", "", "f: installations: is missing: there is no bot to connect"},
	{"only a comment", "# nothing\n", "f: installations: is missing: there is no bot to connect"},
	{"only a document mark", "---\n", "f: installations: is missing: there is no bot to connect"},
	{"no installation", "installations: []", "1: installations: is missing: there is no bot to connect"},
	{"a list", "- a", "1: must be a mapping of keys, not a list"},
	{"a word", "hello", "1: must be a mapping of keys, not text"},
	{"two documents", bot + "---\nlog: {level: info}\n", "6: the file holds more than one document"},
	{"not UTF-8", bot + "log:\n  level: \xff\n", "6: not text in UTF-8"},
	{"NUL", bot + "log:\n  level: a\x00\n", "6: not text in UTF-8"},
	{"tab", bot + "log:\n\tlevel: info\n", "6: not YAML: a tab stands where spaces must indent"},
	{"open quote", bot + `log: {level: "info}`, "5: not YAML: could not find end character of double-quoted text"},
	{"open bracket", bot + "log: {level: info", "5: not YAML: could not find flow mapping end token '}'"},

	{"unknown key", bot + "logs: {}", "5: logs: no such key; did you mean log?"},
	{
		"unknown key in a list", bot + "    client-secret: x",
		"5: installations[0].client-secret: no such key; did you mean client_secret?",
	},
	{
		"part of a key", bot + "    secret: x",
		"5: installations[0].secret: no such key; did you mean client_secret?",
	},
	{
		"unlike any key", bot + "log: {zzzzzz: 1}",
		"5: log.zzzzzz: no such key; the keys here are format, level",
	},
	{
		"key of echo", inRoute("handler: {echo: {text: x}}"),
		"7: routes[0].handler.echo.text: no such key; there are none here",
	},
	{"twice", bot + "stop_within: 1s\nstop_within: 2s", "6: stop_within: is given twice"},
	{"map twice", inRoute("handler: {exec: {command: [a], env: {A: 1, A: 2}}}"), "7: routes[0].handler.exec.env.A: is given twice"},
	{"odd key", bot + "\"a\\nb\": 1", "5: a?b: no such key; the keys here are admin, edge, inbound, installations, log, outbound, reconnect, routes, stop_within, store"},

	{"mapping for a value", bot + "stop_within: {a: 1}", "5: stop_within: must be a single value, not a mapping"},
	{"list for a value", bot + "stop_within: [1s]", "5: stop_within: must be a single value, not a list"},
	{"value for a mapping", bot + "log: 5", "5: log: must be a mapping of keys, not a number"},
	{"value for a list", bot + "routes: yes", "5: routes: must be a list, not text"},
	{"truth for a list", bot + "routes: true", "5: routes: must be a list, not true or false"},
	{"list for a dict", inRoute("handler: {http: {url: 'http://a', headers: [a]}}"), "7: routes[0].handler.http.headers: must be a mapping of keys, not a list"},
	{"duration without unit", bot + "stop_within: 10", `5: stop_within: "10" has no unit; write 500ms, 90s, 5m or 24h`},
	{"no duration", bot + "stop_within: soon", `5: stop_within: "soon" is not a duration, such as 90s, 5m or 24h`},
	{"duration too long", bot + "stop_within: 2h", `5: stop_within: "2h" is above 1h`},
	{"negative duration", bot + "stop_within: -1s", `5: stop_within: "-1s" is below 100ms`},
	{"duration in a list", bot + "outbound: {waits: [1s, -1s]}", `5: outbound.waits[1]: "-1s" is below 0s`},
	{"no whole number", bot + "inbound: {workers: 1.5}", `5: inbound.workers: "1.5" is not a whole number`},
	{"zero", bot + "inbound: {pending: 0}", `5: inbound.pending: "0" is below 1`},
	{"no number", bot + "outbound: {installation_rate: fast}", `5: outbound.installation_rate: "fast" is not a number`},
	{"not a number", bot + "outbound: {installation_rate: nan}", `5: outbound.installation_rate: "nan" is below 0`},
	{"infinite", bot + "outbound: {installation_rate: inf}", `5: outbound.installation_rate: "inf" is above 1000000`},
	{"no size", bot + "store: {max_bytes: big}", `5: store.max_bytes: "big" is not a size, such as 4MiB`},
	{"unit of a size", bot + "store: {max_bytes: 4MiG}", `5: store.max_bytes: "4MiG" has none of the units B, KiB, MiB, GiB`},
	{"decimal unit", bot + "store: {max_bytes: 4GB}", `5: store.max_bytes: "4GB" has none of the units B, KiB, MiB, GiB`},
	{"days", bot + "outbound: {ttl: 2d}", `5: outbound.ttl: "2d" is not a duration, such as 90s, 5m or 24h`},
	{"range of a size", bot + "store: {max_bytes: 99999999999999GiB}", `5: store.max_bytes: "99999999999999GiB" is out of range`},
	{"huge size", bot + "store: {max_bytes: 99999999999999999999}", `5: store.max_bytes: "99999999999999999999" is out of range`},
	{"small size", bot + "store: {max_bytes: 5}", `5: store.max_bytes: "5" is below 1MiB`},
	{"no truth", bot + "    allow_insecure: yes", `5: installations[0].allow_insecure: "yes" is neither true nor false`},
	{"word", bot + "log: {level: warning}", `5: log.level: "warning" is not one of debug, info, warn, error; did you mean warn?`},
	{"near no word", bot + "log: {level: all}", `5: log.level: "all" is not one of debug, info, warn, error`},
	{"near a word", bot + "log: {level: wran}", `5: log.level: "wran" is not one of debug, info, warn, error; did you mean warn?`},
	{"topic", bot + "    topics: [/v1.0/im/bot/message/get]", `5: installations[0].topics[0]: "/v1.0/im/bot/message/get" is not one of /v1.0/im/bot/messages/get, /v1.0/im/bot/messages/delegate, /v1.0/card/instances/callback, /v1.0/card/dynamicData/get, /v1.0/graph/api/invoke; did you mean /v1.0/im/bot/messages/get?`},
	{"pattern", inRoute("match: {pattern: '(a'}\nhandler: {echo: {}}"), `7: routes[0].match.pattern: "(a" is not a regular expression: missing closing )`},
	{"long value", bot + "stop_within: " + strings.Repeat("x", 99), `5: stop_within: "` + strings.Repeat("x", 40) + `…" is not a duration, such as 90s, 5m or 24h`},

	{"alias without anchor", bot + "log: *a", "5: log: alias *a has no anchor before it"},
	{"tag", bot + "stop_within: !vault x", "5: stop_within: has the tag !vault, which means nothing here"},
	{"merge of a value", bot + "log: {<<: 5}", "5: log: << must name a mapping, not a number"},
	{"wrong in an anchor", "x-all: &all\n  level: loud\nlog: *all\n" + bot, `2: log.level: "loud" is not one of debug, info, warn, error`},

	{"no variable", bot + "log: {level: '${LEVEL}'}", "5: log.level: environment variable LEVEL is not set"},
	{"no variables", bot + "log: {level: '${A}${B}'}", "5: log.level: environment variable A, B is not set"},
	{"open variable", bot + "log: {level: '${LEVEL'}", "5: log.level: ${ is not closed by }; $${ stands for ${ itself"},
	{"bad variable", bot + "log: {level: '${}'}", "5: log.level: ${…} does not hold the name of a variable; $${ stands for ${ itself"},
	{"variable in a default", bot + "log: {level: '${A:-${B}}'}", "5: log.level: the default of ${A:-…} holds another ${"},

	{"no secret file", strings.Replace(bot, "s3", "{file: /nowhere/s}", 1), `4: installations[0].client_secret: "/nowhere/s": the file does not exist`},
	{"secret directory", strings.Replace(bot, "s3", "{file: /}", 1), `4: installations[0].client_secret: "/": the file cannot be read: is a directory`},
	{"secret mapping", strings.Replace(bot, "s3", "{path: /}", 1), "4: installations[0].client_secret: must be text or {file: path}"},
	{"secret list", strings.Replace(bot, "s3", "[a]", 1), "4: installations[0].client_secret: must be a single value, not a list"},

	{"missing", "installations:\n  - id: a\n", "2: installations[0].client_id: is missing\n2: installations[0].client_secret: is missing"},
	{"empty", "installations:\n  - id: a\n    client_id:\n    client_secret: ''\n", "3: installations[0].client_id: is empty\n4: installations[0].client_secret: is empty"},
	{"empty item", "installations:\n  -\n", "2: installations[0].id: is missing\n2: installations[0].client_id: is missing\n2: installations[0].client_secret: is missing"},
	{"same id", bot + strings.TrimPrefix(bot, "installations:\n"), "5: installations[1].id: is used on line 2 already"},
	{"odd id", strings.Replace(bot, "id: bot", "id: a/b", 1), "2: installations[0].id: must be up to 64 letters, digits, dots, dashes and underscores"},
	{"space in a secret", strings.Replace(bot, "s3", "'s3 '", 1), "4: installations[0].client_secret: holds white space or a control character"},
	{"http", bot + "    api_base: http://127.0.0.1", "5: installations[0].api_base: is http; only allow_insecure: true permits that, on loopback"},
	{"http afar", bot + "    api_base: http://a.example\n    allow_insecure: true", "5: installations[0].api_base: is http, and its host is not a loopback address"},
	{"scheme", bot + "    oapi_base: ftp://a.example", "5: installations[0].oapi_base: does not begin with https://"},
	{"path", bot + "    api_base: https://a.example/x", "5: installations[0].api_base: must be a scheme and a host, such as https://api.dingtalk.com"},
	{"proxy", bot + "    proxy: a.example:3128", "5: installations[0].proxy: is not an http or socks5 URL, nor none"},
	{"no certificates", bot + "    ca_file: /nowhere/ca", `5: installations[0].ca_file: "/nowhere/ca": the file does not exist`},
	{"silence", bot + "    silence: 20s", "5: installations[0].silence: is below installations[0].ping_every (30s, the default)"},
	{"equal silence", bot + "    silence: 30s", "5: installations[0].silence: must be above installations[0].ping_every (30s, the default), else a healthy link is cut"},
	{"pings", bot + "    ping_every: 2m", "5: installations[0].ping_every: is above installations[0].silence (1m25s, the default)"},
	{"retries", bot + "inbound: {retry_max: 1ms}", "5: inbound.retry_max: is below inbound.retry_base (1s, the default)"},
	{"retry base", bot + "inbound: {retry_base: 1h}", "5: inbound.retry_base: is above inbound.retry_max (5m, the default)"},
	{"both retries", bot + "inbound:\n  retry_base: ${NONE:-3h}\n  retry_max: 2h", "7: inbound.retry_max: is below inbound.retry_base (${NONE:-3h} on line 6)"},
	{"redials", bot + "reconnect: {max: 10ms}", "5: reconnect.max: is below reconnect.base (1s, the default)"},
	{"young sessions", bot + "reconnect: {max_age: 59s}", "5: reconnect.max_age: is above 0, which is never, and below 1m"},
	{"reply host", bot + "    reply_hosts: ['https://a.example', a.example:443, a.example:8443, a.example]", "5: installations[0].reply_hosts[0]: is not a host, nor a host with a port\n5: installations[0].reply_hosts[1]: has the port that https has anyway; leave it out"},
	{"small file", bot + "store: {max_file: 100KiB}", "5: store.max_file: is above 0, which is as large as the disk allows, and below 1MiB"},
	{"base without a host", bot + "    api_base: https://:443", "5: installations[0].api_base: must be a scheme and a host, such as https://api.dingtalk.com"},
	{"port of a base", bot + "    api_base: https://a.example:99999", "5: installations[0].api_base: must be a scheme and a host, such as https://api.dingtalk.com"},
	{"port of a proxy", bot + "    proxy: http://a.example:0", "5: installations[0].proxy: is not an http or socks5 URL, nor none"},
	{"port of the edge", bot + "edge: {public_url: 'https://a:65536'}", "5: edge.public_url: is not an http or https URL, such as https://bots.example.com"},
	{"port of a URL", inRoute("handler: {http: {url: 'http://a:99999'}}"), "7: routes[0].handler.http.url: is not an http or https URL"},
	{"store nowhere", bot + "store: {path: ''}", "5: store.path: is empty"},
	{"store in place of a directory", bot + "store: {path: /}", "5: store.path: is a directory, and should be a file in one"},
	{"socket in place of the store", bot + "store: {path: ./a}\nadmin: {socket: a}", "6: admin.socket: is the file of store.path"},
	{"slow answer", bot + "inbound: {sync_within: 3s}", `5: inbound.sync_within: "3s" is above 2s`},
	{"listen", bot + "admin: {listen: here}", `5: admin.listen: "here" is not host:port or off`},
	{"port", bot + "admin: {listen: '127.0.0.1:99999'}", `5: admin.listen: "127.0.0.1:99999" is not host:port or off`},
	{"open to all", bot + "admin: {listen: ':8970'}", "5: admin.token: is missing: other machines can reach admin.listen"},

	{"no handler", inRoute("timeout: 1s"), "6: routes[0].handler: is missing; it is one of echo, http, exec, edge"},
	{"empty handler", inRoute("handler:"), "7: routes[0].handler: is missing; it is one of echo, http, exec, edge"},
	{"misspelt handler", inRoute("handler: {htpt: {}}"), "7: routes[0].handler.htpt: no such key; did you mean http?"},
	{"two handlers", inRoute("handler: {echo: {}, exec: {command: [a]}}"), "7: routes[0].handler: has 2 of echo, http, exec, edge, and may have one"},
	{"no consumer", inRoute("handler: {edge: {}}"), "7: routes[0].handler.edge.consumer: is missing"},
	{"no such consumer", inRoute("handler: {edge: {consumer: a}}"), `7: routes[0].handler.edge.consumer: there is no consumer "a" in edge.consumers`},
	{"edge listen", bot + "edge: {listen: here}", `5: edge.listen: "here" is not host:port`},
	{"edge in the open", bot + "edge:\n  listen: ':1'\n  consumers: [{name: a, client_id: a, client_secret: a}]", "6: edge.public_url: is missing: consumers on other machines have to know where to connect"},
	{"edge url", bot + "edge: {public_url: 'wss://a'}", "5: edge.public_url: is not an http or https URL, such as https://bots.example.com"},
	{"half a certificate", bot + "edge: {tls_key: a}", "5: edge.tls_cert: needs edge.tls_key, and the other way round"},
	{"acks", bot + "edge: {ack_within: 3m, consumers: [{name: a, client_id: a, client_secret: a}]}", "5: edge.ack_within: is above inbound.timeout (2m, the default)"},
	{"acks of the default", bot + consumer + "inbound: {timeout: 30s}", "6: inbound.timeout: is below edge.ack_within (1m, the default)"},
	{"nowhere to connect", bot + "edge: {public_url: 'http://0.0.0.0:8975'}", "5: edge.public_url: names an address to listen on, to which nobody can connect"},
	{"no certificate", bot + "edge:\n  tls_cert: /nowhere/c\n  tls_key: /nowhere/k", `6: edge.tls_cert: "/nowhere/c": the file does not exist` + "\n" + `7: edge.tls_key: "/nowhere/k": the file does not exist`},
	{
		"one address for both", bot + "admin: {listen: '127.0.0.1:9000'}\nedge:\n  listen: 127.0.0.1:9000\n  consumers: [{name: a, client_id: a, client_secret: a}]",
		"7: edge.listen: is taken by admin.listen (line 5)",
	},
	{"the default for both", bot + consumer + "admin: {listen: 'localhost:8975'}", "6: admin.listen: is taken by edge.listen (127.0.0.1:8975, the default)"},
	{"the edge on the default", bot + "edge: {listen: '127.0.0.1:8970', consumers: [{name: a, client_id: a, client_secret: a}]}", "5: edge.listen: is taken by admin.listen (127.0.0.1:8970, the default)"},
	{
		"same consumers", bot + "edge:\n  consumers:\n  - &a {name: a, client_id: a, client_secret: a}\n  - *a\n",
		"7: edge.consumers[1].name: is used already\n7: edge.consumers[1].client_id: is used on line 7 already",
	},
	{"odd consumer", bot + "edge: {consumers: [{name: a/b, client_id: a, client_secret: 'a '}]}", "5: edge.consumers[0].name: must be up to 64 letters, digits, dots, dashes and underscores\n5: edge.consumers[0].client_secret: holds white space or a control character"},
	{"no URL", inRoute("handler:\n  http:\n"), "8: routes[0].handler.http.url: is missing"},
	{"URL", inRoute("handler: {http: {url: 'ftp://a'}}"), "7: routes[0].handler.http.url: is not an http or https URL"},
	{"old secrets", inRoute("handler: {http: {url: 'http://a', old_secrets: [a]}}"), "7: routes[0].handler.http.old_secrets: is set, and secret is not"},
	{"no command", inRoute("handler: {exec: {}}"), "7: routes[0].handler.exec.command: is missing"},
	{"empty list item", inRoute("handler: {echo: {}}\nmatch:\n  chats:\n    -"), "10: routes[0].match.chats[0]: is empty"},
	{"no such bot", inRoute("handler: {echo: {}}\nmatch: {installations: [bto]}"), `8: routes[0].match.installations[0]: there is no installation "bto"`},
	{"prefix of nothing", inRoute("handler: {echo: {}}\nmatch: {prefix: ' a'}"), "8: routes[0].match.prefix: begins with white space, which is left out of the text"},
	{"no such platform", inRoute("handler: {echo: {}}\nmatch: {platforms: [slack]}"), `8: routes[0].match.platforms[0]: "slack" is not one of dingtalk`},
	{"empty command", inRoute("handler: {exec: {command: []}}"), "7: routes[0].handler.exec.command: is empty"},
	{"no base64", inRoute("handler: {http: {url: 'http://a', secret: 'whsec_!'}}"), "7: routes[0].handler.http.secret: begins with whsec_ and is not base64 after it"},
	{"no base64 in an old one", inRoute("handler: {http: {url: 'http://a', secret: a, old_secrets: [b, whsec_]}}"), "7: routes[0].handler.http.old_secrets[1]: begins with whsec_ and is not base64 after it"},
	{
		"hidden routes", inRoute("handler: {echo: {}}") + "  - handler: {echo: {}}\n    match: {prefix: a}\n  - handler: {echo: {}}\n",
		"8: routes[1]: is never reached, because the route on line 6 takes everything\n" +
			"10: routes[2]: is never reached, because the route on line 6 takes everything",
	},
	{
		"a match that is wrong takes nothing", inRoute("handler: {echo: {}}\nmatch: {pattern: '('}") + "  - handler: {echo: {}}\n",
		`8: routes[0].match.pattern: "(" is not a regular expression: missing closing )`,
	},
	{"same route", inRoute("handler: {echo: {}}\nmatch: {prefix: a}") + "  - name: r\n    handler: {echo: {}}\n", "9: routes[1].name: is used on line 6 already"},
}

func TestRefuses(t *testing.T) {
	for _, tt := range refusals {
		t.Run(tt.name, func(t *testing.T) {
			require.Equal(t, tt.want, report(problems(t, tt.text, noEnv)))
		})
	}
}

func TestReportsAllAtOnceInOrderOfTheFile(t *testing.T) {
	ps := problems(t, `stop_within: 10
log:
  level: loud
  fromat: json
admin:
  listen: 0.0.0.0:80
installations:
  - id: a
    client_id: ${NOT_SET}
  - id: a
    client_id: b
    client_secret: c
    silence: 1s
routes:
  - handler: {http: {url: nowhere}}
inbound:
  retry_base: 10m
`, noEnv)
	require.Equal(t, `1: stop_within: "10" has no unit; write 500ms, 90s, 5m or 24h
3: log.level: "loud" is not one of debug, info, warn, error
4: log.fromat: no such key; did you mean format?
6: admin.token: is missing: other machines can reach admin.listen
8: installations[0].client_secret: is missing
9: installations[0].client_id: environment variable NOT_SET is not set
10: installations[1].id: is used on line 8 already
13: installations[1].silence: is below installations[1].ping_every (30s, the default)
15: routes[0].handler.http.url: is not an http or https URL
17: inbound.retry_base: is above inbound.retry_max (5m, the default)`, report(ps))
}
