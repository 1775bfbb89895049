package openapi

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/penstock-io/penstock/message"
)

func TestLivingWebhookIsUsed(t *testing.T) {
	p := newPlatform(t)
	r, err := p.sender(t).Send(t.Context(), text(t, p.group(), "hello <you>"))
	require.NoError(t, err)
	require.Equal(t, message.Receipt{Route: "webhook"}, r)
	got := p.requests("")
	require.Len(t, got, 1, "no token is needed")
	require.Equal(t, seen{
		"POST", pathHook, "session=SENTINEL-C-session", "",
		`{"msgtype":"text","text":{"content":"hello <you>"}}`,
	}, got[0])
}

func TestWithoutWebhookTheRobotAPIIsUsed(t *testing.T) {
	for name, change := range map[string]func(*Target){
		"none":        func(to *Target) { to.Webhook = "" },
		"expired":     func(to *Target) { to.Expires = time.Now().Add(-time.Hour).UnixMilli() },
		"about to be": func(to *Target) { to.Expires = time.Now().Add(expiryMargin / 2).UnixMilli() },
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlatform(t)
			to := p.group()
			change(&to)
			r, err := p.sender(t).Send(t.Context(), text(t, to, "a \"b\""))
			require.NoError(t, err)
			require.Equal(t, message.Receipt{ID: "group-key", Route: "group"}, r)
			require.Empty(t, p.requests(pathHook))
			got := p.requests(pathGroup)[0]
			require.Equal(t, "token-0001", got.token)
			require.Equal(t, map[string]any{
				"robotCode": "robot01", "openConversationId": "cid/Example+01=",
				"msgKey": "sampleText", "msgParam": `{"content":"a \"b\""}`,
			}, jsonOf(t, got.body))
		})
	}
}

func TestChatOfTwoIsAddressedByStaffID(t *testing.T) {
	p := newPlatform(t)
	to := p.group()
	to.Webhook, to.Direct, to.RobotCode = "", true, "normal"
	o := text(t, to, "# Result\n**ok**")
	o.Format, o.Mentions = message.FormatMarkdown, []message.UserID{"staff0001"}
	r, err := p.sender(t).Send(t.Context(), o)
	require.NoError(t, err)
	require.Equal(t, "direct-key", r.ID)
	require.Equal(t, "direct", r.Route)
	require.Contains(t, r.Warning, "mentioned")
	require.Equal(t, map[string]any{
		"robotCode": "dingexampleclient01", "userIds": []any{"staff0001"},
		"msgKey": "sampleMarkdown", "msgParam": `{"title":"Result","text":"# Result\n**ok**"}`,
	}, jsonOf(t, p.requests(pathDirect)[0].body))
}

func TestMissingStaffIDIsSaidClearly(t *testing.T) {
	p := newPlatform(t)
	to := p.group()
	to.Direct, to.StaffID = true, ""
	s := p.sender(t)
	_, err := s.Send(t.Context(), text(t, to, "x"))
	require.NoError(t, err, "the webhook needs no staff id")

	p.script(pathHook, okAnswer(`{"errcode":300001}`))
	_, err = s.Send(t.Context(), text(t, to, "x"))
	se := failed(t, err)
	require.Equal(t, message.NextNever, se.Next)
	require.Equal(t, "no_staff_id", se.Code)
	require.ErrorContains(t, err, "staff id")
}

func TestGoneSessionFallsToTheRobotAPIOnce(t *testing.T) {
	p := newPlatform(t)
	p.script(pathHook, okAnswer(`{"errcode":300001,"errmsg":"session not found"}`))
	s := p.sender(t)
	for range 3 {
		r, err := s.Send(t.Context(), text(t, p.group(), "x"))
		require.NoError(t, err)
		require.Equal(t, "group", r.Route)
	}
	require.Len(t, p.requests(pathHook), 1, "a dead webhook is remembered")
	require.Len(t, p.requests(pathGroup), 3)
	require.EqualValues(t, 1, countOf(s, "webhook", "session_gone"))
	require.EqualValues(t, 3, countOf(s, "group", "sent"))
}

