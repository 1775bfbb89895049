package cases_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/penstock-io/penstock/integrations/dingtalk/dingtalktest"
	"github.com/penstock-io/penstock/message"
	"github.com/penstock-io/penstock/router"
	"github.com/penstock-io/penstock/test/system"
)

// routes are the requests that cases speak of and the gateway's names for them. A
// call of an older API that the service does not make stands for any call with a
// token.
var routes = []struct {
	part  string
	route dingtalktest.Route
}{
	{"/robot/sendBySession", dingtalktest.RouteWebhook},
	{"/groupMessages/send", dingtalktest.RouteGroup},
	{"/oToMessages/batchSend", dingtalktest.RouteDirect},
	{"/card/", dingtalktest.RouteCard},
	{"/accessToken", dingtalktest.RouteToken},
	{"/topapi/", dingtalktest.RouteGroup},
}

// chat is where the case's replies go; elsewhere is another.
const (
	chat      = message.ConversationID("cidCase")
	elsewhere = message.ConversationID("cidElsewhere")
)

// sending is one case about replies while it is played.
type sending struct {
	*world
	route dingtalktest.Route
	reply message.Reply
}

// playOutbound lets the handler answer, and the platform answer that as the case
// says: once, or each time if it goes on being tried.
func playOutbound(w *world) {
	if len(w.c.Input.Request.Cases) > 0 {
		playHosts(w)
		return
	}
	s := &sending{world: w}
	i := slices.IndexFunc(routes, func(r struct {
		part  string
		route dingtalktest.Route
	},
	) bool {
		return strings.Contains(w.c.Input.Request.Method, r.part)
	})
	if i < 0 {
		w.odd("request", w.c.Input.Request.Method)
		return
	}
	s.route = routes[i].route
	s.reply = s.wanted()
	s.inject()
	w.connect()
	w.pass(time.Second)
	w.record.Do(s.handle)
	s.ask(chat, "one")
	w.pass(time.Second)
	s.ask(elsewhere, "other")
	s.ask(chat, "two")
	w.pass(50 * time.Minute)
	s.judge()
	w.giveUp()
}

// wanted is the reply that makes the request of the case.
func (s *sending) wanted() message.Reply {
	var body struct {
		MsgType  string                   `json:"msgtype"`
		Text     struct{ Content string } `json:"text"`
		Markdown struct{ Title, Text string }
	}
	_ = json.Unmarshal(s.c.Input.Request.Body, &body) // not every request has one
	reply := message.Reply{Text: s.c.Input.Expand.apply(body.Text.Content)}
	switch {
	case s.route == dingtalktest.RouteCard:
		card := []byte(`{"cardParamMap":{"content":"part"}}`)
		reply = message.Reply{Format: message.FormatCard, Card: card}
	case body.MsgType == "markdown":
		reply = message.Reply{
			Format: message.FormatMarkdown, Title: body.Markdown.Title,
			Text: s.c.Input.Expand.apply(body.Markdown.Text),
		}
	case len(s.c.Input.Answers) > 0:
		reply.Text = numbered(s.parts())
	case reply.Text == "":
		reply.Text = "answer"
	}
	return reply
}

// numbered is a text of numbered lines that takes so many parts.
func numbered(parts int) string {
	var b strings.Builder
	for i := range parts * 240 {
		fmt.Fprintf(&b, "%05d %s\n", i, strings.Repeat("x", 43))
	}
	return b.String()
}

// parts is how many parts the case delivers.
func (s *sending) parts() int {
	var order []int
	_ = json.Unmarshal(s.c.Expect["delivered_order"], &order) // checked by its checker
	return max(1, len(order))
}

// inject lets the platform answer as the case says. What refuses a body for its
// size is the gateway's own judgement, so that only such bodies are refused.
func (s *sending) inject() {
	f := fault(s.c.Input.Response)
	if len(s.c.Input.Answers) > 0 {
		for _, a := range s.c.Input.Answers {
			if a == "ok" {
				s.gw.Inject(s.route, 1, dingtalktest.Slow(1))
				continue
			}
			s.gw.Inject(s.route, 1, f)
		}
		return
	}
	if strings.Contains(f.Body, "460101") {
		if s.c.has("if_it_happens") {
			s.gw.Inject(s.route, 1, f)
		}
		return
	}
	if s.route == dingtalktest.RouteToken {
		f.Body = s.withRealToken(f.Body)
	}
	s.gw.Inject(s.route, s.often(), f)
}

