package cases_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/penstock-io/penstock/integrations/dingtalk/dingtalktest"
	"github.com/penstock-io/penstock/message"
	"github.com/penstock-io/penstock/router"
	"github.com/penstock-io/penstock/test/system"
)

// envelope is what a player needs to know of a frame.
type envelope struct {
	Type    string            `json:"type"`
	Headers map[string]string `json:"headers"`
	Header  map[string]string `json:"header"`
	Data    json.RawMessage   `json:"data"`
}

func (e envelope) id() message.FrameID {
	return message.FrameID(e.Headers["messageId"] + e.Header["messageId"])
}

// payload is the inner document as it stands in the frame.
func (e envelope) payload() string { return textOf(e.Data) }

// sent is one message of the case and where it went.
type sent struct {
	envelope
	text    string
	session int
	at      time.Time
}

// replay is one case about the wire while it is played.
type replay struct {
	*world
	frames  []sent
	session *dingtalktest.Session
	// gate holds handlers for as long as it is open.
	gate   chan struct{}
	before float64 // the metric that is expected to change
}

// playWire pushes the messages of a case and looks at what comes back.
func playWire(w *world) {
	if !w.bubble {
		w.cfg.Inbound.Workers = 1
		w.cfg.Reconnect.Base = 10 * time.Millisecond
	}
	if !w.given() {
		return
	}
	r := &replay{world: w, gate: make(chan struct{})}
	r.session = w.connect()
	w.svc.Record.Do(r.handle)
	r.before = r.metric()
	if !w.c.Input.ReconnectBetween {
		close(r.gate)
	}
	for i, item := range w.c.Input.Wire {
		if i > 0 {
			r.between(i)
		}
		r.push(item)
	}
	if w.c.Input.ReconnectBetween {
		r.awaitAck(len(r.frames) - 1)
		close(r.gate)
	}
	w.settle()
	r.judge()
	r.mend()
	w.giveUp()
}

// mend repairs a store that has failed. What is pushed again then must be taken.
func (r *replay) mend() {
	if r.c.Given["store"] != "append fails" {
		return
	}
	r.store.FailAppends(false)
	r.push(r.copyOf(0, "frame-pushed-again"))
	r.settle()
	r.want(len(r.runs()) == 1, "ack", "pushed again, it was handled %d times", len(r.runs()))
}

// given arranges what a case says of the world. It is false for what it cannot.
func (w *world) given() bool {
	for key, value := range w.c.Given {
		switch {
		case key == "store" && value == "append fails":
			w.store.FailAppends(true)
		default:
			w.odd("given."+key, value)
			return false
		}
	}
	return true
}