func TestEvilWebhookIsNeverContacted(t *testing.T) {
	p := newPlatform(t)
	s := p.sender(t)
	for _, hook := range []string{
		"https://oapi.dingtalk.com.evil.example/robot/sendBySession?session=x",
		"http://oapi.dingtalk.com/robot/sendBySession?session=x",
		"https://oapi.dingtalk.com@evil.example/x",
		"https://169.254.169.254/latest",
		"https://oapi.dingtalk.com./x",
		"https://oapi.dingtalk.com:8443/x",
		strings.Replace(p.webhook(), "http://", "http://user:pass@", 1),
		strings.Replace(p.webhook(), "127.0.0.1", "127.0.0.2", 1),
		"ftp://oapi.dingtalk.com/x", "://", "/robot/sendBySession",
	} {
		to := p.group()
		to.Webhook = hook
		require.Equal(t, hookRefused, s.hook(&to), hook)
		r, err := s.Send(t.Context(), text(t, to, "x"))
		require.NoError(t, err)
		require.Equal(t, "group", r.Route, "the robot API is the way")
		to.Direct, to.StaffID = true, ""
		_, err = s.Send(t.Context(), text(t, to, "x"))
		se := failed(t, err)
		require.Equal(t, []any{message.NextNever, codeHostRefused}, []any{se.Next, se.Code})
	}
	require.Empty(t, p.requests(pathHook))
	require.EqualValues(t, 11*3, s.Stats().HostsRefused)
}

func TestListedHostsAreUsable(t *testing.T) {
	s, err := New(Config{ClientID: "id", ClientSecret: "secret"})
	require.NoError(t, err)
	for _, hook := range []string{
		"https://oapi.dingtalk.com/robot/sendBySession?session=x",
		"https://api.dingtalk.com/robot/sendBySession?session=x",
		"https://OAPI.dingtalk.com:443/robot/sendBySession?session=x",
	} {
		require.Equal(t, hookUsable, s.hook(&Target{Webhook: hook}), hook)
	}
}

func TestRedirectIsNotFollowed(t *testing.T) {
	p := newPlatform(t)
	p.script(pathHook, reply{status: 307, header: map[string]string{"Location": p.URL + "/elsewhere"}})
	_, err := p.sender(t).Send(t.Context(), text(t, p.group(), "x"))
	require.Equal(t, codeRedirect, failed(t, err).Code)
	require.Empty(t, p.requests("/elsewhere"))
}

// TestTokenIsRenewedOnTheFourSigns has a platform that takes only the second
// token.
func TestTokenIsRenewedOnTheFourSigns(t *testing.T) {
	for name, sign := range map[string]reply{
		"400":     {status: 400, body: `{"code":"InvalidAuthentication","message":"x"}`},
		"401":     {status: 401},
		"invalid": okAnswer(`{"errcode":"40014","code":"InvalidParameter.Token"}`),
		"expired": okAnswer(`{"errcode":42001}`),
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlatform(t)
			p.script(pathGroup, sign, okAnswer(`{"processQueryKey":"k"}`))
			to := p.group()
			to.Webhook = ""
			s := p.sender(t)
			r, err := s.Send(t.Context(), text(t, to, "x"))
			require.NoError(t, err)
			require.Equal(t, "k", r.ID)
			got := p.requests(pathGroup)
			require.Equal(t, []string{"token-0001", "token-0002"}, []string{got[0].token, got[1].token})
			require.EqualValues(t, 1, s.Stats().Renewals)
		})
	}
}

func TestTokenRefusedTwiceWaits(t *testing.T) {
	p := newPlatform(t)
	p.script(pathGroup, reply{status: 400, body: `{"code":"InvalidAuthentication"}`})
	to := p.group()
	to.Webhook = ""
	_, err := p.sender(t).Send(t.Context(), text(t, to, "x"))
	se := failed(t, err)
	require.Equal(t, []any{message.NextWait, message.LandedNo, "InvalidAuthentication"},
		axes(se))
	require.Len(t, p.requests(pathGroup), 2)
}