// withRealToken puts a token that the gateway takes in the place of the case's.
func (s *sending) withRealToken(body string) string {
	var c, real struct{ AccessToken string }
	if json.Unmarshal([]byte(body), &c) != nil || c.AccessToken == "" {
		return body
	}
	cred := s.bot.Credentials()
	ask, err := json.Marshal(map[string]string{"appKey": cred.ClientID, "appSecret": cred.Secret})
	require.NoError(s.t, err)
	tr := &http.Transport{DialContext: s.net.DialContext, DisableKeepAlives: true}
	resp, err := (&http.Client{Transport: tr}).Post(
		s.gw.URL()+"/v1.0/oauth2/accessToken", "application/json", bytes.NewReader(ask))
	require.NoError(s.t, err)
	defer func() { _ = resp.Body.Close() }()
	require.NoError(s.t, json.NewDecoder(resp.Body).Decode(&real))
	return strings.ReplaceAll(body, c.AccessToken, real.AccessToken)
}

// often is how many requests get the answer of the case: what is waited out ends,
// everything else stays as it is.
func (s *sending) often() int {
	class := s.c.words("class")
	switch {
	case strings.HasPrefix(class, "rate-limited"):
		return 3
	case strings.HasPrefix(class, "ambiguous"):
		return 1
	}
	return -1
}

// ask lets a person write what makes the handler answer.
func (s *sending) ask(where message.ConversationID, text string) {
	if s.route == dingtalktest.RouteCard {
		_, err := s.bot.Push(dingtalktest.Card{Conversation: where, Track: "track-" + text})
		require.NoError(s.t, err)
		return
	}
	m := dingtalktest.Text(where, text)
	m.Direct = s.route == dingtalktest.RouteDirect
	if s.route != dingtalktest.RouteWebhook {
		m.Fields = map[string]any{"sessionWebhook": nil, "sessionWebhookExpiredTime": nil}
	}
	_, err := s.bot.Push(m)
	require.NoError(s.t, err)
}

// handle answers the case's message as the case says, and others in short.
func (s *sending) handle(_ context.Context, m *message.Inbound) (router.Result, error) {
	reply := s.reply
	if m.Text == "two" || m.Text == "other" {
		reply = message.Reply{Text: "answer to " + m.Text}
	}
	return router.Result{Replies: []message.Reply{reply}}, nil
}

// tries are the attempts to send the first reply, or one part of it.
func (s *sending) tries() []system.Try {
	first := s.record.Runs()[0].Message.ID
	return slices.DeleteFunc(s.record.Tries(), func(t system.Try) bool {
		return t.Reply.InReplyTo != first
	})
}

// failure is the first error of a send.
func (s *sending) failure() *message.SendError {
	for _, t := range s.tries() {
		var e *message.SendError
		if errors.As(t.Err, &e) {
			return e
		}
	}
	return &message.SendError{Err: errors.New("nothing failed")}
}

func (s *sending) judge() {
	judge(s.c, s.findings, map[string][]checker{
		"class": {
			{`^permanent`, s.checkPermanent},
			{`^rate-limited`, func() { s.checkNext(message.NextWait) }},
			{`^ambiguous`, s.checkAmbiguous},
			{`^unknown outcome`, s.checkUnknown},
			{`^transient`, func() { s.checkNext(message.NextAgain) }},
			{`^auth`, s.checkAuth},
		},
		"retry": {
			{`^0$`, s.checkOnce},
			{`wait >= \d+ s then growing`, s.checkGrowing},
			{`not before \d+ s|>= \d+ s`, s.checkNotBefore},
			{`exponential|backoff`, s.checkBackoff},
		},
		"dead_letter":           {{`^(true|false)$`, s.checkDead}},
		"result":                {{`failed on this route`, s.checkFailedRoute}},
		"next":                  {{`fall back to OpenAPI send with robotCode`, s.checkFallback}},
		"success_counted":       {{`^false$`, s.checkFailedRoute}},
		"later_items_overtake":  {{`^false$`, s.checkOrder}},
		"before_send":           {{`split by BYTES on rune and line borders`, s.checkSplit}},
		"if_it_happens":         {{`never resend unchanged`, s.checkNeverAgain}},
		"never_sent_over_limit": {{`^true$`, s.checkLimit}},
		"rule":                  {{`checked against the ENCODED body`, s.checkEncoding}},
		"coalesce":              {{`newest intermediate state`, s.checkStream}},
		"final_state":           {{`always sent`, s.checkStream}},
		"health":                {{`names the scope`, s.checkScope}},
		"cache_for":             {{`floor`, s.checkFloor}},
		"fetch_rate":            {{`<= 1 per floor`, s.checkFloor}},
		"NaN_or_negative_timer": {{`^false$`, s.checkFloor}},
		"hint":                  {{`must be`, s.checkHint}},
		"parse":                 {{`accepts both`, s.checkBoth}},
		"policy":                {{`attempt is recorded before the call`, s.checkRecorded}},
		"delivered_order":       {{`^\[`, s.checkDelivered}},
		"dropped":               {{`^0$`, s.checkDelivered}},
		"duplicates":            {{`^0$`, s.checkDelivered}},
		"other_chats":           {{`not delayed`, s.checkElsewhere}},
	})
}

