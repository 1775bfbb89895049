package simulate

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/penstock-io/penstock/message"
)

// running is a simulation whose events are read as they come.
type running struct {
	t      *testing.T
	events *json.Decoder
	ended  chan error
	errs   *bytes.Buffer // to be read after the end
}

// simulate starts a simulation and gives the URL of its gateway.
func simulate(t *testing.T, o Options) (*running, string) {
	t.Helper()
	read, write := io.Pipe()
	r := &running{t: t, events: json.NewDecoder(read), ended: make(chan error, 1)}
	r.errs = &bytes.Buffer{}
	o.Listen, o.Out, o.Err, o.JSON = "127.0.0.1:0", write, r.errs, true
	set(&o.Quiet, 50*time.Millisecond)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	go func() {
		defer cancel()
		r.ended <- errors.Join(Run(ctx, o), write.Close())
	}()
	return r, r.until(evListen).URL
}

// until reads up to the next event of a kind.
func (r *running) until(kind string) event {
	r.t.Helper()
	for {
		var e event
		require.NoError(r.t, r.events.Decode(&e), "while waiting for %s", kind)
		if e.Event == kind {
			return e
		}
	}
}

// end reads what is left and gives the totals.
func (r *running) end(want error) totals {
	r.t.Helper()
	e := r.until(evEnd)
	if want == nil {
		require.NoError(r.t, <-r.ended, r.errs)
	} else {
		require.ErrorIs(r.t, <-r.ended, want)
	}
	return *e.Totals
}

// steps are those of a script.
func steps(t *testing.T, lines ...string) Options {
	t.Helper()
	s, err := ParseScript("script", strings.NewReader(strings.Join(lines, "\n")))
	require.NoError(t, err)
	return Options{Script: s, File: "script"}
}

// serve runs the service with an echo until the test ends, as the greeting says.
func serve(t *testing.T, url string) {
	t.Helper()
	_, rest, _ := strings.Cut(greeting(url, Options{}.withDefaults()), "\n\n")
	text, _, _ := strings.Cut(rest, "\n\n")
	run(t, text)
}

func TestAScriptAgainstTheService(t *testing.T) {
	t.Chdir(t.TempDir())
	r, url := simulate(t, steps(t,
		"hello", "/direct Ann", "/as Bo", "psst", "/dup", "/file a.txt", "/picture", "/event x",
		"/ping", "/sessions", "/stats", "/expire tokens", "/fault open 503", "/help"))
	require.True(t, r.until(evPush).Held)
	serve(t, url)
	require.Equal(t, "open", string(r.until(evSession).State))
	seen := map[string]int{}
	replies := map[string]string{}
	var last totals
	for last.Pushed == 0 {
		var e event
		require.NoError(t, r.events.Decode(&e))
		seen[e.Event]++
		switch e.Event {
		case evReply:
			replies[e.Conversation] += e.Text + ";"
		case evAck:
			require.Equal(t, 200, e.Code)
			require.NotZero(t, e.N)
			require.Positive(t, e.Latency)
		case evEnd:
			last = *e.Totals
		}
	}
	require.NoError(t, <-r.ended)
	require.Equal(t, totals{Pushed: 6, Acknowledged: 6, Replies: 2}, last)
	require.Equal(t, map[string]string{"general": "hello;", "direct-Ann": "psst;"}, replies)
	require.Equal(t, 6, seen[evAck])
	require.Equal(t, 1, seen[evStats])
	require.Contains(t, r.errs.String(), "Bo in the direct chat direct-Ann")
	require.Contains(t, r.errs.String(), "open: 503, 1 time(s)")
	require.NotContains(t, r.errs.String(), "session=")
}

func TestSocketsEndAndComeBack(t *testing.T) {
	t.Chdir(t.TempDir())
	r, url := simulate(t, steps(t, "/cut", "/disconnect", "/zombie", "/blackhole 3", "/cut 3"))
	serve(t, url)
	require.Zero(t, r.end(nil))
}

