package cases_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/penstock-io/penstock/integrations/dingtalk/dingtalktest"
	"github.com/penstock-io/penstock/message"
	"github.com/penstock-io/penstock/test/system"
)

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