func (s *sending) checkNext(want message.Next) {
	e := s.failure()
	s.want(e.Next == want, "class", "next is %d: %v", e.Next, e)
}

func (s *sending) checkPermanent() {
	e := s.failure()
	final := e.Next == message.NextNever || e.Next == message.NextPark
	s.want(final, "class", "it is %d: %v", e.Next, e)
}

func (s *sending) checkAmbiguous() {
	e := s.failure()
	s.want(e.Landed == message.LandedMaybe, "class", "it is %v", e)
	n, _ := s.svc.Metric("send_uncertain_total")
	s.want(n > 0, "class", "it was not counted")
}

// checkUnknown wants a reply that was taken, as far as one can tell, and sent once.
func (s *sending) checkUnknown() {
	t := s.tries()
	s.want(len(t) == 1 && t[0].Err == nil, "class", "%d attempts", len(t))
}

// checkAuth wants the token to have been renewed.
func (s *sending) checkAuth() {
	n := len(s.net.Requests("/accessToken"))
	s.want(n > 1, "class", "%d tokens were fetched", n)
}

func (s *sending) checkOnce() {
	s.want(len(s.tries()) == 1, "retry", "it was tried %d times", len(s.tries()))
}

func (s *sending) checkGrowing() {
	least := time.Duration(number(s.c.words("retry"))) * time.Second
	t := s.tries()
	last := time.Duration(0)
	for i := range len(t) - 1 {
		gap := t[i+1].At.Sub(t[i].At)
		s.want(t[i].Reply.ID == t[i+1].Reply.ID, "retry", "another item was tried")
		s.want(gap >= least && gap > last, "retry", "wait %d was %v after %v", i+1, gap, last)
		last = gap
	}
	s.want(len(t) > 2, "retry", "it was tried %d times", len(t))
}

func (s *sending) checkNotBefore() {
	least := time.Duration(number(s.c.words("retry"))) * time.Second
	t := s.tries()
	s.want(len(t) > 1, "retry", "it was tried %d times", len(t))
	for i := range len(t) - 1 {
		gap := t[i+1].At.Sub(t[i].At)
		s.want(gap >= least, "retry", "wait %d was %v", i+1, gap)
	}
}

func (s *sending) checkBackoff() {
	t := s.tries()
	if len(t) < 3 {
		s.fail("retry", "it was tried %d times", len(t))
		return
	}
	first, second := t[1].At.Sub(t[0].At), t[2].At.Sub(t[1].At)
	s.want(second > first, "retry", "waits were %v and %v", first, second)
}

func (s *sending) checkDead() {
	dead := 0
	for _, e := range s.record.SendsEnded() {
		if e.Dead != "" && e.Reply.ID == s.tries()[0].Reply.ID {
			dead++
		}
	}
	want := 0
	if s.c.words("dead_letter") == "true" {
		want = 1
	}
	s.want(dead == want, "dead_letter", "there are %d", dead)
}

// checkFailedRoute wants nothing to count as sent on the case's route.
func (s *sending) checkFailedRoute() {
	for _, x := range s.bot.Sent() {
		s.want(x.Route != s.route, "result", "it was sent there: %s", x.Body)
	}
}