func TestAScriptStopsAtWhatCannotBeDone(t *testing.T) {
	r, _ := simulate(t, steps(t, "/conv a", "/cut 7"))
	r.until(evEnd)
	require.EqualError(t, <-r.ended, "script:2: /cut: no socket 7 is open")
}

func TestWhatIsOpenAtTheEndFails(t *testing.T) {
	o := steps(t, "hello", "/card", "/wait 1ms")
	o.For = 20 * time.Millisecond
	r, _ := simulate(t, o)
	require.Equal(t, "open at the end", r.until(evFailed).Reason)
	require.Equal(t, totals{Pushed: 2, Open: 2}, r.end(ErrUnacknowledged))
}

func TestAnInterruptedScriptHasNotPassed(t *testing.T) {
	o := steps(t, "/wait 1h")
	o.Listen = "127.0.0.1:0"
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	require.ErrorIs(t, Run(ctx, o), ErrInterrupted)
	ctx, cancel = context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	require.NoError(t, Run(ctx, Options{Listen: o.Listen}), "it has no end to miss")
}

func TestRandom(t *testing.T) {
	t.Chdir(t.TempDir())
	r, url := simulate(t, Options{Random: true, Rate: 10, Conversations: 3, For: time.Second})
	serve(t, url)
	require.Contains(t, r.until(evReply).Conversation, "random-")
	sum := r.end(nil)
	require.Equal(t, sum.Pushed, sum.Acknowledged)
	require.Greater(t, sum.Pushed, 3)
}

func TestTypedLines(t *testing.T) {
	r, _ := simulate(t, Options{In: strings.NewReader("/what\n\nhi\n/cut\n/dup\n/quit\nlost\n")})
	require.Equal(t, "hi", r.until(evPush).Text)
	require.Equal(t, r.until(evPush).Text, "hi")
	require.Equal(t, totals{Pushed: 2, Open: 2}, r.end(nil))
	require.Contains(t, r.errs.String(), `line 1: there is no command "/what"`)
	require.Contains(t, r.errs.String(), "line 4: no socket is open\n")

	r, _ = simulate(t, Options{In: strings.NewReader("/dup"), EndWithIn: true})
	r.end(nil)
	require.Contains(t, r.errs.String(), "line 1: /dup: nothing has been said")

	long := strings.NewReader(strings.Repeat("x", maxLine+1))
	r, _ = simulate(t, Options{In: long, EndWithIn: true})
	r.end(nil)
	require.Contains(t, r.errs.String(), "line 1: no line is read any more: ")
}

func TestABrokenOutputEndsIt(t *testing.T) {
	read, write := io.Pipe()
	require.NoError(t, read.Close())
	err := Run(t.Context(), Options{Listen: "127.0.0.1:0", Out: write})
	require.ErrorIs(t, err, io.ErrClosedPipe)
}

func TestTheAddressMayBeTaken(t *testing.T) {
	in, typed := io.Pipe()
	r, url := simulate(t, Options{In: in})
	err := Run(t.Context(), Options{Listen: strings.TrimPrefix(url, "http://")})
	require.ErrorIs(t, err, syscall.EADDRINUSE)
	_, err = io.WriteString(typed, "/quit\n")
	require.NoError(t, err)
	r.end(nil)
	require.NoError(t, typed.Close())
}

func TestWrongOptions(t *testing.T) {
	for want, o := range map[string]Options{
		`"here" is not HOST:PORT`: {Listen: "here"},
		"loopback address":        {Listen: "0.0.0.0:8090"},
		"--listen must be":        {Listen: ":8090"},
		"--rate must":             {Rate: 1001},
		"--conversations":         {Conversations: -1},
		"--for":                   {For: -1},
	} {
		require.ErrorContains(t, Run(t.Context(), o), want)
	}
	require.NoError(t, Options{Listen: "[::1]:0"}.Validate())
	require.NoError(t, Options{Listen: "localhost:0"}.Validate())
}

