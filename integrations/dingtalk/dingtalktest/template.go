package dingtalktest

import (
	"bytes"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/penstock-io/penstock/message"
)

// The id of a blast's frame: "b", the run, the message, its slot, the try. All
// parts have a fixed width, so that an answer leads to its slot without a map.
const (
	seqSize     = 10
	slotSize    = 6
	seqAt       = len("b0000_")
	slotAt      = seqAt + seqSize + 1
	frameIDSize = slotAt + slotSize + 2
	maxSlots    = 999999

	timeSize = 13
	markTime = 4444444444444
	markSeq  = "7777777777"
	markSlot = "888888"
	markTry  = "_9"
	markConv = "555555"
)

func blastPrefix(run int) []byte { return fmt.Appendf(nil, "b%04x_", run) }

// template is a rendered frame with the places of what changes.
type template struct {
	bytes []byte
	seqs  []int
	slots []int
	tries []int
	convs []int
	times []int
}

// patch is what changes.
type patch struct {
	seq, slot, try, conversation int
	at                           time.Time
}

// newTemplate renders a group text message of cfg.Size bytes, or a few less if the
// last character of the text does not fit.
func newTemplate(a *App, run int, cfg BlastConfig) (template, error) {
	id := string(blastPrefix(run)) + markSeq + "_" + markSlot + markTry
	render := func(filler string) ([]byte, error) {
		f, err := Robot{
			ID:           message.ID(fmt.Sprintf("msgBlast%04x_%s_A==", run, markSeq)),
			Conversation: message.ConversationID(fmt.Sprintf("cidBlast%04x_%s", run, markConv)),
			Text:         "#" + markSeq + " " + filler,
		}.frame(scope{app: a, now: time.UnixMilli(markTime)})
		return f.render(nil, push{
			frameID: message.FrameID(id), connection: "blast", at: time.UnixMilli(markTime),
		}), err
	}
	b, err := render("")
	if err != nil {
		return template{}, err
	}
	if b, err = render(fill(cfg.Text, cfg.Size-len(b))); err != nil {
		return template{}, err
	}
	return template{
		bytes: b,
		seqs:  append(find(b, "_"+markSeq+"_", 1), find(b, "#"+markSeq, 1)...),
		slots: find(b, "_"+markSlot+markTry, 1),
		tries: find(b, markSlot+markTry, slotSize+1),
		convs: find(b, "_"+markConv, 1),
		times: find(b, strconv.Itoa(markTime), 0),
	}, nil
}

// fill repeats text up to size bytes on the wire, where a frame holds it as JSON
// inside a JSON string.
func fill(text string, size int) string {
	var b strings.Builder
	for {
		for _, r := range text {
			if size -= wireSize(r); size < 0 {
				return b.String()
			}
			b.WriteRune(r)
		}
	}
}

// wireSize is how many bytes a character takes in a frame.
func wireSize(r rune) int {
	const quotes = 6 // the outer two, and the inner two with a backslash each
	return len(quote(string(quote(string(r))))) - quotes
}

// find lists where what occurs, moved by skip.
func find(b []byte, what string, skip int) []int {
	var at []int
	for from := 0; ; {
		i := bytes.Index(b[from:], []byte(what))
		if i < 0 {
			return at
		}
		at = append(at, from+i+skip)
		from += i + len(what)
	}
}

// render appends the frame of one push.
func (t *template) render(dst []byte, p patch) []byte {
	start := len(dst)
	dst = append(dst, t.bytes...)
	b := dst[start:]
	for _, f := range []struct {
		at    []int
		width int
		value int
	}{
		{t.seqs, seqSize, p.seq},
		{t.slots, slotSize, p.slot},
		{t.tries, 1, p.try},
		{t.convs, len(markConv), p.conversation},
		{t.times, timeSize, int(p.at.UnixMilli())},
	} {
		for _, at := range f.at {
			digits(b[at:at+f.width], f.value)
		}
	}
	return dst
}

// digits writes v right-aligned with leading zeros.
func digits(b []byte, v int) {
	for i := len(b) - 1; i >= 0; i-- {
		b[i] = byte('0' + v%10)
		v /= 10
	}
}

// number reads what digits wrote.
func number(b []byte) (v int, ok bool) {
	for _, c := range b {
		if c < '0' || c > '9' {
			return 0, false
		}
		v = v*10 + int(c-'0')
	}
	return v, true
}

var (
	keyID   = []byte(`"` + headerMessageID + `"`)
	keyCode = []byte(`"code"`)
	codeOK  = []byte(`"code":200`)
)

// scanID finds the messageId of an answer without decoding it. A quoted key
// cannot occur inside a JSON string, where its quotes would be escaped.
func scanID(raw []byte) []byte {
	v := scanValue(raw, keyID)
	if len(v) == 0 || v[0] != '"' {
		return nil
	}
	end := bytes.IndexByte(v[1:], '"')
	if end < 0 {
		return nil
	}
	return v[1 : 1+end]
}

// scanCode finds the code of an answer; 0 if there is none.
func scanCode(raw []byte) int {
	v := scanValue(raw, keyCode)
	n := 0
	for _, c := range v {
		if c < '0' || c > '9' || n > http.StatusNetworkAuthenticationRequired {
			break
		}
		n = n*10 + int(c-'0')
	}
	return n
}

// scanValue is what follows a key and its colon.
func scanValue(raw, key []byte) []byte {
	i := bytes.Index(raw, key)
	if i < 0 {
		return nil
	}
	v := bytes.TrimLeft(raw[i+len(key):], " \t\r\n")
	if len(v) == 0 || v[0] != ':' {
		return nil
	}
	return bytes.TrimLeft(v[1:], " \t\r\n")
}
