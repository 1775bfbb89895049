package cases_test

import (
	"cmp"
	"encoding/json"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/penstock-io/penstock/integrations"
	"github.com/penstock-io/penstock/integrations/dingtalk/dingtalktest"
	"github.com/penstock-io/penstock/message"
	"github.com/penstock-io/penstock/test/system"
)

// line is one case about the connection while its script runs.
type line struct {
	*world
	session *dingtalktest.Session // the newest that the script knows
	first   *dingtalktest.Session
	silent  time.Time          // when the peer vanished
	rival   *system.Service    // a second instance
	release func()             // lets the store commit again
	state   integrations.State // before the script
	frames  map[string]string  // messages by the name that the script gives them
	acks    []message.FrameID  // in the order of the script
	crowd   []int              // goroutines, sampled while redials fail
	drops   []time.Time
}

// step is a step of a script. arrange is called before the service starts, do in
// order after it has a socket; each may be nil. arg are the groups of the pattern.
type step struct {
	pattern string
	arrange func(l *line, arg []string)
	do      func(l *line, arg []string)
}

var steps = []step{
	{pattern: `^accept$|^accept TCP$|^then normal$|^instance 1 connected$`},
	{pattern: `^read everything$|^never close$|^answer pings$|^deliver nothing.*$`},
	{pattern: `^send nothing$`, do: (*line).vanish},
	{pattern: `^(?:answer pings|send no callback) for (\d+) h$`, do: (*line).idle},
	{pattern: `^refuse x(\d+)$`, do: (*line).refuse},
	{pattern: `^close (\d+) after (\d+) ms$`, do: (*line).dropLoop},
	{pattern: `^delay handshake (\d+) s$`, arrange: (*line).delay},
	{pattern: `^msg (\w+)$`, do: (*line).pushHeld},
	{pattern: `^close before ack$`, do: (*line).drop},
	{pattern: `^new socket$`, do: (*line).reconnected},
	{pattern: `^msg (\w+) redelivered$`, do: (*line).redeliver},
	{pattern: `^instance 2 connected$`, do: (*line).rivals},
	{pattern: `^msgs (\d+)\.\.(\d+) alternate$`, do: (*line).alternate},
}

// playTransport runs the script of a case.
func playTransport(w *world) {
	l := &line{world: w, frames: map[string]string{}}
	var todo []func()
	for _, text := range w.c.Input.Script {
		s, arg := find(text)
		if s == nil {
			w.odd("script", text)
			return
		}
		if s.arrange != nil {
			s.arrange(l, arg)
		}
		if s.do != nil {
			todo = append(todo, func() { s.do(l, arg) })
		}
	}
	w.run()
	w.pass(time.Second)
	l.state = integrations.State(w.svc.Health(bot).State)
	l.session = w.session(0)
	l.first = l.session
	for _, do := range todo {
		do()
	}
	l.judge()
	w.stop()
	if l.rival != nil {
		require.NoError(w.t, l.rival.Stop())
	}
}

func find(text string) (*step, []string) {
	for i := range steps {
		if m := regexp.MustCompile(steps[i].pattern).FindStringSubmatch(text); m != nil {
			return &steps[i], m[1:]
		}
	}
	return nil, nil
}

func atoi(s string) int {
	n, _ := strconv.Atoi(s) // the pattern lets only digits through
	return n
}

// vanish silences the peer of a session that was in good order.
func (l *line) vanish([]string) {
	l.pass(time.Minute)
	l.silent = time.Now()
	l.first.BlackHole(false)
	l.pass(5 * time.Minute)
}

func (l *line) idle(arg []string) { l.pass(time.Duration(atoi(arg[0])) * time.Hour) }

// refuse breaks the connection and lets so many dials fail before one succeeds.
func (l *line) refuse(arg []string) {
	l.pass(time.Minute)
	l.net.Refuse(atoi(arg[0]))
	l.first.Drop()
	l.silent = time.Now()
	for l.net.Refused() < atoi(arg[0]) && time.Since(l.silent) < 24*time.Hour {
		l.pass(time.Minute)
		l.crowd = append(l.crowd, runtime.NumGoroutine())
	}
	l.pass(5 * time.Minute)
}

