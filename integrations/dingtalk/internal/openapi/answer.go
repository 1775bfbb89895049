package openapi

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// answer is what came back on a request, read leniently: a field of an odd type
// is empty, and nothing in a body is an error of its own.
type answer struct {
	status int
	// code is the platform's word for a failure, as it stands; empty if it gave
	// none, and for success.
	code      string
	message   string
	requestID string
	// scopes are the permissions that a refusal asks for.
	scopes []string
	// key is the platform's handle of a sent message.
	key string
	// refused, throttled and filtered tell whether a list of people who did not
	// get the message names anybody.
	refused, throttled, filtered bool
	// spoke tells that an errcode or a code came, be it of success.
	spoke      bool
	shape      shape
	retryAfter time.Duration
	// token and life are the answer of the token API.
	token, life string
}

// shape is what sort of body came.
type shape uint8

const (
	shapeObject shape = iota // a JSON object
	shapeEmpty               // nothing, or white space
	shapeHTML                // a page: a proxy or a ban spoke, not the API
	shapeOther               // something else, or cut off
)

// document holds every field of every answer that matters here. Field names match
// without regard to case, which also takes in gateways that write Code.
type document struct {
	Code      scalar `json:"code"`
	Message   scalar `json:"message"`
	RequestID scalar `json:"requestid"`
	ErrCode   scalar `json:"errcode"`
	ErrMsg    scalar `json:"errmsg"`
	SubCode   scalar `json:"sub_code"`
	Success   scalar `json:"success"`
	Status    scalar `json:"status"`
	Wait      scalar `json:"wait"`
	Key       scalar `json:"processQueryKey"`
	Invalid   list   `json:"invalidStaffIdList"`
	Throttled list   `json:"flowControlledStaffIdList"`
	Filtered  list   `json:"filteredStaffIdList"`
	Denied    denied `json:"accessdenieddetail"`
	Token     scalar `json:"accessToken"`
	Life      scalar `json:"expireIn"`
}

// decode reads an answer. now is needed for a Retry-After that is a date.
func decode(status int, header http.Header, body []byte, now time.Time) *answer {
	a := &answer{
		status:     status,
		requestID:  safeWord(header.Get("x-acs-request-id")),
		retryAfter: retryAfter(header.Get("Retry-After"), now),
	}
	body = bytes.TrimSpace(bytes.TrimPrefix(body, []byte("\ufeff")))
	var d document
	switch {
	case len(body) == 0:
		a.shape = shapeEmpty
	case body[0] == '<':
		a.shape = shapeHTML
	case body[0] != '{' || json.Unmarshal(body, &d) != nil:
		a.shape = shapeOther
	default:
		a.fill(&d)
	}
	return a
}

func (a *answer) fill(d *document) {
	a.code = d.failure(a.status)
	a.spoke = d.ErrCode != "" || d.Code != "" || d.Success != ""
	a.message = string(d.Message)
	if a.message == "" {
		a.message = string(d.ErrMsg)
	}
	if id := safeWord(string(d.RequestID)); id != "" {
		a.requestID = id
	}
	a.scopes, a.key = d.Denied.scopes, string(d.Key)
	a.refused, a.throttled = len(d.Invalid) > 0, len(d.Throttled) > 0
	a.filtered = len(d.Filtered) > 0
	a.token, a.life = string(d.Token), string(d.Life)
	if a.code == codePunished {
		if n, err := strconv.Atoi(string(d.Wait)); err == nil && n > 0 {
			a.retryAfter = min(time.Duration(min(n, 60))*time.Minute, retryAfterMax)
		}
	}
}

// failure picks the code of a failure out of the two dialects. An errcode goes
// first: where both stand, it is the older API's own word.
func (d *document) failure(status int) string {
	switch code := string(d.ErrCode); {
	case code == "88":
		if sub := d.subCode(); sub != "" {
			return "88." + sub
		}
		return code
	case code != "" && code != "0":
		return code
	case code == "0" && status < http.StatusMultipleChoices:
		return ""
	case d.Status == "1111":
		return codePunished
	case d.Code != "" && (status >= http.StatusBadRequest || !fine(string(d.Code))):
		return string(d.Code)
	case d.Success == "false":
		return codeUnsuccessful
	}
	return ""
}

// subCode reads the sub-code of an errcode 88, which some answers have only in
// the bracketed part of errmsg.
func (d *document) subCode() string {
	if d.SubCode != "" {
		return string(d.SubCode)
	}
	_, rest, _ := strings.Cut(string(d.ErrMsg), "subcode=")
	end := strings.IndexFunc(rest, func(r rune) bool { return r < '0' || r > '9' })
	return rest[:max(end, 0)]
}

// fine tells a code that means success.
func fine(code string) bool {
	switch strings.ToLower(code) {
	case "0", "200", "ok", "success":
		return true
	}
	return false
}

const retryAfterMax = 10 * time.Minute

// retryAfter reads the header in its two forms, 0 if it is absent or odd. Longer
// waits than ten minutes are cut: asking once more then costs little.
func retryAfter(v string, now time.Time) time.Duration {
	if v = strings.TrimSpace(v); v == "" {
		return 0
	}
	if n, err := strconv.ParseInt(v, 10, 64); err == nil {
		return time.Duration(min(max(n, 0), int64(retryAfterMax/time.Second))) * time.Second
	}
	if at, err := http.ParseTime(v); err == nil {
		return min(max(at.Sub(now), 0), retryAfterMax)
	}
	return 0
}

// scalar is a string, number or boolean as text. Anything else reads as empty.
type scalar string

// UnmarshalJSON never fails.
func (s *scalar) UnmarshalJSON(b []byte) error {
	switch b[0] {
	case '"':
		var v string
		if json.Unmarshal(b, &v) == nil {
			*s = scalar(v)
		}
	case '{', '[', 'n':
		*s = ""
	default:
		*s = scalar(b)
	}
	return nil
}

// list is an array of scalars. Anything else reads as empty.
type list []scalar

// UnmarshalJSON never fails.
func (l *list) UnmarshalJSON(b []byte) error {
	var v []scalar
	if b[0] == '[' && json.Unmarshal(b, &v) == nil {
		*l = v
	}
	return nil
}

// denied is the detail of a refused permission.
type denied struct{ scopes []string }

// UnmarshalJSON never fails. Scopes that are not plain words are left out.
func (d *denied) UnmarshalJSON(b []byte) error {
	var v struct {
		RequiredScopes list `json:"requiredScopes"`
	}
	if b[0] != '{' || json.Unmarshal(b, &v) != nil {
		return nil
	}
	for _, s := range v.RequiredScopes[:min(len(v.RequiredScopes), 16)] {
		if w := safeWord(string(s)); w != "" {
			d.scopes = append(d.scopes, w)
		}
	}
	return nil
}

const wordMax = 96

// safeWord gives s back if it is a short machine word, else nothing: what it is
// used for ends in health pages and metrics.
func safeWord(s string) string {
	odd := func(r rune) bool {
		return r > unicode.MaxASCII || !unicode.IsLetter(r) && !unicode.IsDigit(r) &&
			!strings.ContainsRune("._-:", r)
	}
	if len(s) > wordMax || strings.ContainsFunc(s, odd) {
		return ""
	}
	return s
}