func TestNoTokenNoReply(t *testing.T) {
	for _, c := range []struct {
		name   string
		answer reply
		next   message.Next
		code   string
	}{
		{
			"wrong secret",
			reply{status: 400, body: `{"code":"invalidClientIdOrSecret","message":"no"}`},
			message.NextPark, "invalidClientIdOrSecret",
		},
		{
			"what is final for a reply",
			reply{status: 400, body: `{"code":"some.new.code"}`},
			message.NextPark, "some.new.code",
		},
		{"refused token", reply{status: 401}, message.NextPark, "http_401"},
		{"down", reply{status: 500}, message.NextAgain, "http_500"},
		{"throttled", reply{status: 429}, message.NextWait, "http_429"},
		{"no token in it", okAnswer(`{"expireIn":7200}`), message.NextAgain, codeOdd},
		{"unusable token", okAnswer(`{"accessToken":"a\nb"}`), message.NextAgain, codeOdd},
		{"lost", reply{kill: true}, message.NextAgain, "connect"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := newPlatform(t)
			p.script(pathToken, c.answer)
			to := p.group()
			to.Webhook = ""
			s := p.sender(t)
			_, err := s.Send(t.Context(), text(t, to, "x"))
			se := failed(t, err)
			require.Equal(t, []any{c.next, message.LandedNo, c.code}, axes(se))
			require.Empty(t, p.requests(pathGroup))
			require.Equal(t, c.next == message.NextPark, len(s.Problems()) == 1)
		})
	}
}

func TestConcurrentSendsFetchOneToken(t *testing.T) {
	p := newPlatform(t)
	p.script(pathToken, okAnswer(`{"accessToken":"tok-example-0100","expireIn":0}`))
	to := p.group()
	to.Webhook = ""
	s, o := p.sender(t), text(t, to, "x")
	var wg sync.WaitGroup
	for range 32 {
		wg.Go(func() {
			_, err := s.Send(t.Context(), o)
			require.NoError(t, err)
		})
	}
	wg.Wait()
	require.Len(t, p.requests(pathToken), 1, "a life of 0 is kept for the floor")
	require.EqualValues(t, 1, countOf(s, "token", "sent"))
}

func TestTimeoutAfterTheRequestIsUncertain(t *testing.T) {
	p := newPlatform(t)
	p.script(pathHook, reply{hang: true})
	cfg := p.config()
	cfg.Timeout = 30 * time.Millisecond
	s, err := New(cfg)
	require.NoError(t, err)
	_, err = s.Send(t.Context(), text(t, p.group(), "x"))
	se := failed(t, err)
	require.Equal(t, []any{message.NextAgain, message.LandedMaybe, "timeout"}, axes(se))
	require.EqualValues(t, 1, s.Stats().Uncertain)
}

func TestLostConnectionIsUncertain(t *testing.T) {
	p := newPlatform(t)
	p.script(pathHook, reply{kill: true})
	_, err := p.sender(t).Send(t.Context(), text(t, p.group(), "x"))
	se := failed(t, err)
	require.Equal(t, []any{message.NextAgain, message.LandedMaybe, "connection_lost"},
		axes(se))
}

func TestAnswerCutOffIsUncertain(t *testing.T) {
	p := newPlatform(t)
	p.script(pathHook, reply{
		status: 200, body: `{"errc`, header: map[string]string{"Content-Length": "100"},
	})
	_, err := p.sender(t).Send(t.Context(), text(t, p.group(), "x"))
	require.Equal(t, message.LandedMaybe, failed(t, err).Landed)
}