// dropLoop ends each session soon after it has opened, for as often as the case
// repeats it, and for no more than an hour. Every other one has brought a frame: that
// alone is no proof that connecting works.
func (l *line) dropLoop(arg []string) {
	limit := time.Now().Add(time.Hour)
	for i := range max(1, l.c.Input.Repeat) {
		if i%2 == 1 {
			l.session.Ping()
		}
		l.pass(time.Duration(atoi(arg[1])) * time.Millisecond)
		l.drops = append(l.drops, time.Now())
		old := l.session.Info().ID
		if code := atoi(arg[0]); code == 1006 {
			l.session.Drop()
		} else {
			l.session.Close(code, "")
		}
		if time.Now().After(limit) {
			return
		}
		l.session = l.world.session(old)
	}
}

func (l *line) delay(arg []string) {
	d := time.Duration(atoi(arg[0])) * time.Second
	l.gw.Inject(dingtalktest.RouteConnect, 1, dingtalktest.Slow(d))
}

// pushHeld pushes a message that cannot be acknowledged yet.
func (l *line) pushHeld(arg []string) {
	l.release = l.store.Hold()
	l.push("frame-"+arg[0], arg[0])
}

func (l *line) push(id, name string) {
	l.acks = append(l.acks, message.FrameID(id))
	l.session.PushRaw([]byte(frameOf(id, map[string]any{
		"conversationId": "cidScript", "msgId": "msg-" + name, "conversationType": "1",
		"senderStaffId": "staff-example-0001", "msgtype": "text",
		"text": map[string]string{"content": name},
	})))
	l.settle()
}

func (l *line) drop([]string) { l.session.Drop() }

func (l *line) reconnected([]string) {
	l.session = l.world.session(l.first.Info().ID)
	if l.release != nil {
		l.release()
	}
	l.settle()
}

func (l *line) redeliver(arg []string) { l.push("frame-"+arg[0]+"-again", arg[0]) }

func (l *line) rivals([]string) {
	l.rival = system.Start(l.t, l.cfg, system.Options{Network: l.net})
	l.pass(time.Minute)
}

func (l *line) alternate(arg []string) {
	for n := atoi(arg[0]); n <= atoi(arg[1]); n++ {
		_, err := l.bot.Push(dingtalktest.Text("cidScript", strconv.Itoa(n)))
		require.NoError(l.t, err)
	}
	l.settle()
}

func (l *line) judge() {
	judge(l.c, l.findings, map[string][]checker{
		"detect_within":     {{`\d+ s\)?`, l.checkDetected}},
		"connection":        {{`^keep`, l.checkKept}, {`^redial`, l.checkRedialled}},
		"health":            {{`^degraded`, l.checkDegraded}, {`^ok$`, l.checkHealthy}},
		"redials":           {{`^\d+$`, l.checkRedials}},
		"gives_up":          {{`^false$`, l.checkBack}},
		"attempt_rate":      {{`<= 1 per backoff cap`, l.checkRate}},
		"goroutines":        {{`^flat$`, l.checkCrowd}},
		"log_lines":         {{`bounded`, l.checkLines}},
		"backoff":           {{`reset only after the socket has lived`, l.checkBackoff}},
		"attempts_in_10min": {{`<= \d+`, l.checkAttempts}},
		"ack_for_first":     {{`not written to the new socket`, l.checkFirstAck}},
		"ack_for_second":    {{`^\d{3} on new socket`, l.checkSecondAck}},
		"handler_runs":      {{`^\d+`, l.checkRuns}},
		"rule":              {{`health checks judge only open sockets`, l.checkYoung}},
		"default": {
			{`no restart on idleness`, l.checkKept}, {`lets only one instance connect`, l.checkAlone},
		},
		"on_lease_loss": {{`closes its socket before the other opens`, l.checkAlone}},
	})
}

// checkDetected wants the last number of the words as the limit, in seconds.
func (l *line) checkDetected() {
	all := regexp.MustCompile(`\d+`).FindAllString(l.c.words("detect_within"), -1)
	limit := time.Duration(atoi(all[len(all)-1])) * time.Second
	opens := l.net.Requests("/connections/open")
	if len(opens) < 2 {
		l.fail("detect_within", "it was not detected")
		return
	}
	took := opens[1].At.Sub(l.silent) - 2*time.Second // the redial waits for up to a second
	l.want(took <= limit, "detect_within", "it took %v", took)
}

func (l *line) checkKept() {
	l.want(l.bot.Stats().Dials == 1, "connection", "there were %d", l.bot.Stats().Dials)
	l.want(l.first.Info().State == dingtalktest.StateOpen, "connection", "it is over")
}

func (l *line) checkRedialled() {
	l.want(l.first.Info().State == dingtalktest.StateClosed, "connection", "the old one stays")
	l.checkBack()
}

