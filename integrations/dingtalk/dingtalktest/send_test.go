package dingtalktest_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/penstock-io/penstock/integrations/dingtalk/dingtalktest"
	"github.com/penstock-io/penstock/message"
)

const (
	groupPath  = "/v1.0/robot/groupMessages/send"
	directPath = "/v1.0/robot/oToMessages/batchSend"
)

// webhook is the sessionWebhook of a message just pushed.
func (c *client) webhook(conversation message.ConversationID) string {
	c.t.Helper()
	var data struct{ SessionWebhook string }
	p := c.push(dingtalktest.Text(conversation, "hello"))
	require.NoError(c.t, json.Unmarshal([]byte(p.Data()), &data))
	return data.SessionWebhook
}

func robotBody(change map[string]any) string {
	body := map[string]any{
		"robotCode": dingtalktest.DefaultApp().RobotCode, "openConversationId": "cid1",
		"userIds": []string{"staff0001"}, "msgKey": "sampleMarkdown",
		"msgParam": `{"title":"T","text":"**hi**"}`,
	}
	for k, v := range change {
		body[k] = v
	}
	b, _ := json.Marshal(body) // maps of strings can be encoded
	return string(b)
}

func TestSessionWebhook(t *testing.T) {
	t.Parallel()
	var seen []dingtalktest.Sent
	c := serve(t, dingtalktest.Config{OnSend: func(s dingtalktest.Sent) { seen = append(seen, s) }})
	conversation := message.ConversationID("cid.odd/+ =&1")
	hook := c.webhook(conversation)
	text := c.must("POST", hook, nil, `{"msgtype":"text","text":{"content":"pong"}}`)
	require.EqualValues(t, 0, text.json["errcode"], text.body)
	c.must("POST", hook, nil, `{"msgtype":"markdown","markdown":{"title":"T","text":"**x**"}}`)
	sent, err := c.app().AwaitSent(within(t, time.Minute), 2)
	require.NoError(t, err)
	require.Equal(t, sent, seen)
	require.Equal(t, dingtalktest.RouteWebhook, sent[0].Route)
	require.Equal(t, conversation, sent[0].Conversation)
	require.Equal(t, "pong", sent[0].Text)
	require.Equal(t, []string{"markdown", "T", "**x**"},
		[]string{sent[1].Format, sent[1].Title, sent[1].Text})
	for body, code := range map[string]int{
		"{":                   40035,
		`{"msgtype":"voice"}`: 400105,
		`{"msgtype":"text","text":{"content":"` + strings.Repeat("x", 20000) + `"}}`: 460101,
	} {
		a := c.must("POST", hook, nil, body)
		require.Equal(t, 200, a.status)
		require.EqualValues(t, code, a.json["errcode"])
	}
	require.Equal(t, 3, c.app().Stats().SendsFailed)
	require.Equal(t, 2, c.app().Stats().Sent)
}

func TestSessionWebhookExpires(t *testing.T) {
	t.Parallel()
	bubble(t, dingtalktest.Config{}, func(c *client) {
		const body = `{"msgtype":"text","text":{"content":"x"}}`
		first, second := c.webhook("cid1"), ""
		require.EqualValues(c.t, 0, c.must("POST", first, nil, body).json["errcode"])
		<-time.After(91 * time.Minute)
		second = c.webhook("cid1")
		require.EqualValues(c.t, 300001, c.must("POST", first, nil, body).json["errcode"])
		require.EqualValues(c.t, 0, c.must("POST", second, nil, body).json["errcode"])
		c.app().ExpireWebhooks()
		require.EqualValues(c.t, 300001, c.must("POST", second, nil, body).json["errcode"])
		for _, odd := range []string{"", "x", "1.2.3", "9.0.9.x", "-1.0.9.x", "0.a.9.x", "0.0.9.%zz"} {
			a := c.must("POST", c.gw.URL()+"/robot/sendBySession?session="+escape(odd), nil, body)
			require.EqualValues(c.t, 300001, a.json["errcode"], odd)
		}
	})
}