func TestAnswerOverTheLimitIsNotRead(t *testing.T) {
	p := newPlatform(t)
	p.script(pathHook, okAnswer(`{"errcode":0,"x":"`+strings.Repeat("x", answerMax)+`"}`))
	_, err := p.sender(t).Send(t.Context(), text(t, p.group(), "x"))
	require.Equal(t, codeOdd, failed(t, err).Code)
}

func TestNothingWasSentWhenNobodyListens(t *testing.T) {
	p := newPlatform(t)
	o := text(t, p.group(), "x")
	s := p.sender(t)
	p.Close()
	_, err := s.Send(t.Context(), o)
	se := failed(t, err)
	require.Equal(t, []any{message.NextAgain, message.LandedNo, "connect"}, axes(se))
}

func TestCallersContext(t *testing.T) {
	p := newPlatform(t)
	s := p.sender(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, hook := range []string{p.webhook(), ""} {
		to := p.group()
		to.Webhook = hook
		_, err := s.Send(ctx, text(t, to, "x"))
		require.Equal(t, context.Canceled, err, "its own error when nothing was written")
	}
	require.EqualValues(t, 1, countOf(s, "webhook", "cancelled"))

	p.script(pathHook, reply{hang: true})
	ctx, cancel = context.WithCancel(t.Context())
	go func() {
		for len(p.requests(pathHook)) == 0 {
			select {
			case <-time.After(time.Millisecond):
			case <-t.Context().Done():
				return
			}
		}
		cancel()
	}()
	_, err := s.Send(ctx, text(t, p.group(), "x"))
	se := failed(t, err)
	require.Equal(t, []any{message.LandedMaybe, "cancelled"}, []any{se.Landed, se.Code})
	require.ErrorIs(t, err, context.Canceled)
}

func TestThrottledPartIsSentLater(t *testing.T) {
	p := newPlatform(t)
	fast := okAnswer(`{"errcode":130101,"errmsg":"send too fast"}`)
	ok := okAnswer(`{"errcode":0}`)
	p.script(pathHook, ok, fast, fast, ok)
	s := p.sender(t)
	long := text(t, p.group(), strings.Repeat("数据。", 6_000))
	parts := s.Split(long)
	require.Len(t, parts, 4)
	for _, part := range parts {
		for {
			_, err := s.Send(t.Context(), part)
			if err == nil {
				break
			}
			se := failed(t, err)
			require.Equal(t, []any{message.NextWait, message.LandedNo, time.Minute},
				[]any{se.Next, se.Landed, se.After})
		}
	}
	require.Len(t, p.requests(pathHook), 6)
}

func TestEmptyAnswerIsSentWithAWarning(t *testing.T) {
	p := newPlatform(t)
	p.script(pathHook, okAnswer(""))
	s := p.sender(t)
	r, err := s.Send(t.Context(), text(t, p.group(), "x"))
	require.NoError(t, err)
	require.NotEmpty(t, r.Warning)
	require.EqualValues(t, 1, countOf(s, "webhook", "warned"))
}

func TestMissingPermissionNamesTheScopeUntilItIsGranted(t *testing.T) {
	p := newPlatform(t)
	p.script(pathGroup,
		reply{status: 403, body: `{"code":"Forbidden.AccessDenied.AccessTokenPermissionDenied",` +
			`"message":"missing scope","requestid":"req-0098",` +
			`"accessdenieddetail":{"requiredScopes":["qyapi_robot_sendmsg"]}}`},
		okAnswer(`{"processQueryKey":"k"}`))
	to := p.group()
	to.Webhook = ""
	s := p.sender(t)
	_, err := s.Send(t.Context(), text(t, to, "x"))
	require.Equal(t, message.NextNever, failed(t, err).Next)
	require.ErrorContains(t, err, "qyapi_robot_sendmsg")
	require.Len(t, s.Problems(), 1)
	got := s.Problems()[0]
	require.Equal(t, []any{"group", 1}, []any{got.Route, got.Seen})
	require.Contains(t, got.Detail, "qyapi_robot_sendmsg")

	_, err = s.Send(t.Context(), text(t, to, "x"))
	require.NoError(t, err)
	require.Empty(t, s.Problems())
}

func TestRepliesThatCannotBeSent(t *testing.T) {
	p := newPlatform(t)
	s := p.sender(t)
	some := message.Reply{Text: "x"}
	for name, c := range map[string]struct {
		o    message.Outbound
		code string
	}{
		"blank":           {text(t, p.group(), " \n"), "empty_text"},
		"bad address":     {message.Outbound{Target: message.Target("SENTINEL-C"), Reply: some}, "bad_target"},
		"no address":      {message.Outbound{Reply: some}, "no_conversation"},
		"card of nothing": {card(t, Target{}, `{"cardData":{}}`), "no_card"},
		"no card":         {card(t, Target{Card: "c"}, ``), "bad_card"},
		"odd card":        {card(t, Target{Card: "c"}, `[]`), "bad_card"},
	} {
		_, err := s.Send(t.Context(), c.o)
		se := failed(t, err)
		require.Equal(t, []any{message.NextNever, message.LandedNo, c.code}, axes(se), name)
		require.NotContains(t, err.Error(), "SENTINEL")
	}
	require.Empty(t, p.requests(""))
}

func TestSendThatAnswersNothingGoesToItsConversation(t *testing.T) {
	p := newPlatform(t)
	_, err := p.sender(t).Send(t.Context(), message.Outbound{
		Conversation: "cid1", Reply: message.Reply{Text: "x"},
	})
	require.NoError(t, err)
	require.Equal(t, "cid1", jsonOf(t, p.requests(pathGroup)[0].body)["openConversationId"])
}

func card(t *testing.T, to Target, body string) message.Outbound {
	o := text(t, to, "")
	o.Format, o.Card = message.FormatCard, json.RawMessage(body)
	return o
}

func TestCardIsChanged(t *testing.T) {
	p := newPlatform(t)
	s := p.sender(t)
	to := Target{Card: "track1", User: "staff\"1", UserType: 1}
	r, err := s.Send(t.Context(), card(t, to,
		`{"cardData":{"cardParamMap":{"a":"<b>"}},"userPrivateData":{"cardParamMap":{"c":"1"}},`+
			`"cardUpdateOptions":{"updateCardDataByKey":true}}`))
	require.NoError(t, err)
	require.Equal(t, message.Receipt{Route: "card"}, r)
	got := p.requests(pathCard)[0]
	private := map[string]any{"cardParamMap": map[string]any{"c": "1"}}
	require.Equal(t, []string{http.MethodPut, "token-0001"}, []string{got.method, got.token})
	require.Contains(t, got.body, "<b>")
	require.Equal(t, map[string]any{
		"outTrackId":        "track1",
		"cardData":          map[string]any{"cardParamMap": map[string]any{"a": "<b>"}},
		"privateData":       map[string]any{"staff\"1": private},
		"userIdType":        1.0,
		"cardUpdateOptions": map[string]any{"updateCardDataByKey": true},
	}, jsonOf(t, got.body))

	_, err = s.Send(t.Context(), card(t, to, `{"outTrackId":"other","cardData":{}}`))
	require.NoError(t, err)
	require.Equal(t, "other", jsonOf(t, p.requests(pathCard)[1].body)["outTrackId"])
}

func TestStatsHaveEveryPairFromTheStart(t *testing.T) {
	st := newSender(t, 0).Stats()
	require.Len(t, st.Requests, int(routes)*int(results))
	for _, c := range st.Requests {
		require.NotEmpty(t, c.Route)
		require.NotEmpty(t, c.Result)
		require.Zero(t, c.N)
	}
}

func countOf(s *Sender, route, result string) uint64 {
	for _, c := range s.Stats().Requests {
		if c.Route == route && c.Result == result {
			return c.N
		}
	}
	return 0
}

// axes is what tells one failure from another.
func axes(se *message.SendError) []any { return []any{se.Next, se.Landed, se.Code} }
