// Package dingtalk connects bots to DingTalk's Stream mode.
//
// A [Connector] opens sessions: each asks the gateway for a ticket, dials with
// it once, and serves one socket until it ends. What a session promises:
//
//   - Its reader never waits for the core, for a write, or for a slow peer.
//   - The gateway's pings are answered ahead of everything else, byte for byte.
//   - An acknowledgement leaves on the socket that brought the frame or not at
//     all. Those that are ready together leave in one write.
//   - A link on which nothing is read for Config.Silence is given up, also when
//     writes still succeed. An idle link that answers pings is kept.
//   - A request to disconnect does not stop it: it tells the core, goes on reading
//     and acknowledging, and ends when the gateway hangs up.
//   - When its context ends it offers nothing more, lets owed acknowledgements out
//     for Config.AckGrace, and closes politely.
//   - Odd frames cost themselves and never the session. Each is counted.
//
// Client secret and ticket never reach a log line or an error text.
package dingtalk
