package dingtalktest

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/penstock-io/penstock/message"
)

// Limits of what the bot may send.
const (
	webhookLimit  = 20000 // bytes of a body
	msgParamLimit = 15000 // bytes of msgParam
	userLimit     = 20    // receivers of one call
)

// Sent is one message that the bot sent and the platform took.
type Sent struct {
	Route        Route
	Conversation message.ConversationID // RouteWebhook and RouteGroup
	Users        []message.UserID       // RouteDirect
	Track        string                 // RouteCard: outTrackId
	Format       string                 // msgtype or msgKey
	Title        string
	Text         string
	Body         string // as it came
	Token        string // the access token it came with, if any
	Key          string // the processQueryKey it was answered with, if any
	At           time.Time
	// Silent: it was taken and the right answer never given. See Fault.Landed.
	Silent bool
}

// record keeps what the bot sent.
func (a *App) record(w http.ResponseWriter, s Sent) {
	_, s.Silent = w.(discard)
	s.At = time.Now()
	a.mu.Lock()
	a.sent.put(s)
	a.notifyLocked()
	a.mu.Unlock()
	if hook := a.gw.cfg.OnSend; hook != nil {
		hook(s)
	}
}

// refuse answers with an error of the API and counts it.
func (a *App) refuse(w http.ResponseWriter, status int, body string) {
	a.count(func(s *Stats) { s.SendsFailed++ })
	answer(w, status, body)
}

// session makes the secret part of a sessionWebhook. It holds all there is to
// know, so that the gateway need not remember it.
func (a *App) session(c message.ConversationID, expires time.Time) string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return fmt.Sprintf("%d.%d.%d.%s",
		a.index, a.epoch, expires.UnixMilli(), url.QueryEscape(string(c)))
}

// ExpireWebhooks ends all sessionWebhooks made so far.
func (a *App) ExpireWebhooks() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.epoch++
}

// findSession reads a session; the app is nil if it is unknown or has expired.
func (g *Gateway) findSession(session string) (*App, message.ConversationID) {
	part := strings.SplitN(session, ".", 4)
	if len(part) != 4 {
		return nil, ""
	}
	index, err1 := strconv.Atoi(part[0])
	epoch, err2 := strconv.Atoi(part[1])
	expires, err3 := strconv.ParseInt(part[2], 10, 64)
	conversation, err4 := url.QueryUnescape(part[3])
	for _, err := range []error{err1, err2, err3, err4} {
		if err != nil {
			return nil, ""
		}
	}
	a := g.appAt(index)
	if a == nil || time.Now().UnixMilli() > expires || epoch != a.currentEpoch() {
		return nil, ""
	}
	return a, message.ConversationID(conversation)
}

func (g *Gateway) appAt(index int) *App {
	g.mu.Lock()
	defer g.mu.Unlock()
	if index < 0 || index >= len(g.apps) {
		return nil
	}
	return g.apps[index]
}

func (a *App) currentEpoch() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.epoch
}

// webhookBody is what may be sent to a sessionWebhook, as far as it is looked at.
type webhookBody struct {
	MsgType string `json:"msgtype"`
	Text    struct {
		Content string `json:"content"`
	} `json:"text"`
	Markdown struct {
		Title string `json:"title"`
		Text  string `json:"text"`
	} `json:"markdown"`
}

// serveWebhook takes a reply to a message. All its errors are HTTP 200 with an
// errcode; it asks for no access token.
func (g *Gateway) serveWebhook(w http.ResponseWriter, r *http.Request) {
	a, conversation := g.findSession(r.URL.Query().Get("session"))
	if a == nil {
		answer(w, http.StatusOK, errcode(300001, "session 不存在"))
		return
	}
	raw, err := io.ReadAll(r.Body)
	var body webhookBody
	switch known := []string{"text", "markdown", "actionCard", "link", "feedCard"}; {
	case err != nil || json.Unmarshal(raw, &body) != nil:
		a.refuse(w, http.StatusOK, errcode(40035, "test: not a JSON object"))
		return
	case len(raw) > webhookLimit:
		a.refuse(w, http.StatusOK, errcode(460101, "message too long, exceed 20000 bytes"))
		return
	case !slices.Contains(known, body.MsgType):
		a.refuse(w, http.StatusOK, errcode(400105, "test: msgtype unknown"))
		return
	}
	a.record(w, Sent{
		Route: RouteWebhook, Conversation: conversation, Format: body.MsgType,
		Title: body.Markdown.Title, Text: body.Text.Content + body.Markdown.Text,
		Body: string(raw), Token: r.Header.Get(tokenHeader),
	})
	answer(w, http.StatusOK, errcode(0, "ok"))
}