func TestRobotAPI(t *testing.T) {
	t.Parallel()
	c := serve(t, dingtalktest.Config{})
	token := c.token()
	group := c.must("POST", c.gw.URL()+groupPath, token, robotBody(map[string]any{"userIds": nil}))
	require.Equal(t, 200, group.status, group.body)
	direct := c.must("POST", c.gw.URL()+directPath, token,
		robotBody(map[string]any{"openConversationId": ""}))
	require.Equal(t, 200, direct.status)
	require.Empty(t, direct.json["invalidStaffIdList"])
	sent := c.app().Sent()
	require.Len(t, sent, 2)
	require.EqualValues(t, "cid1", sent[0].Conversation)
	require.Equal(t, group.json["processQueryKey"], sent[0].Key)
	require.Equal(t, "**hi**", sent[0].Text)
	require.Equal(t, []message.UserID{"staff0001"}, sent[1].Users)
	require.Equal(t, token.Get(tokenHeader), sent[1].Token)
}

func TestRobotAPIRefusals(t *testing.T) {
	t.Parallel()
	c := serve(t, dingtalktest.Config{})
	token := c.token()
	many := strings.Split(strings.Repeat("u,", 21), ",")
	for code, test := range map[string]struct {
		path   string
		change map[string]any
	}{
		"invalidParameter.robotCode.empty":    {groupPath, map[string]any{"robotCode": ""}},
		"invalidParameter.robotCode.notExsit": {groupPath, map[string]any{"robotCode": "other"}},
		"miss.openConversationId":             {groupPath, map[string]any{"openConversationId": ""}},
		"invalidParameter.userIds.empty":      {directPath, map[string]any{"userIds": nil}},
		"invalidParameter.userIds.overMax":    {directPath, map[string]any{"userIds": many}},
		"invalidParameter.msgKey.empty":       {groupPath, map[string]any{"msgKey": ""}},
		"invalidParameter.msgParam.invalid":   {groupPath, map[string]any{"msgParam": "{"}},
		"invalidParameter.param.invalid":      {groupPath, map[string]any{"msgKey": 1}},
		"invalidParameter.msgParam.tooLong": {
			groupPath, map[string]any{"msgParam": `"` + strings.Repeat("x", 15000) + `"`},
		},
	} {
		a := c.must("POST", c.gw.URL()+test.path, token, robotBody(test.change))
		require.Equal(t, 400, a.status)
		require.Equal(t, code, a.json["code"])
	}
	require.Empty(t, c.app().Sent())
}

func TestTokensExpireWith400(t *testing.T) {
	t.Parallel()
	bubble(t, dingtalktest.Config{}, func(c *client) {
		target := c.gw.URL() + groupPath
		token := c.token()
		require.Equal(c.t, token, c.token(), "the same token, renewed")
		require.Equal(c.t, 200, c.must("POST", target, token, robotBody(nil)).status)
		<-time.After(2*time.Hour + time.Second)
		a := c.must("POST", target, token, robotBody(nil))
		require.Equal(c.t, 400, a.status)
		require.Equal(c.t, "InvalidAuthentication", a.json["code"])
		fresh := c.token()
		require.NotEqual(c.t, token, fresh)
		c.app().ExpireTokens()
		require.Equal(c.t, 400, c.must("POST", target, fresh, robotBody(nil)).status)
		require.Equal(c.t, 400, c.must("POST", target, nil, robotBody(nil)).status)
		require.Equal(c.t, 400, c.must("PUT", c.gw.URL()+"/v1.0/card/instances", fresh, "{}").status)
	})
}

func TestTokenRefusals(t *testing.T) {
	t.Parallel()
	c := serve(t, dingtalktest.Config{})
	a := c.must("POST", c.gw.URL()+"/v1.0/oauth2/accessToken", nil, `{"appKey":"x","appSecret":"y"}`)
	require.Equal(t, 400, a.status)
	require.Equal(t, "invalidClientIdOrSecret", a.json["code"])
	a = c.must("GET", c.gw.URL()+"/gettoken?appkey=x&appsecret=y", nil, "")
	require.EqualValues(t, 40089, a.json["errcode"])
	cred := c.app().Credentials()
	a = c.must("GET", c.gw.URL()+"/gettoken?appkey="+cred.ClientID+"&appsecret="+cred.Secret, nil, "")
	require.EqualValues(t, 7200, a.json["expires_in"])
	require.Equal(t, c.token().Get(tokenHeader), a.json["access_token"])
	a = c.must("GET", c.gw.URL()+"/call_back/get_call_back_failed_result?access_token=x", nil, "")
	require.EqualValues(t, 40014, a.json["errcode"])
}

