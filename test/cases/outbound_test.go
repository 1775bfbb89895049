package cases_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

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