func (l *line) checkBack() {
	h := l.svc.Health(bot)
	l.want(h.Ready && l.bot.Stats().Dials > 1, "gives_up", "it is %s", h.State)
}

func (l *line) checkDegraded() {
	l.want(slices.Contains(l.svc.States(bot), integrations.StateDegraded), "health",
		"it went through %v", l.svc.States(bot))
}

func (l *line) checkHealthy() {
	l.want(l.svc.Health(bot).Ready, "health", "it is %s", l.svc.Health(bot).State)
	l.want(!slices.Contains(l.svc.States(bot), integrations.StateDegraded), "health",
		"it went through %v", l.svc.States(bot))
}

func (l *line) checkRedials() {
	got := l.bot.Stats().Dials - 1
	l.want(got == number(l.c.words("redials")), "redials", "there were %d", got)
	l.want(l.bot.Stats().Opens == got+1, "redials", "%d tickets", l.bot.Stats().Opens)
}

// checkRate wants the redials that failed to have taken a cap each, on average:
// the jitter of the waits is around it, and the first few are shorter.
func (l *line) checkRate() {
	took := time.Since(l.silent)
	least := time.Duration(l.net.Refused()-10) * l.cfg.Reconnect.Max / 2
	l.want(took >= least, "attempt_rate", "%d attempts took %v", l.net.Refused(), took)
}

func (l *line) checkCrowd() {
	l.want(slices.Max(l.crowd)-slices.Min(l.crowd) <= 4, "goroutines", "there were %v", l.crowd)
}

func (l *line) checkLines() {
	n := 0
	for _, text := range l.svc.Log.Lines() {
		var e struct{ Level string }
		if json.Unmarshal([]byte(text), &e) == nil && e.Level != "DEBUG" {
			n++
		}
	}
	l.want(n <= l.net.Refused()/2, "log_lines", "there were %d", n)
}

// checkBackoff wants the waits between sessions that live for a moment to grow.
func (l *line) checkBackoff() {
	var gaps []time.Duration
	for i := range len(l.drops) - 1 {
		gaps = append(gaps, l.drops[i+1].Sub(l.drops[i]))
	}
	if len(gaps) < 8 {
		l.fail("backoff", "there were %d drops", len(l.drops))
		return
	}
	l.want(slices.Max(gaps) > 10*time.Second, "backoff", "waits were %v", gaps)
	l.want(slices.Min(gaps[len(gaps)/2:]) > time.Second, "backoff", "waits were %v", gaps)
}

func (l *line) checkAttempts() {
	limit := number(strings.TrimPrefix(l.c.words("attempts_in_10min"), "<="))
	opens := l.net.Requests("/connections/open")
	for i, from := range opens {
		n := cmp.Or(slices.IndexFunc(opens[i:], func(r system.Request) bool {
			return r.At.Sub(from.At) > 10*time.Minute
		}), 0)
		l.want(n <= limit, "attempts_in_10min", "there were %d", n)
	}
}

func (l *line) answers(id message.FrameID) (out []dingtalktest.Ack) {
	for _, a := range l.bot.Acks() {
		if a.Frame == id {
			out = append(out, a)
		}
	}
	return out
}

func (l *line) checkFirstAck() {
	l.want(len(l.answers(l.acks[0])) == 0, "ack_for_first", "it got %v", l.answers(l.acks[0]))
	late, _ := l.svc.Metric(`reason="ack_late"`)
	l.want(late == 1, "ack_for_first", "%v were counted as late", late)
}

func (l *line) checkSecondAck() {
	got := l.answers(l.acks[1])
	l.want(len(got) == 1 && got[0].Code == number(l.c.words("ack_for_second")) &&
		got[0].Session == l.session.Info().ID, "ack_for_second", "it got %v", got)
}

func (l *line) checkRuns() {
	l.want(len(l.runs()) == number(l.c.words("handler_runs")), "handler_runs",
		"it ran %d times", len(l.runs()))
}

// checkYoung wants an installation that is being connected to be just that.
func (l *line) checkYoung() {
	l.want(l.state == integrations.StateStarting, "rule", "it was %s meanwhile", l.state)
	l.want(!slices.Contains(l.svc.States(bot), integrations.StateDegraded), "rule",
		"it went through %v", l.svc.States(bot))
}

func (l *line) checkAlone() {
	key := "on_lease_loss"
	if l.c.has("default") && len(l.wrong["default"]) == 0 {
		key = "default"
	}
	l.want(len(l.bot.Sessions()) == 1, key, "%d instances are connected", len(l.bot.Sessions()))
}