func TestInjectedSendFaults(t *testing.T) {
	t.Parallel()
	c := serve(t, dingtalktest.Config{})
	token := c.token()
	target := c.gw.URL() + directPath
	c.gw.Inject(dingtalktest.RouteDirect, 1, dingtalktest.TokenInvalid())
	c.gw.Inject(dingtalktest.RouteDirect, 1, dingtalktest.APIError(500, "system.error"))
	c.gw.Inject(dingtalktest.RouteDirect, 1, dingtalktest.Partial([]string{"a"}, []string{"b"}))
	require.Equal(t, "InvalidAuthentication", c.must("POST", target, token, robotBody(nil)).json["code"])
	require.Equal(t, 500, c.must("POST", target, token, robotBody(nil)).status)
	require.Empty(t, c.app().Sent())
	part := c.must("POST", target, token, robotBody(nil))
	require.Equal(t, []any{"a"}, part.json["invalidStaffIdList"])
	require.Equal(t, []any{"b"}, part.json["flowControlledStaffIdList"])
	require.True(t, c.app().Sent()[0].Silent)

	hook := c.webhook("cid1")
	c.gw.Inject(dingtalktest.RouteWebhook, 1, dingtalktest.Errcode(-1, "busy"))
	a := c.must("POST", hook, nil, `{"msgtype":"text"}`)
	require.Equal(t, 200, a.status)
	require.EqualValues(t, -1, a.json["errcode"])
}

func TestAnswerNeverSent(t *testing.T) {
	t.Parallel()
	bubble(t, dingtalktest.Config{}, func(c *client) {
		hook := c.webhook("cid1")
		c.http.Timeout = time.Minute
		c.gw.Inject(dingtalktest.RouteWebhook, 1, dingtalktest.Unanswered())
		_, err := c.call("POST", hook, nil, `{"msgtype":"text","text":{"content":"x"}}`)
		require.Error(c.t, err)
		synctest.Wait()
		sent := c.app().Sent()
		require.Len(c.t, sent, 1)
		require.True(c.t, sent[0].Silent)
	})
}

func TestCardUpdate(t *testing.T) {
	t.Parallel()
	c := serve(t, dingtalktest.Config{})
	token := c.token()
	target := c.gw.URL() + "/v1.0/card/instances"
	a := c.must("PUT", target, token, `{"outTrackId":"t1","cardData":{}}`)
	require.Equal(t, true, a.json["success"])
	require.Equal(t, "t1", c.app().Sent()[0].Track)
	require.Equal(t, 400, c.must("PUT", target, token, `{}`).status)
}

func TestFiles(t *testing.T) {
	t.Parallel()
	c := serve(t, dingtalktest.Config{})
	c.app().AddFile("code/1==", []byte("content"))
	token := c.token()
	target := c.gw.URL() + "/v1.0/robot/messageFiles/download"
	robot := c.app().Credentials().RobotCode
	ask := func(code, robot string) answer {
		return c.must("POST", target, token,
			fmt.Sprintf(`{"downloadCode":%q,"robotCode":%q}`, code, robot))
	}
	link := ask("code/1==", robot).json["downloadUrl"].(string)
	require.Equal(t, "content", c.must("GET", link, nil, "").body)
	require.Equal(t, http.StatusNotFound, c.must("GET", link+"9", nil, "").status)
	require.Equal(t, http.StatusNotFound,
		c.must("GET", strings.Replace(link, "code", "none", 1), nil, "").status)
	require.Equal(t, "invalidParameter.robotCode.downloadCode", ask("old", robot).json["code"])
	require.Equal(t, "invalidParameter.robotCode.auth", ask("code/1==", "other").json["code"])
	require.Equal(t, "invalidParameter.robotCode.empty", ask("code/1==", "").json["code"])
}
