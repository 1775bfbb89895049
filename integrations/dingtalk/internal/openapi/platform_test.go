package openapi

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/penstock-io/penstock/message"
)

// Paths of the platform.
const (
	pathToken  = "/v1.0/oauth2/accessToken"
	pathGroup  = "/v1.0/robot/groupMessages/send"
	pathDirect = "/v1.0/robot/oToMessages/batchSend"
	pathCard   = "/v1.0/card/instances"
	pathHook   = "/robot/sendBySession"
)

// reply is one answer of the platform.
type reply struct {
	status int
	body   string
	header map[string]string
	// hang holds the answer back until the client has gone; kill closes the
	// connection without one.
	hang, kill bool
}

func okAnswer(body string) reply { return reply{status: http.StatusOK, body: body} }

// seen is one request as the platform got it.
type seen struct {
	method, path, query, token string
	body                       string
}

// platform is a DingTalk that answers from a script, per path in order; the last
// answer of a path is repeated.
type platform struct {
	*httptest.Server
	mu      sync.Mutex
	answers map[string][]reply // guarded by mu
	log     []seen             // guarded by mu
	tokens  int                // guarded by mu
}

func newPlatform(t *testing.T) *platform {
	p := &platform{answers: map[string][]reply{
		pathHook:   {okAnswer(`{"errcode":0,"errmsg":"ok"}`)},
		pathGroup:  {okAnswer(`{"processQueryKey":"group-key"}`)},
		pathDirect: {okAnswer(`{"processQueryKey":"direct-key","invalidStaffIdList":[]}`)},
		pathCard:   {okAnswer(`{"success":true,"result":true}`)},
	}}
	p.Server = httptest.NewServer(http.HandlerFunc(p.serve))
	t.Cleanup(p.Close)
	return p
}

func (p *platform) serve(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	a := p.next(seen{
		r.Method, r.URL.Path, r.URL.RawQuery,
		r.Header.Get("x-acs-dingtalk-access-token"), string(body),
	})
	if a.hang {
		<-r.Context().Done()
		return
	}
	if a.kill {
		panic(http.ErrAbortHandler)
	}
	for k, v := range a.header {
		w.Header().Set(k, v)
	}
	w.WriteHeader(a.status)
	_, _ = io.WriteString(w, a.body)
}

func (p *platform) next(s seen) reply {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.log = append(p.log, s)
	list := p.answers[s.path]
	if len(list) == 0 {
		if s.path == pathToken {
			p.tokens++
			return okAnswer(fmt.Sprintf(`{"accessToken":"token-%04d","expireIn":7200}`, p.tokens))
		}
		return reply{status: http.StatusNotFound}
	}
	if len(list) > 1 {
		p.answers[s.path] = list[1:]
	}
	return list[0]
}

func (p *platform) script(path string, answers ...reply) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.answers[path] = answers
}

// requests lists what came in, of one path if it is not empty.
func (p *platform) requests(path string) []seen {
	p.mu.Lock()
	defer p.mu.Unlock()
	var list []seen
	for _, s := range p.log {
		if path == "" || s.path == path {
			list = append(list, s)
		}
	}
	return list
}

const testSecret = "SENTINEL-A-client-secret"

func (p *platform) config() Config {
	return Config{
		ClientID: "dingexampleclient01", ClientSecret: testSecret,
		APIBase: p.URL, OAPIBase: p.URL, AllowInsecure: true, HTTP: p.Client(),
	}
}

func (p *platform) sender(t *testing.T) *Sender {
	s, err := New(p.config())
	require.NoError(t, err)
	return s
}

func (p *platform) webhook() string { return p.URL + pathHook + "?session=SENTINEL-C-session" }

// group is an address with a living webhook.
func (p *platform) group() Target {
	return Target{
		Webhook: p.webhook(), Expires: time.Now().Add(time.Hour).UnixMilli(),
		RobotCode: "robot01", Conversation: "cid/Example+01=", StaffID: "staff0001",
	}
}

func text(t *testing.T, to Target, s string) message.Outbound {
	addr, err := to.Encode()
	require.NoError(t, err)
	return message.Outbound{
		Reply: message.Reply{Text: s}, ID: "reply01", Group: "reply01", Target: addr,
		Conversation: to.Conversation, Part: 1, Parts: 1,
	}
}

func jsonOf(t *testing.T, s string) map[string]any {
	var v map[string]any
	require.NoError(t, json.Unmarshal([]byte(s), &v), s)
	return v
}

// failed gives the error's two axes.
func failed(t *testing.T, err error) *message.SendError {
	var se *message.SendError
	require.ErrorAs(t, err, &se)
	return se
}