func (s *sending) checkFallback() {
	all := s.bot.Sent()
	s.want(len(all) == 3, "next", "%d replies were sent", len(all))
	for _, x := range all {
		s.want(x.Route == dingtalktest.RouteGroup &&
			strings.Contains(x.Body, s.bot.Credentials().RobotCode),
			"next", "sent was %s %s", x.Route, x.Body)
	}
}

// checkOrder wants the replies of the chat in order.
func (s *sending) checkOrder() {
	var texts []string
	for _, x := range s.bot.Sent() {
		if x.Conversation == chat {
			texts = append(texts, x.Text)
		}
	}
	s.want(slices.Equal(texts, []string{s.reply.Text, "answer to two"}), "later_items_overtake",
		"sent were %q", texts)
}

// chatParts are the parts of the long reply that the platform took.
func (s *sending) chatParts() []dingtalktest.Sent {
	return slices.DeleteFunc(s.bot.Sent(), func(x dingtalktest.Sent) bool {
		return x.Conversation != chat || x.Text == "answer to two"
	})
}

func (s *sending) checkLimit() {
	refused := s.bot.Stats().SendsFailed
	s.want(refused == 0, "never_sent_over_limit", "%d were refused", refused)
	s.want(len(s.chatParts()) > 1, "never_sent_over_limit", "it was not split")
	for _, x := range s.chatParts() {
		s.want(len(x.Body) <= 20000, "never_sent_over_limit", "a body has %d bytes", len(x.Body))
	}
}

func (s *sending) checkEncoding() {
	for _, x := range s.chatParts() {
		s.want(!strings.Contains(x.Body, `\u`), "rule", "a body is escaped: %.200s", x.Body)
	}
}

// checkSplit wants parts that were cut between runes and were never refused for
// their size, but for the one answer of the case.
func (s *sending) checkSplit() {
	refused := s.bot.Stats().SendsFailed
	s.want(refused == 0, "before_send", "%d were refused", refused)
	var parts int
	for _, t := range s.tries() {
		parts = max(parts, t.Reply.Parts)
		s.want(utf8.ValidString(t.Reply.Text), "before_send", "a rune was cut")
		s.want(len(t.Reply.Text) < 20000, "before_send", "a part has %d bytes", len(t.Reply.Text))
	}
	s.want(parts > 1, "before_send", "it was not split")
}

func (s *sending) checkNeverAgain() {
	e := s.failure()
	s.want(e.Next == message.NextNever, "if_it_happens", "it is %v", e)
	n := 0
	for _, t := range s.tries() {
		if t.Reply.ID == s.tries()[0].Reply.ID {
			n++
		}
	}
	s.want(n == 1, "if_it_happens", "it was sent %d times", n)
}

// checkStream wants a streaming update of a card.
func (s *sending) checkStream() {
	if len(s.net.Requests("/card/streaming")) == 0 {
		s.fail("coalesce", "no card was streamed")
		s.fail("final_state", "no card was streamed")
	}
}

func (s *sending) checkScope() {
	var body struct {
		Detail struct{ RequiredScopes []string } `json:"accessdenieddetail"`
	}
	_ = json.Unmarshal([]byte(s.c.Input.Response.Body), &body) // no scope is no name
	h := s.svc.Health(bot)
	for _, scope := range body.Detail.RequiredScopes {
		s.want(strings.Contains(h.Error, scope), "health", "it is %s: %q", h.State, h.Error)
	}
	s.want(len(body.Detail.RequiredScopes) > 0, "health", "the case has no scope")
}

// checkFloor sends a reply every ten seconds and wants a token to do for several.
func (s *sending) checkFloor() {
	const every, floor = 10 * time.Second, 30 * time.Second
	s.want(len(s.bot.Sent()) >= 3, "cache_for", "%d replies were sent", len(s.bot.Sent()))
	before := len(s.net.Requests("/accessToken"))
	for i := range 30 {
		s.ask(chat, "again"+strconv.Itoa(i))
		s.pass(every)
	}
	got := slices.DeleteFunc(s.net.Requests("/accessToken"), func(r system.Request) bool {
		return !r.At.After(s.began) // the case's own
	})
	s.want(len(got) > before, "cache_for", "no token was fetched again")
	for i := range len(got) - 1 {
		gap := got[i+1].At.Sub(got[i].At)
		s.want(gap >= floor, "fetch_rate", "tokens were fetched %v apart", gap)
	}
}

