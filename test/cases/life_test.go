package cases_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/penstock-io/penstock/integrations/dingtalk/dingtalktest"
	"github.com/penstock-io/penstock/internal/config"
	"github.com/penstock-io/penstock/message"
	"github.com/penstock-io/penstock/router"
	"github.com/penstock-io/penstock/test/system"
)

// life is one case about the service's own life while it is played.
type life struct {
	*world
	count   int           // messages of the case
	took    time.Duration // of the stop
	handler time.Duration // how long a handler needs
	before  int           // runs before the stop
	late    *dingtalktest.Pushed
}

// match reads the numbers out of the step of a script that fits a pattern.
func (l *life) match(pattern string) ([]string, bool) {
	for _, s := range l.c.Input.Script {
		if m := regexp.MustCompile(pattern).FindStringSubmatch(s); m != nil {
			return m[1:], true
		}
	}
	return nil, false
}

// playShutdown stops a service in the middle of its work and starts it again.
func playShutdown(w *world) {
	l := &life{world: w}
	for _, s := range w.c.Input.Script {
		if !regexp.MustCompile(`^\d+ msgs in one chat, all acked$|^SIGTERM$|^handler needs \d+ s$|` +
			`^deadline \d+ s$`).MatchString(s) {
			w.odd("script", s)
			return
		}
	}
	if m, ok := l.match(`^(\d+) msgs`); ok {
		l.count = atoi(m[0])
	}
	if m, ok := l.match(`needs (\d+) s`); ok {
		l.handler = time.Duration(atoi(m[0])) * time.Second
	}
	if m, ok := l.match(`deadline (\d+) s`); ok {
		w.cfg.StopWithin = time.Duration(atoi(m[0])) * time.Second
	}
	l.shutdown()
	l.restartAndLook()
	judge(w.c, w.findings, map[string][]checker{
		"exit_within_ms": {{`^\d+$`, func() {
			limit := time.Duration(number(w.c.words("exit_within_ms"))) * time.Millisecond
			w.want(l.took <= limit, "exit_within_ms", "it took %v", l.took)
		}}},
		"after_restart":           {{`run again in order`, l.checkAgain}},
		"lost":                    {{`^0$`, l.checkAgain}},
		"new_frames_after_signal": {{`not ACKed unless stored`, l.checkLate}},
	})
	w.stop()
	w.pass(l.handler) // the handler that ignored its end
}

// shutdown signals while the first handler runs, which ignores that it is to end,
// and pushes one more message then.
func (l *life) shutdown() {
	l.connect()
	l.record.Do(func(context.Context, *message.Inbound) (router.Result, error) {
		<-time.After(l.handler)
		return router.Result{}, nil
	})
	for i := range l.count {
		l.message(strconv.Itoa(i + 1))
	}
	ctx, cancel := l.ctx()
	defer cancel()
	_, err := l.bot.AwaitAcks(ctx, l.count)
	require.NoError(l.t, err)
	began := time.Now()
	l.svc.Signal()
	l.settle()
	l.late = l.message("late")
	_ = l.svc.Stop() // it says what was cut off
	l.took = time.Since(began)
	l.before = len(l.runs())
}

func (l *life) message(text string) *dingtalktest.Pushed {
	p, err := l.bot.Push(dingtalktest.Text(chat, text))
	require.NoError(l.t, err)
	return p
}

func (l *life) restartAndLook() {
	l.record.Do(nil)
	l.run()
	l.session(0)
	l.pass(time.Minute)
}

// checkAgain wants all messages in order after the restart.
func (l *life) checkAgain() {
	var want, got []string
	for i := range l.count {
		want = append(want, strconv.Itoa(i+1))
	}
	for _, r := range l.runs()[l.before:] {
		if r.Message.Text != "late" {
			got = append(got, r.Message.Text)
		}
	}
	for _, key := range []string{"after_restart", "lost"} {
		l.want(slices.Equal(got, want), key, "run again were %v", got)
	}
}

