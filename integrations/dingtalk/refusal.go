package dingtalk

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/penstock-io/penstock/integrations"
)

// How long to stay away when the gateway limits us without saying for how long.
const (
	qpsPause    = time.Second
	qpmPause    = time.Minute
	banPause    = 5 * time.Minute // calls from a banned address are refused for so long
	plainPause  = time.Minute
	longestWait = time.Hour // a longer Retry-After is taken for a mistake
)

// suspectAfter is how many answers of 400 in a row make the configuration the
// likely cause. One alone may be the gateway's own trouble.
const suspectAfter = 5

// complaint is the body of a refusal. The spelling of the request id varies.
type complaint struct {
	Code      string `json:"code"`
	Message   string `json:"message"`
	RequestID string `json:"requestid"` // matches requestId too
	Punish    string `json:"punish"`
}

func lost(code string, err error) *integrations.End {
	return &integrations.End{Why: integrations.Lost, Code: code, Err: err}
}

func refused(code string, err error) *integrations.End {
	return &integrations.End{Why: integrations.Refused, Code: code, Err: err}
}

func limited(code string, after time.Duration, err error) *integrations.End {
	return &integrations.End{Why: integrations.Limited, Code: code, After: after, Err: err}
}

// refusal is the one place that decides what an answer without a grant means.
func (a *answer) refusal(hide secrets) *integrations.End {
	var c complaint
	isJSON := json.Unmarshal(a.body, &c) == nil
	err := a.describe(hide)
	switch {
	case a.status == http.StatusTooManyRequests:
		return limited("throttled", a.pause(plainPause), err)
	case c.Punish != "":
		return limited("ip_banned", banPause, err)
	case !isJSON:
		// A page is a middlebox talking, not the gateway: its status says nothing
		// about our credentials.
		return a.lost(err)
	case a.status == http.StatusUnauthorized:
		return refused("auth_failed", err)
	case a.status == http.StatusForbidden:
		return a.forbidden(c.Code, err)
	case a.status == http.StatusBadRequest && isConfigCode(c.Code):
		return refused("open_bad_request", err)
	default:
		return a.lost(err)
	}
}

func (a *answer) forbidden(code string, err error) *integrations.End {
	switch {
	case strings.Contains(code, "Qps"):
		return limited("qps", a.pause(qpsPause), err)
	case strings.Contains(code, "Qpm"):
		return limited("qpm", a.pause(qpmPause), err)
	default:
		return refused("forbidden", err)
	}
}

func (a *answer) lost(err error) *integrations.End {
	end := lost("open_http_"+strconv.Itoa(a.status), err)
	end.After = a.pause(0)
	return end
}

// isConfigCode tells whether a code blames the request itself, which does not
// get better by being repeated.
func isConfigCode(code string) bool {
	code = strings.ToLower(code)
	return strings.HasPrefix(code, "invalid") || strings.HasPrefix(code, "missing")
}

// suspect raises a refusal that comes again and again from "try again" to a word
// that health pages show as a question about the configuration.
func (c *Connector) suspect(a *answer, end *integrations.End) *integrations.End {
	if a.status != http.StatusBadRequest || end.Why != integrations.Lost {
		c.badOpens.Store(0)
		return end
	}
	n := c.badOpens.Add(1)
	if n < suspectAfter {
		return end
	}
	end.Code = "open_400"
	end.Err = fmt.Errorf("%w (%d times in a row: check the client id and secret, that the "+
		"application is published and in Stream mode, and its list of allowed addresses)", end.Err, n)
	return end
}

// pause is what Retry-After asks for, in seconds or as a date, or def.
func (a *answer) pause(def time.Duration) time.Duration {
	if a.retryAfter == "" {
		return def
	}
	if s, err := strconv.Atoi(a.retryAfter); err == nil && s > 0 {
		return min(time.Duration(min(s, 1<<20))*time.Second, longestWait)
	}
	if t, err := http.ParseTime(a.retryAfter); err == nil && time.Until(t) > 0 {
		return min(time.Until(t), longestWait)
	}
	return def
}

// describe says what was answered, without secrets.
func (a *answer) describe(hide secrets) error {
	var c complaint
	if json.Unmarshal(a.body, &c) == nil && c.Code != "" {
		return fmt.Errorf("open: status %d, code %s, request id %s: %s", a.status,
			hide.excerpt([]byte(c.Code)), hide.excerpt([]byte(c.RequestID)),
			hide.excerpt([]byte(c.Message)))
	}
	if b := bytes.TrimSpace(a.body); len(b) > 0 && (b[0] == '{' || b[0] == '[') {
		// It may hold a ticket, which cannot be told from its other words.
		return fmt.Errorf("open: status %d, and %d bytes of JSON without grant or code",
			a.status, len(a.body))
	}
	return fmt.Errorf("open: status %d with %s instead of a JSON answer: %q",
		a.status, orNone(hide.excerpt([]byte(a.contentType))), hide.excerpt(a.body))
}

func orNone(contentType string) string {
	if contentType == "" {
		return "no content type"
	}
	return contentType
}
