// Package dingtalktest is DingTalk in one process: the stream gateway and the
// open API, spoken over real sockets, for tests, demos and benchmarks.
//
// A [Gateway] serves any number of apps. An [App] pushes robot messages, events
// and callbacks to the sockets its client has opened, keeps what the platform
// keeps about acknowledgements and redelivery, and records every answer
// ([Ack]) and every message the bot sends ([Sent]). Everything that goes wrong
// on the real platform can be made to go wrong here: see [Gateway.Inject] for
// refused and broken HTTP requests, and the methods of [Session] for sockets
// that die, lie or fall silent.
//
// A test needs three lines:
//
//	gw := dingtalktest.Serve(t, dingtalktest.Config{})
//	// point the client under test at gw.URL(), then:
//	pushed, err := gw.App("").Push(dingtalktest.Text("cid1", "hello"))
//
// What it promises:
//
//   - Pushes go out on a socket in the order of the Push calls that chose it.
//     Which socket is chosen is random, and repeatable under one Config.Seed.
//   - A push ends in exactly one outcome: answered, unanswered, or lost. See
//     [Pushed.Wait].
//   - No call waits for a client. What a socket does not read is held up to a
//     bound; beyond it the socket is cut.
//   - All methods of all types may be called from any number of goroutines,
//     unless they say otherwise.
//   - Time is the time package's, so a gateway on a [PipeListener] can live in
//     a testing/synctest bubble, where its minutes pass at once.
//
// What becomes of a push follows the working model of the platform. A robot
// message that is not answered within a minute comes once more, under a new
// frame id or the same one. An event that is not answered within 3 s, or answered
// with LATER or an error, comes again after 10 s and after 30 s more, and is then
// kept in the list of failed events. A card callback, a data query and a plugin
// call come once and are waited for during 2 s. All of this is in [Config].
//
// What it does not promise: that the real gateway behaves so in every detail.
// Where the platform's documents are silent, the behaviour is a guess from
// reports, and a knob in [Config] where guesses differ.
package dingtalktest