// checkLate wants the late message to be acknowledged only if it is handled later.
func (l *life) checkLate() {
	acked := slices.ContainsFunc(l.bot.Acks(), func(a dingtalktest.Ack) bool {
		return a.Message == l.late.ID()
	})
	handled := slices.ContainsFunc(l.runs()[l.before:], func(r system.Run) bool {
		return r.Message.ID == l.late.ID()
	})
	l.want(!acked || handled, "new_frames_after_signal", "it was acknowledged and is lost")
}

// playRecovery pushes a message on which the handler panics, or holds the store
// while messages come.
func playRecovery(w *world) {
	l := &life{world: w}
	if len(w.c.Input.Wire) > 0 {
		l.poison()
		return
	}
	lock, ok1 := l.match(`^lock store (\d+) s$`)
	msgs, ok2 := l.match(`^(\d+) msgs arrive$`)
	if !ok1 || !ok2 || len(w.c.Input.Script) != 2 {
		w.odd("script", strings.Join(w.c.Input.Script, ", "))
		return
	}
	l.count = atoi(msgs[0])
	l.locked(time.Duration(atoi(lock[0])) * time.Second)
}

// locked lets another program lock the store and looks at what goes on meanwhile.
// What could not be stored comes again, in whatever order the platform likes.
func (l *life) locked(d time.Duration) {
	s := l.connect()
	l.pass(time.Second)
	release := l.lockFile()
	for i := range l.count {
		l.message(strconv.Itoa(i + 1))
	}
	pongs := s.Info().Pongs
	l.pass(d)
	early, pinged := len(l.bot.Acks()), s.Info().Pongs
	release()
	l.pass(time.Minute)
	judge(l.c, l.findings, map[string][]checker{
		"ack":   {{`held back`, func() { l.want(early == 0, "ack", "%d were not", early) }}},
		"pings": {{`still answered`, func() { l.want(pinged > pongs, "pings", "none was") }}},
		"lost": {{`^0$`, func() {
			var got []int
			for _, r := range l.runs() {
				got = append(got, atoi(r.Message.Text))
			}
			slices.Sort(got)
			l.want(len(got) == l.count && len(slices.Compact(got)) == l.count,
				"lost", "handled were %v", got)
			acks := len(l.bot.Acks())
			l.want(acks == l.count, "lost", "%d were acknowledged", acks)
		}}},
	})
	l.stop()
}

// lockFile locks the file of the store as another program would.
func (l *life) lockFile() (release func()) {
	l.t.Helper()
	db, err := sql.Open("sqlite", l.file)
	require.NoError(l.t, err)
	c, err := db.Conn(l.t.Context())
	require.NoError(l.t, err)
	_, err = c.ExecContext(l.t.Context(), "BEGIN IMMEDIATE")
	require.NoError(l.t, err)
	return func() {
		_, err := c.ExecContext(l.t.Context(), "ROLLBACK")
		require.NoError(l.t, errors.Join(err, c.Close(), db.Close()))
	}
}

// poison lets the handler panic on the messages of the case and on no other, with
// a restart in between.
func (l *life) poison() {
	l.record.Do(func(_ context.Context, m *message.Inbound) (router.Result, error) {
		if m.Text != "next" {
			panic(fmt.Sprintf("poison %s", m.ID))
		}
		return router.Result{}, nil
	})
	s := l.connect()
	var e envelope
	for _, item := range l.c.Input.Wire {
		require.NoError(l.t, json.Unmarshal([]byte(item.text), &e))
		s.PushRaw([]byte(item.text))
	}
	var p struct{ ConversationID message.ConversationID }
	require.NoError(l.t, json.Unmarshal([]byte(e.payload()), &p))
	l.pass(time.Second)
	_, err := l.bot.Push(dingtalktest.Text(p.ConversationID, "next"))
	require.NoError(l.t, err)
	l.pass(time.Hour)
	first := len(l.runs()) - 1
	dead := len(l.dead())
	next := l.runs()[first].Message.Text == "next"
	ready := l.svc.Health(bot).Ready
	// A second poison is left to a restart.
	s.PushRaw([]byte(strings.NewReplacer(string(e.id()), "frame-again", "msgExample", "msgOther").
		Replace(l.c.Input.Wire[0].text)))
	l.pass(5 * time.Second)
	l.kill()
	l.pass(time.Hour)
	total := len(l.runs()) - 1 - first
	judge(l.c, l.findings, map[string][]checker{
		"panic_contained": {{`^true$`, func() { l.want(ready, "panic_contained", "it is not ready") }}},
		"attempts": {{`<= configured, counted across restarts`, func() {
			l.want(total == l.cfg.Inbound.Attempts, "attempts", "%d with a restart", total)
		}}},
		"then": {{`dead-letter, next message of the chat runs`, func() {
			l.want(dead == len(l.c.Input.Wire), "then", "%d dead letters", dead)
			l.want(next, "then", "the next did not run")
			l.want(first <= l.cfg.Inbound.Attempts, "then", "it came after %d attempts", first)
		}}},
	})
	l.giveUp()
}