func (s *sending) checkHint() {
	_, hint, _ := strings.Cut(s.c.words("hint"), "must be")
	s.want(strings.Contains(s.failure().Error(), "must be"+hint), "hint", "it says: %v", s.failure())
}

// checkBoth plays the case again with the code as a number.
func (s *sending) checkBoth() {
	var body map[string]any
	require.NoError(s.t, json.Unmarshal([]byte(s.c.Input.Response.Body), &body))
	if n, err := strconv.Atoi(fmt.Sprint(body["errcode"])); err == nil {
		body["errcode"] = n
	}
	b, err := json.Marshal(body)
	require.NoError(s.t, err)
	s.gw.Clear(s.route)
	f := fault(s.c.Input.Response)
	f.Body = string(b)
	s.gw.Inject(s.route, -1, f)
	code, before := s.failure().Code, len(s.record.Tries())
	s.ask("cidNumber", "number")
	s.pass(time.Second)
	again := s.record.Tries()[before:]
	var e *message.SendError
	s.want(len(again) > 0 && errors.As(again[0].Err, &e) && e.Code == code, "parse",
		"as a number it is %v, not %s", again, code)
}

// checkRecorded wants the attempts in the store, and the reply tried again.
func (s *sending) checkRecorded() {
	s.want(s.store.Begun() >= len(s.record.Tries()), "policy", "%d attempts, %d recorded",
		len(s.record.Tries()), s.store.Begun())
	t := s.tries()
	s.want(len(t) == 2 && t[1].Err == nil, "policy", "it was tried %d times", len(t))
	s.want(len(t) == 2 && t[0].Reply.ID == t[1].Reply.ID, "policy", "its id has changed")
}

// checkDelivered wants every line of the long reply once, in order, in so many
// parts.
func (s *sending) checkDelivered() {
	var all strings.Builder
	for _, x := range s.chatParts() {
		all.WriteString(strings.TrimSuffix(x.Text, "\n") + "\n")
	}
	s.want(len(s.chatParts()) == s.parts(), "delivered_order", "%d parts", len(s.chatParts()))
	s.want(all.String() == s.reply.Text, "delivered_order", "it is not the reply")
}

func (s *sending) checkElsewhere() {
	for _, t := range s.record.Tries() {
		if t.Reply.Conversation == elsewhere {
			asked := s.began.Add(2 * time.Second)
			took := t.At.Sub(asked)
			s.want(took < 2*time.Second, "other_chats", "sent after %v", took)
			return
		}
	}
	s.fail("other_chats", "nothing was sent there")
}

// playHosts lets messages come with the webhooks of the case and looks at where the
// service goes.
func playHosts(w *world) {
	w.cfg.Outbound.Attempts = 1
	w.connect()
	w.record.Do(func(context.Context, *message.Inbound) (router.Result, error) {
		return router.Result{Replies: []message.Reply{{Text: "answer"}}}, nil
	})
	for verdict, hooks := range w.c.Input.Request.Cases {
		for i, hook := range hooks {
			before := len(w.net.Dials())
			m := dingtalktest.Text(message.ConversationID(verdict+strconv.Itoa(i)), verdict)
			m.Fields = map[string]any{"sessionWebhook": hook}
			_, err := w.bot.Push(m)
			require.NoError(w.t, err)
			w.pass(time.Second)
			dialled := w.net.Dials()[before:]
			w.want(allowed(verdict, hook, dialled), "rule", "%s %s: dialled %v", verdict, hook, dialled)
		}
	}
	judge(w.c, w.findings, map[string][]checker{
		"rule": {{`exact host list.*https`, func() {}}},
	})
	w.giveUp()
}

// allowed tells whether the dials fit the verdict: to the hook's own host, or to
// nothing but the gateway.
func allowed(verdict, hook string, dialled []string) bool {
	u, err := url.Parse(hook)
	if err != nil {
		return false
	}
	if verdict == "allow" {
		return slices.Contains(dialled, u.Hostname()+":443")
	}
	return !slices.ContainsFunc(dialled, func(a string) bool { return a != "127.0.0.1:1" })
}