// What people read is one line for each event, and obeys no one.
func TestLinesForPeople(t *testing.T) {
	for want, e := range map[string]event{
		"push   #3 ops  Ann: hi": {
			Event: evPush, N: 3, Conversation: "ops", Sender: "Ann", Kind: "text", Text: "hi",
		},
		"push   #1 [event] x  (waits for a bot that takes it)": {
			Event: evPush, N: 1, Kind: "event", Text: "x", Held: true,
		},
		"ack    #2 500 in 1.5ms on socket 4, try 2, late, again: no": {
			Event: evAck, N: 2, Code: 500, Latency: 1.5, Socket: 4, Tries: 2, Late: true,
			Duplicate: true, Reason: "no",
		},
		"ack    200 of an old message, on socket 1": {Event: evAck, Code: 200, Socket: 1},
		"ack    200 of a frame that was not pushed, on socket 1": {
			Event: evAck, Code: 200, Socket: 1, Unknown: true,
		},
		"FAILED #2 not answered; pushed 2 time(s)": {
			Event: evFailed, N: 2, Reason: "not answered", Tries: 2,
		},
		`reply  ops  [webhook markdown] T: a\nb\x1b[2J  (the bot was not told)`: {
			Event: evReply, Conversation: "ops", Route: "webhook", Format: "markdown", Title: "T",
			Text: "a\nb\x1b[2J", Silent: true,
		},
		"reply  staff-Ann  [direct sampleX] {}": {
			Event: evReply, Users: []message.UserID{"staff-Ann"}, Route: "direct",
			Format: "sampleX", Body: "{}",
		},
		"reply  track1  [card] {}": {Event: evReply, Track: "track1", Route: "card", Body: "{}"},
		"socket 1 /zombie":         {Event: evSession, Socket: 1, Done: Zombie},
		"socket 1 closed: cut": {
			Event: evSession, Socket: 1, State: "closed", Reason: "cut", Agent: "x",
		},
		"socket 2 open by go\\u202e": {Event: evSession, Socket: 2, State: "open", Agent: "go\u202e"},
		"socket 2 open for 1.5s, 3 pushed, 2 answers, 0 of 1 pings answered": {
			Event: evSession, Socket: 2, State: "open",
			Counts: &counts{Age: 1500, Pushed: 3, Answers: 2, Pings: 1},
		},
	} {
		require.Equal(t, want, e.line())
	}
}

func TestTheSessionIsHidden(t *testing.T) {
	for _, text := range []string{
		"http://127.0.0.1:1/robot/sendBySession?session=0.0.17.secret",
		`{"sessionWebhook":"https://a/robot/sendBySession?session=secret\u0026x=1"}`,
		"https%3A%2F%2Fa%2Frobot%2FsendBySession%3Fsession%3Dsecret",
		"[here](https://a/?SESSION=secret)",
	} {
		for _, e := range []event{{Title: text}, {Text: text}, {Body: text}, {Reason: text}} {
			shown, err := json.Marshal(e.safe())
			require.NoError(t, err)
			require.NotContains(t, string(shown), "secret")
			require.Contains(t, string(shown), "***")
		}
	}
	require.NotContains(t, greeting("http://x", Options{ClientID: "a", Secret: "hunter2"}), "hunter2")
	long := event{Text: strings.Repeat("é", maxShown)}.safe()
	require.Less(t, len(long.Text), maxShown+5)
}

// A greeting without a script says how to get help.
func TestGreeting(t *testing.T) {
	lines := bufio.NewScanner(strings.NewReader(greeting("http://h", Options{})))
	var last string
	for lines.Scan() {
		if lines.Text() != "" {
			last = lines.Text()
		}
		require.NotContains(t, lines.Text(), "escaped")
	}
	require.Contains(t, last, "/help")
	require.Contains(t, greeting("http://h", Options{AwkwardTickets: true}), "have to be escaped")
}
