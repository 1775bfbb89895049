package cases_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/penstock-io/penstock/integrations"
	"github.com/penstock-io/penstock/integrations/dingtalk/dingtalktest"
	"github.com/penstock-io/penstock/test/system"
)

// other is an installation whose gateway works.
const other = "other"

// opening is one case about the open request while it is played.
type opening struct {
	*world
	far   *farGateway
	opens []time.Time
	first string // the first error that the health told
}

// observed is how long the service is left with the bad answer.
const observed = 30 * time.Minute

// playOpen answers every open request as the case says and looks at what the
// service makes of it, beside an installation for which all is well.
func playOpen(w *world) {
	o := &opening{world: w}
	good := w.gateway("127.0.0.1:2", dingtalktest.Config{})
	w.cfg.Installations = append(w.cfg.Installations,
		system.Installation(other, good, good.App("").Credentials()))
	o.far = o.distant()
	w.gw.Inject(dingtalktest.RouteOpen, -1, fault(w.c.Input.Response))
	w.run()
	w.pass(time.Second)
	o.first = w.svc.Health(bot).Error
	w.pass(observed)
	for _, r := range w.net.Requests("/connections/open") {
		if r.Addr == "127.0.0.1:1" {
			o.opens = append(o.opens, r.At)
		}
	}
	o.judge()
	w.stop()
}

// fault gives an answer as the gateway of a test knows it.
func fault(a httpAnswer) dingtalktest.Fault {
	if a.Status == 0 {
		return dingtalktest.Fault{Hang: true}
	}
	f := dingtalktest.Fault{Status: a.Status, Body: a.Body, Header: http.Header{}}
	f.Header["Content-Type"] = nil
	for k, v := range a.Headers {
		f.Header.Set(k, v)
	}
	return f
}

// distant serves the host that the answer sends the service to, if it does.
func (o *opening) distant() *farGateway {
	var grant struct{ Endpoint string }
	if json.Unmarshal([]byte(o.c.Input.Response.Body), &grant) != nil || grant.Endpoint == "" {
		return nil
	}
	u, err := url.Parse(grant.Endpoint)
	if err != nil || u.Hostname() == "" {
		return nil
	}
	port := u.Port()
	if port == "" {
		port = "443"
	}
	status := o.c.Input.Handshake
	if status.Status == 0 {
		status = httpAnswer{Status: http.StatusServiceUnavailable}
	}
	far := newFarGateway(o.t, u.Hostname(), status)
	o.net.Handle(u.Hostname()+":"+port, far.open)
	o.cfg.Installations[0].CAFile = far.caFile
	return far
}

func (o *opening) judge() {
	judge(o.c, o.findings, map[string][]checker{
		"class": {
			{`^permanent`, func() { o.checkState(integrations.StateParked) }},
			{`^transient first, reported as configuration suspicion`, o.checkSuspicion},
			{`^transient|^rate-limited|^throttled`, func() { o.checkState(integrations.StateDegraded) }},
		},
		"retry": {
			{`^slow`, o.checkSlow},
			{`exponential|^backoff`, o.checkExponential},
			{`not before \d+ s`, o.checkNotBefore},
		},
		"health": {
			{`^degraded`, func() { o.checkState(integrations.StateDegraded) }},
			{`^\w+_\w+|^\w+ with request id`, o.checkHealth},
		},
		"log": {{`no secret`, o.checkLog}},
		"error_text": {
			{`says: non-JSON answer`, o.checkForeign}, {`names the empty field`, o.checkEmpty},
		},
		"panic":             {{`^false$`, o.checkPanic}},
		"dial_url":          {{`^wss://`, o.checkURL}},
		"rule":              {{`fresh ticket`, o.checkFresh}},
		"timeout":           {{`<= \d+ s then retry`, o.checkTimeout}},
		"other_connections": {{`unaffected`, o.checkOther}},
		"stop":              {{`at once`, o.checkStop}},
	})
}

// gaps are the waits between the open requests.
func (o *opening) gaps() []time.Duration {
	var out []time.Duration
	for i := range len(o.opens) - 1 {
		out = append(out, o.opens[i+1].Sub(o.opens[i]))
	}
	return out
}

func (o *opening) checkState(want integrations.State) {
	got := o.svc.Health(bot).State
	o.want(got == string(want), "class", "the installation is %s", got)
}

func (o *opening) checkSuspicion() {
	o.checkState(integrations.StateDegraded)
	const suspicion = "check the client id"
	o.want(!strings.Contains(o.first, suspicion), "class", "the first error is %s", o.first)
	last := o.svc.Health(bot).Error
	o.want(strings.Contains(last, suspicion), "class", "the last error is %s", last)
}

func (o *opening) checkSlow() {
	gaps := o.gaps()
	o.want(len(gaps) > 0, "retry", "it was not tried again")
	for _, g := range gaps {
		o.want(g >= time.Minute && g <= 10*time.Minute, "retry", "a wait was %v", g)
	}
	o.checkPanic()
	o.checkOther()
}

