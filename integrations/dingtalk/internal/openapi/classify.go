package openapi

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/penstock-io/penstock/message"
)

// Codes of ours, for what DingTalk has no word for or several.
const (
	codePunished     = "ip_punished"
	codeUnsuccessful = "not_successful"
	codeHTML         = "html_page"
	codeOdd          = "odd_answer"
	codeTooLong      = "too_long"
	codeRedirect     = "redirect_refused"
	codeRefusedUser  = "invalid_staff_id"
	codeSlowUser     = "flow_controlled_staff_id"
	codeFilteredUser = "filtered_staff_id"
)

// outcome is what an answer says on the whole.
type outcome uint8

const (
	outcomeFailed   outcome = iota // see the two axes
	outcomeSent                    // taken
	outcomeBadToken                // refused because of the token: renew it
	outcomeGone                    // the webhook's session is gone: other route
)

// verdict is the meaning of an answer. code is safe to show.
type verdict struct {
	outcome outcome
	landed  message.Landed
	next    message.Next
	after   time.Duration
	code    string
	warning string
}

// Waits that the platform's limits ask for.
const (
	waitSecond = time.Second
	waitMinute = time.Minute
	waitBan    = 5 * time.Minute
)

var (
	again    = verdict{next: message.NextAgain}
	maybe    = verdict{next: message.NextAgain, landed: message.LandedMaybe}
	dead     = verdict{next: message.NextNever}
	park     = verdict{next: message.NextPark}
	badToken = verdict{outcome: outcomeBadToken}
	gone     = verdict{outcome: outcomeGone, next: message.NextNever}
	tooLong  = verdict{next: message.NextNever, code: codeTooLong}
)

func wait(d time.Duration) verdict { return verdict{next: message.NextWait, after: d} }

// codes says what each code means that is not simply permanent. What is on
// neither list is permanent: the codes that pass by themselves are few and
// documented, and a refusal that is repeated costs the month's quota and holds
// the conversation.
var codes = map[string]verdict{
	// The webhook and the older API: numbers.
	"-1":       again,
	"40014":    badToken,
	"42001":    badToken,
	"88.40014": badToken,
	"88.42001": badToken,
	"88.90018": wait(waitSecond),
	"88.90002": wait(waitSecond),
	"88.90020": park,
	"90018":    wait(waitSecond),
	"90002":    wait(waitSecond),
	"90020":    park,
	"130101":   wait(waitMinute),
	"410100":   wait(waitMinute),
	"302033":   wait(waitMinute),
	"300001":   gone,
	"40089":    park,
	"34016":    tooLong,
	"460101":   tooLong,
	"500100":   maybe,

	// The newer API: words.
	"InvalidAuthentication":             badToken,
	"invalidClientIdOrSecret":           park,
	"invalidParameter.msgParam.tooLong": tooLong,
	"session.notExisted":                gone,
	"session.expired":                   gone,
	"send.too.fast":                     wait(waitMinute),
	"send.byToken.tooFast":              wait(waitMinute),
	"too.many.group":                    wait(waitMinute),
	"too.many.people":                   wait(waitMinute),
	"unknown.send.result":               maybe,
	"system.error":                      maybe,
	"system.busy":                       maybe,
	"send.ding.exception":               maybe,

	codePunished: wait(waitBan),
}

// families are codes of which only a part is known; they are tried in order.
var families = []struct {
	part string
	verdict
}{
	{"QpsLimit", wait(waitSecond)},
	{"QpmLimit", wait(waitMinute)},
	// The month's calls are used up, for every reply of the installation alike,
	// until the month ends or somebody buys more: the replies are kept for that.
	{"ApiCountLimit", park},
	{"IpNotInWhiteList", park},
}

// classify says what an answer means. It is the one place that decides so, for
// every route. Order: the body's own code, then the kind of body, then the HTTP
// status. A success status with an empty body counts as sent, with a warning:
// the request was taken, and sending it again would double it.
func classify(a *answer) verdict {
	v := a.judge()
	if v.outcome == outcomeSent {
		return v
	}
	if v.code == "" {
		v.code = a.word()
	}
	if v.next == message.NextWait || v.next == message.NextAgain {
		if a.retryAfter > v.after {
			v.next, v.after = message.NextWait, a.retryAfter
		}
	}
	return v
}