// robotBody is what both calls of the robot API have in common, and what they
// have not.
type robotBody struct {
	RobotCode    string                 `json:"robotCode"`
	UserIDs      []message.UserID       `json:"userIds"`
	Conversation message.ConversationID `json:"openConversationId"`
	MsgKey       string                 `json:"msgKey"`
	MsgParam     string                 `json:"msgParam"`
}

// check finds what is wrong with a call; it is empty if nothing is.
func (b robotBody) check(route Route, a *App) (code string) {
	switch {
	case b.RobotCode == "":
		return "invalidParameter.robotCode.empty"
	case b.RobotCode != a.cred.RobotCode:
		return "invalidParameter.robotCode.notExsit"
	case route == RouteGroup && b.Conversation == "":
		return "miss.openConversationId"
	case route == RouteDirect && len(b.UserIDs) == 0:
		return "invalidParameter.userIds.empty"
	case len(b.UserIDs) > userLimit:
		return "invalidParameter.userIds.overMax"
	case b.MsgKey == "":
		return "invalidParameter.msgKey.empty"
	case !json.Valid([]byte(b.MsgParam)):
		return "invalidParameter.msgParam.invalid"
	case len(b.MsgParam) > msgParamLimit:
		return "invalidParameter.msgParam.tooLong"
	}
	return ""
}

// serveGroup takes a message to a group.
func (g *Gateway) serveGroup(w http.ResponseWriter, r *http.Request) {
	if key, ok := g.robotCall(w, r, RouteGroup); ok {
		answer(w, http.StatusOK, fmt.Sprintf(`{"processQueryKey":%s}`, quote(key)))
	}
}

// serveDirect takes a message to people. That some of them cannot be reached is
// not found here but injected: see Partial.
func (g *Gateway) serveDirect(w http.ResponseWriter, r *http.Request) {
	if key, ok := g.robotCall(w, r, RouteDirect); ok {
		answer(w, http.StatusOK, fmt.Sprintf(`{"processQueryKey":%s,`+
			`"invalidStaffIdList":[],"flowControlledStaffIdList":[]}`, quote(key)))
	}
}

// robotCall checks and records a call of the robot API; it is false after it has
// refused it.
func (g *Gateway) robotCall(w http.ResponseWriter, r *http.Request, route Route) (string, bool) {
	a := g.authorized(w, r)
	if a == nil {
		return "", false
	}
	raw, err := io.ReadAll(r.Body)
	var body robotBody
	code := "invalidParameter.param.invalid"
	if err == nil && json.Unmarshal(raw, &body) == nil {
		code = body.check(route, a)
	}
	if code != "" {
		a.refuse(w, http.StatusBadRequest, apiError(code))
		return "", false
	}
	var param struct{ Title, Text, Content string }
	_ = json.Unmarshal([]byte(body.MsgParam), &param) // other templates have no text
	key := fmt.Sprintf("testPQK%08d", g.nextSerial())
	a.record(w, Sent{
		Route: route, Conversation: body.Conversation, Users: body.UserIDs,
		Format: body.MsgKey, Title: param.Title, Text: param.Content + param.Text,
		Body: string(raw), Token: r.Header.Get(tokenHeader), Key: key,
	})
	return key, true
}

// serveCard takes the update of a card, whether or not there is such a card.
func (g *Gateway) serveCard(w http.ResponseWriter, r *http.Request) {
	a := g.authorized(w, r)
	if a == nil {
		return
	}
	raw, err := io.ReadAll(r.Body)
	var body struct {
		Track string `json:"outTrackId"`
	}
	if err != nil || json.Unmarshal(raw, &body) != nil || body.Track == "" {
		a.refuse(w, http.StatusBadRequest, apiError("invalidParameter.outTrackId"))
		return
	}
	a.record(w, Sent{
		Route: RouteCard, Track: body.Track, Body: string(raw),
		Token: r.Header.Get(tokenHeader),
	})
	answer(w, http.StatusOK, `{"success":true,"result":true}`)
}