func (o *opening) checkExponential() {
	gaps := o.gaps()
	if len(gaps) < 10 {
		o.fail("retry", "it was tried %d times", len(o.opens))
		return
	}
	longest := slices.Max(gaps)
	o.want(gaps[0] <= 2*time.Second, "retry", "the first wait was %v", gaps[0])
	o.want(longest > 10*time.Second, "retry", "the waits do not grow: %v", gaps)
	o.want(longest <= 80*time.Second, "retry", "a wait was %v", longest)
	o.want(len(slices.Compact(slices.Sorted(slices.Values(gaps)))) > len(gaps)/2,
		"retry", "there is no jitter: %v", gaps)
}

func (o *opening) checkNotBefore() {
	least := time.Duration(number(o.c.words("retry"))) * time.Second
	gaps := o.gaps()
	o.want(len(gaps) > 1, "retry", "it was not tried again")
	for _, g := range gaps {
		o.want(g >= least, "retry", "a wait was %v", g)
	}
	if strings.Contains(o.c.words("retry"), "plus jitter") && len(gaps) > 1 {
		o.want(gaps[0] != gaps[1], "retry", "there is no jitter: %v", gaps)
	}
}

func (o *opening) checkHealth() {
	h := o.svc.Health(bot)
	code, _, _ := strings.Cut(o.c.words("health"), " ")
	o.want(h.Code == code, "health", "the code is %s", h.Code)
	if !strings.Contains(o.c.words("health"), "request id") {
		return
	}
	var body struct{ RequestID string }
	_ = json.Unmarshal([]byte(o.c.Input.Response.Body), &body) // no id is no text
	o.want(body.RequestID != "" && strings.Contains(h.Error, body.RequestID), "health",
		"the error is %s", h.Error)
}

func (o *opening) checkLog() {
	for _, line := range o.svc.Log.Lines() {
		o.want(!strings.Contains(line, secret), "log", "%s", line)
	}
}

func (o *opening) checkForeign() {
	a := o.c.Input.Response
	kind, _, _ := strings.Cut(a.Headers["Content-Type"], ";")
	got := o.svc.Health(bot).Error
	for _, word := range []string{"JSON", regexp.MustCompile(`\d+`).FindString(a.Body), kind} {
		o.want(strings.Contains(got, word), "error_text", "%q is not in it: %s", word, got)
	}
	o.want(strings.Contains(got, "status"), "error_text", "there is no status: %s", got)
	o.want(strings.Contains(got, a.Body[:10]), "error_text", "there is no excerpt: %s", got)
	o.want(len(got) < 500, "error_text", "it is long: %s", got)
}

func (o *opening) checkEmpty() {
	var fields map[string]string
	_ = json.Unmarshal([]byte(o.c.Input.Response.Body), &fields) // no field is no name
	got := o.svc.Health(bot).Error
	named := false
	for name, value := range fields {
		named = named || value == "" && strings.Contains(got, name)
	}
	o.want(named, "error_text", "it names none: %s", got)
}

func (o *opening) checkPanic() {
	for _, line := range o.svc.Log.Lines() {
		o.want(!strings.Contains(line, "panic"), "panic", "%s", line)
	}
}

func (o *opening) checkURL() {
	if o.far == nil {
		o.fail("dial_url", "the answer names no host")
		return
	}
	asked := o.far.asked()
	o.want(len(asked) > 0 && asked[0] == o.c.words("dial_url"), "dial_url", "dialled: %v", asked)
}

// checkFresh wants one open request for each dial.
func (o *opening) checkFresh() {
	if o.far == nil {
		o.fail("rule", "the answer names no host")
		return
	}
	dials := len(o.far.asked())
	o.want(dials > 1, "rule", "it was dialled %d times", dials)
	o.want(len(o.opens) >= dials && len(o.opens) <= dials+1, "rule",
		"%d dials with %d tickets", dials, len(o.opens))
}

func (o *opening) checkTimeout() {
	limit := time.Duration(number(o.c.words("timeout"))) * time.Second
	gaps := o.gaps()
	// The wait before the second try is at most a second.
	o.want(len(gaps) > 0 && gaps[0] <= limit+2*time.Second, "timeout", "waits were %v", gaps)
}

func (o *opening) checkOther() {
	h := o.svc.Health(other)
	o.want(h.Ready && h.Sessions == 1, "other_connections", "the other one is %s", h.State)
	states := o.svc.States(other)
	o.want(len(states) <= 3, "other_connections", "it went through %v", states)
}

// checkStop stops the service in the middle of an open request.
func (o *opening) checkStop() {
	ctx, cancel := context.WithTimeout(o.t.Context(), observed)
	defer cancel()
	for len(o.net.Requests("/connections/open")) == len(o.opens)+1 && ctx.Err() == nil {
		o.pass(100 * time.Millisecond)
	}
	began := time.Now()
	o.stop()
	o.want(time.Since(began) < time.Second, "stop", "it took %v", time.Since(began))
}
