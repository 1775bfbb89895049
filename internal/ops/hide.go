package ops

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"github.com/penstock-io/penstock/message"
)

// hidden stands in place of a secret.
const hidden = "[secret]"

// session is the part of a webhook that is the secret, wherever it stands.
var session = regexp.MustCompile(`(?i)(session(?:=|%3d|\\u003d))[^&"'\\\s<>]+`)

// hideWebhooks takes the reply addresses out of a vendor's payload: every value
// under a key that ends in "webhook", at any depth and inside strings that hold
// JSON themselves, and the session parameter of any URL. The rest stays byte for
// byte. A payload that is not JSON and speaks of a webhook is not shown at all.
func hideWebhooks(raw message.Raw) message.Raw {
	b, ok := hideJSON([]byte(raw), 0)
	if !ok {
		if strings.Contains(strings.ToLower(string(raw)), "webhook") {
			return message.Raw(fmt.Sprintf("[%d bytes that are not JSON]", len(raw)))
		}
		b = []byte(raw)
	}
	return message.Raw(session.ReplaceAll(b, []byte("${1}"+hidden)))
}

// maxNested bounds how many times JSON is looked for inside a string of JSON.
const maxNested = 8

// hideJSON hides in one JSON text; false if it is none.
func hideJSON(b []byte, depth int) ([]byte, bool) {
	if depth > maxNested || !json.Valid(b) {
		return b, false
	}
	h := hider{src: b, dec: json.NewDecoder(bytes.NewReader(b)), depth: depth}
	h.dec.UseNumber() // numbers are not looked at
	h.value(false)
	return append(h.out, b[h.copied:]...), true
}

// hider copies a valid JSON text with some of its values replaced.
type hider struct {
	src    []byte
	out    []byte
	copied int // of src
	dec    *json.Decoder
	depth  int
}

// value passes over one value; secret tells that its key names a webhook.
func (h *hider) value(secret bool) {
	from := h.start()
	tok, _ := h.dec.Token() // the text is valid
	switch t := tok.(type) {
	case json.Delim:
		for h.dec.More() {
			under := secret
			if t == '{' {
				key, _ := h.dec.Token()
				name, _ := key.(string)
				under = under || strings.HasSuffix(strings.ToLower(name), "webhook")
			}
			h.value(under)
		}
		_, _ = h.dec.Token()
	case string:
		if secret {
			h.replace(from, hidden)
			return
		}
		if inner, ok := hideNested(t, h.depth); ok {
			h.replace(from, inner)
		}
	}
}

// hideNested hides inside a string that holds JSON; false if nothing changes.
func hideNested(s string, depth int) (string, bool) {
	trimmed := strings.TrimSpace(s)
	if !strings.HasPrefix(trimmed, "{") && !strings.HasPrefix(trimmed, "[") {
		return "", false
	}
	b, ok := hideJSON([]byte(s), depth+1)
	if !ok {
		return hidden, strings.Contains(strings.ToLower(s), "webhook")
	}
	return string(b), string(b) != s
}

// start is where the next token begins.
func (h *hider) start() int {
	at := int(h.dec.InputOffset())
	for at < len(h.src) && strings.IndexByte(" \t\r\n:,", h.src[at]) >= 0 {
		at++
	}
	return at
}

// replace puts a string in place of the token that began at from.
func (h *hider) replace(from int, s string) {
	text, _ := json.Marshal(s) // a string can always be written
	h.out = append(append(h.out, h.src[h.copied:from]...), text...)
	h.copied = int(h.dec.InputOffset())
}