// playRedaction uses the secrets of a case in a run with everything in its log.
func playRedaction(w *world) {
	values := map[string]string{}
	for _, v := range w.c.Input.Values {
		name, value, _ := strings.Cut(v, "=")
		values[name] = value[strings.LastIndex(value, "=")+1:]
	}
	cred := dingtalktest.Credentials{ClientID: "client-of-" + w.c.ID, Secret: values["clientSecret"]}
	app, err := w.gw.AddApp(cred)
	require.NoError(w.t, err)
	w.bot = app
	w.cfg.Installations[0].ClientID = cred.ClientID
	w.cfg.Installations[0].ClientSecret = config.Secret(cred.Secret)
	grant := fmt.Sprintf(`{"endpoint":"ws://127.0.0.1:1/connect","ticket":%q}`, values["ticket"])
	w.gw.Inject(dingtalktest.RouteOpen, 1, dingtalktest.Fault{Body: grant})
	quoted := fmt.Sprintf(`{"code":%q}`, cred.Secret)
	w.gw.Inject(dingtalktest.RouteOpen, 1, dingtalktest.Fault{Status: 401, Body: quoted})
	w.gw.Inject(dingtalktest.RouteToken, -1, dingtalktest.Fault{
		Body: fmt.Sprintf(`{"accessToken":%q,"expireIn":7200}`, values["accessToken"]),
	})
	w.gw.Inject(dingtalktest.RouteWebhook, 1, dingtalktest.Fault{Cut: true})
	w.cfg.Reconnect.ProbeEvery = time.Second
	s := w.connect()
	w.record.Do(func(context.Context, *message.Inbound) (router.Result, error) {
		return router.Result{Replies: []message.Reply{{Text: "answer"}}}, nil
	})
	for i := range 3 {
		s.PushRaw([]byte(frameOf("frame"+strconv.Itoa(i), map[string]any{
			"conversationId": "cid" + strconv.Itoa(i), "msgId": "msg" + strconv.Itoa(i),
			"conversationType": "2", "msgtype": "picture",
			"content": map[string]string{"downloadCode": values["downloadCode"]},
			"sessionWebhook": w.gw.URL() + "/robot/sendBySession?session=" +
				values["sessionWebhook"],
		})))
	}
	w.pass(time.Hour)
	w.want(len(w.net.Requests("/accessToken")) > 0, "no_log_line_contains", "no token was fetched")
	w.want(len(w.net.Requests("/connect")) > 1, "no_log_line_contains", "the ticket was not used")
	judge(w.c, w.findings, map[string][]checker{"no_log_line_contains": {{`^\[`, w.checkSilence}}})
	w.giveUp()
}

// checkSilence looks for the words of the case in the log, on the health page and
// among the metrics.
func (w *world) checkSilence() {
	var words []string
	if err := json.Unmarshal(w.c.Expect["no_log_line_contains"], &words); err != nil {
		w.odd("no_log_line_contains", err.Error())
	}
	seen := append(w.svc.Log.Lines(), w.svc.Page(), fmt.Sprint(w.svc.App.Health()))
	for _, t := range w.record.Tries() {
		seen = append(seen, fmt.Sprint(t.Err))
	}
	w.want(len(seen) > 10, "no_log_line_contains", "there is next to no log")
	for _, word := range words {
		for _, line := range seen {
			w.want(!strings.Contains(line, word), "no_log_line_contains", "%s", line)
		}
	}
}