// handle waits for the gate, and for the acknowledgement, which must not wait for
// the handler. A synchronous message is acknowledged by its handler's answer.
func (r *replay) handle(ctx context.Context, m *message.Inbound) (router.Result, error) {
	select {
	case <-r.gate:
	case <-ctx.Done():
		return router.Result{}, ctx.Err()
	}
	if m.FrameID == "" || m.Synchronous() || m.Text == settleText {
		return router.Result{}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	if err := r.untilAck(ctx, m.FrameID); err != nil {
		r.fail("ack_when", "frame %s was not acknowledged while its handler ran", m.FrameID)
	}
	return router.Result{}, nil
}

// untilAck waits until the gateway has read an acknowledgement of a frame.
func (w *world) untilAck(ctx context.Context, id message.FrameID) error {
	for n := 0; ; n++ {
		acks, err := w.bot.AwaitAcks(ctx, n)
		if slices.ContainsFunc(acks, func(a dingtalktest.Ack) bool { return a.Frame == id }) {
			return nil
		}
		if err != nil {
			return err
		}
		n = len(acks)
	}
}

func (r *replay) awaitAck(i int) {
	ctx, cancel := r.ctx()
	defer cancel()
	if err := r.untilAck(ctx, r.frames[i].id()); err != nil {
		r.fail("ack", "frame %d: %v", i+1, err)
	}
}

// between does what a case says happens between two messages.
func (r *replay) between(i int) {
	r.pass(time.Duration(r.c.Input.GapMS) * time.Millisecond)
	switch {
	case r.c.Input.ReconnectBetween:
		ctx, cancel := r.ctx()
		defer cancel()
		r.awaitAck(i - 1)
		require.NoError(r.t, r.svc.Record.Await(ctx, "the handler", func() bool {
			return len(r.runs()) > 0
		}))
		old := r.session.Info().ID
		r.session.Drop()
		r.session = r.world.session(old)
	case r.c.Input.Kill9Between:
		r.settle()
		r.session = r.kill()
		r.svc.Record.Do(r.handle)
	}
}

func (r *replay) push(item wireItem) {
	text := r.c.Input.Expand.apply(item.text)
	s := sent{text: text, session: r.session.Info().ID, at: time.Now()}
	_ = json.Unmarshal([]byte(text), &s.envelope) // some are no frames
	r.frames = append(r.frames, s)
	if item.binary {
		r.session.PushBinary([]byte(text))
		return
	}
	r.session.PushRaw([]byte(text))
}

// copyOf gives the i-th frame with another frame id and other words in its text.
func (r *replay) copyOf(i int, id string, edits ...string) wireItem {
	f := r.frames[i]
	edits = append(edits, string(f.id()), id)
	return wireItem{text: strings.NewReplacer(edits...).Replace(f.text)}
}

func (r *replay) metric() float64 {
	name, _, _ := strings.Cut(r.c.words("metric"), "+")
	sum, ok := r.svc.Metric(name)
	if r.c.has("metric") && !ok {
		r.fail("metric", "there is no metric %q", name)
	}
	return sum
}

// acks are the answers to the i-th message.
func (r *replay) acks(i int) []dingtalktest.Ack {
	id := r.frames[i].id()
	var out []dingtalktest.Ack
	for _, a := range r.bot.Acks() {
		if a.Unknown && a.Frame == id && id != "" {
			out = append(out, a)
		}
	}
	return out
}

func (r *replay) judge() {
	judge(r.c, r.findings, map[string][]checker{
		"ack":        r.ackCheckers(),
		"ack_when":   {{`stored.*before any handler`, func() {}}, {`at once`, r.checkAtOnce}},
		"ack_budget": {{`inside the platform's short limit.*empty`, r.checkBudget}},
		"store":      {{`enqueue|dead-letter|nothing|not stored`, r.checkStore}},
		"connection": {
			{`^keep`, r.checkKept},
			{`open the replacement first|as 058`, r.checkOverlap},
			{`redial|reconnect`, r.checkRedialled},
		},
		"normalized":                 {{``, r.checkNormalized}},
		"handler_runs":               {{`^\d+`, r.checkRuns}},
		"next_message_same_chat":     {{`still handled`, r.checkNext}},
		"metric":                     {{`\+\d+$`, r.checkMetric}},
		"frames_on_old_after_notice": {{`still processed`, r.checkOverlap}},
		"counts_as_alive":            {{`^true$`, r.checkAlive}},
		"dedup_key":                  {{`^(eventId|msgId)$`, r.checkKey}},
	})
}

// checkAtOnce holds every handler and wants the answer in no time.
func (r *replay) checkAtOnce() {
	for i := range r.frames {
		for _, a := range r.acks(i) {
			r.want(!r.bubble || a.At.Equal(r.frames[i].at), "ack_when",
				"message %d: after %v", i+1, a.At.Sub(r.frames[i].at))
		}
	}
	hold := make(chan struct{})
	r.svc.Record.Do(func(context.Context, *message.Inbound) (router.Result, error) {
		<-hold
		return router.Result{}, nil
	})
	defer close(hold)
	for i := range r.cfg.Inbound.Workers + 1 {
		_, err := r.bot.Push(dingtalktest.Text(message.ConversationID(fmt.Sprint("busy", i)), "busy"))
		require.NoError(r.t, err)
	}
	item := r.copyOf(0, "frame-while-busy")
	r.push(item)
	r.awaitAck(len(r.frames) - 1)
}

// checkBudget answers a copy of the message only after the platform has given up.
func (r *replay) checkBudget() {
	if !r.bubble {
		return // it is a matter of seconds
	}
	r.svc.Record.Do(func(context.Context, *message.Inbound) (router.Result, error) {
		<-time.After(10 * time.Second)
		return router.Result{Answer: []byte(`{"late":true}`)}, nil
	})
	r.push(r.copyOf(0, "frame-slow-handler"))
	i := len(r.frames) - 1
	r.awaitAck(i)
	for _, a := range r.acks(i) {
		r.want(a.Code == 200, "ack_budget", "the answer is %s", a.Raw)
		r.want(a.At.Sub(r.frames[i].at) < 2*time.Second, "ack_budget", "it took too long")
		r.want(!strings.Contains(a.Data, "late"), "ack_budget", "it is not empty: %s", a.Raw)
	}
	r.pass(20 * time.Second)
}

// times are the counts that a case may name.
var times = map[string]int{"once": 1, "twice": 2, "three times": 3}

// fates tells what becomes of each message: a word of the store's, in clauses that
// may name the message they speak of.
func (r *replay) fates() []string {
	out := make([]string, len(r.frames))
	for _, clause := range strings.Split(r.c.words("store"), ";") {
		fate := "nothing"
		for _, word := range []string{"enqueue", "dead-letter"} {
			if strings.Contains(clause, word) {
				fate = word
				break
			}
		}
		one := ordinal(clause)
		for i := range out {
			if one < 0 || one == i {
				out[i] = fate
			}
		}
	}
	for word, n := range times {
		if strings.Contains(r.c.words("store"), word) {
			clear(out[min(n, len(out)):])
		}
	}
	return out
}

// checkStore compares what was handled, in which order, and what was buried, with
// the expectation.
func (r *replay) checkStore() {
	want := map[string][]message.FrameID{}
	for i, fate := range r.fates() {
		want[fate] = append(want[fate], r.frames[i].id())
	}
	var ran, dead []message.FrameID
	for _, x := range r.runs() {
		ran = append(ran, x.Message.FrameID)
	}
	for _, x := range r.dead() {
		dead = append(dead, x.Message.FrameID)
	}
	if strings.Contains(r.c.words("store"), " or ") {
		ran, dead = append(ran, dead...), nil
	}
	r.want(slices.Equal(ran, want["enqueue"]), "store", "handled were %v", ran)
	r.want(slices.Equal(dead, want["dead-letter"]), "store", "buried were %v", dead)
}

func (r *replay) checkRuns() {
	r.want(len(r.runs()) == number(r.c.words("handler_runs")), "handler_runs",
		"it ran %d times", len(r.runs()))
}

func (r *replay) checkKept() {
	dials := r.bot.Stats().Dials
	r.want(dials == 1, "connection", "there were %d", dials)
	r.want(r.session.Info().State == dingtalktest.StateOpen, "connection",
		"it is %s", r.session.Info().State)
}

// checkRedialled wants the socket to be replaced.
func (r *replay) checkRedialled() {
	r.pass(2 * time.Minute)
	next := r.world.session(r.session.Info().ID)
	r.want(next != nil && r.session.Info().State == dingtalktest.StateClosed, "connection",
		"the old one is %s", r.session.Info().State)
}

func (r *replay) checkMetric() {
	_, by, _ := strings.Cut(r.c.words("metric"), "+")
	got := r.metric() - r.before
	r.want(got == float64(number(by)), "metric", "it rose by %v", got)
}

// checkNext sends one more message to the chat of the last.
func (r *replay) checkNext() {
	f := r.frames[len(r.frames)-1]
	var p struct {
		MsgID string `json:"msgId"`
	}
	require.NoError(r.t, json.Unmarshal([]byte(f.payload()), &p))
	n := len(r.runs())
	r.push(r.copyOf(len(r.frames)-1, "frame-next-in-chat", p.MsgID, "next-"+p.MsgID))
	r.settle()
	r.want(len(r.runs()) == n+1, "next_message_same_chat", "it was not handled")
}

// checkKey pushes the first frame again as a copy with another frame id.
func (r *replay) checkKey() {
	n := len(r.runs())
	r.push(r.copyOf(0, "frame-example-copy"))
	r.settle()
	r.want(len(r.runs()) == n, "dedup_key", "a copy was handled")
	got := r.acks(len(r.frames) - 1)
	r.want(len(got) == 1 && got[0].Code == 200, "dedup_key", "the copy got %v", got)
}

// checkAlive looks at a service that ends a session on which no frame is read for
// a minute, and at one frame a time before that.
func (r *replay) checkAlive() {
	if !r.bubble {
		return // it is a matter of minutes
	}
	w := &world{
		findings: r.findings, c: r.c, t: r.t, bubble: true, net: r.net, store: &system.Store{},
		record: system.NewRecord(),
	}
	w.serve("127.0.0.1:2", dingtalktest.Config{PingEvery: -1})
	w.cfg.Installations[0].AppSilence = time.Minute
	s := w.connect()
	for range 5 {
		w.pass(50 * time.Second)
		for _, f := range r.frames {
			s.PushRaw([]byte(f.text))
		}
	}
	w.pass(50 * time.Second)
	w.want(w.bot.Stats().Dials == 1, "counts_as_alive", "there were redials")
	w.pass(time.Minute)
	w.want(w.bot.Stats().Dials > 1, "counts_as_alive", "the silence was not noticed after all")
	w.stop()
}