func (a *answer) judge() verdict {
	if v, known := known(a.code); known {
		return v
	}
	switch {
	case a.status == http.StatusUnauthorized:
		return badToken
	case a.status >= http.StatusMultipleChoices:
		return a.judgeStatus()
	case a.code != "":
		return dead
	case a.shape == shapeHTML:
		v := wait(waitBan)
		v.code = codeHTML
		return v
	case a.shape == shapeOther:
		// A success status with a body that cannot be read, such as one cut off.
		v := maybe
		v.code = codeOdd
		return v
	}
	return a.judgeSuccess()
}

// known looks a code up in the two lists.
func known(code string) (verdict, bool) {
	if code == "" {
		return verdict{}, false
	}
	if v, ok := codes[code]; ok {
		return v, true
	}
	for _, f := range families {
		if strings.Contains(code, f.part) {
			return f.verdict, true
		}
	}
	return verdict{}, false
}

// judgeStatus is for answers whose code says nothing. A gateway that lost its
// upstream (502, 504) or failed inside (500) may have processed the request; one
// that is overloaded (503) has not.
func (a *answer) judgeStatus() verdict {
	switch {
	case a.status < http.StatusBadRequest:
		return verdict{next: message.NextAgain, code: codeRedirect}
	case a.status == http.StatusServiceUnavailable:
		return again
	case a.status >= http.StatusInternalServerError, a.status == http.StatusRequestTimeout:
		return maybe
	case a.status == http.StatusTooManyRequests:
		if a.retryAfter > 0 {
			return wait(a.retryAfter)
		}
		return wait(waitMinute)
	case a.status == http.StatusRequestEntityTooLarge:
		return tooLong
	case a.shape == shapeHTML && a.status != http.StatusNotFound:
		v := wait(waitBan)
		v.code = codeHTML
		return v
	}
	return dead
}

// judgeSuccess reads the lists that a 200 of the robot API may hold: a reply goes
// to one person, so a name on a list is that person.
func (a *answer) judgeSuccess() verdict {
	switch {
	case a.refused:
		return verdict{next: message.NextNever, code: codeRefusedUser}
	case a.filtered:
		return verdict{next: message.NextNever, code: codeFilteredUser}
	case a.throttled:
		return verdict{next: message.NextWait, after: waitMinute, code: codeSlowUser}
	case a.shape == shapeEmpty:
		return verdict{outcome: outcomeSent, warning: "the answer was empty"}
	case !a.spoke && a.key == "":
		return verdict{outcome: outcomeSent, warning: "the answer did not say whether it was taken"}
	}
	return verdict{outcome: outcomeSent}
}

// word is the code to show: the platform's own if it is a machine word, else the
// HTTP status.
func (a *answer) word() string {
	if w := safeWord(a.code); w != "" {
		return w
	}
	return "http_" + strconv.Itoa(a.status)
}

// hints tell somebody who reads a dead letter or a health page what to do.
var hints = []struct{ part, hint string }{
	{"invalidParameter.msgParam.tooLong", "split it smaller, never send it unchanged"},
	{"resource.not.found", "the robot code must be the one that came with the message"},
	{"robotCode", "the robot code must be the one that came with the message"},
	{"PermissionDenied", "grant the app the permission in the developer console"},
	{"88.60011", "grant the app the permission in the developer console"},
	{"IpNotInWhiteList", "add this server's address to the app's list in the console"},
	{"ApiCountLimit", "the organisation's calls of this month are used up"},
	{"90020", "the organisation's calls of this month are used up"},
	{"invalidClientIdOrSecret", "check the client id and secret"},
	{"40089", "check the client id and secret"},
}

func hintFor(code string) string {
	for _, h := range hints {
		if strings.Contains(code, h.part) {
			return h.hint
		}
	}
	return ""
}

// denied tells whether the app lacks a permission, which somebody must grant.
func (a *answer) denied() bool {
	return len(a.scopes) > 0 || strings.Contains(a.code, "PermissionDenied") ||
		a.code == "88.60011"
}
