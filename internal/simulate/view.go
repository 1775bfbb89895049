package simulate

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// view writes what happened, a line each. Its owner guards it. After an error of the
// output it does nothing.
type view struct {
	out, notes io.Writer
	json       *json.Encoder // nil: text for people
	began      time.Time
	err        error
}

func newView(o Options, now time.Time) view {
	v := view{out: o.Out, notes: o.Out, began: now}
	if o.JSON {
		v.notes = o.Err
		v.json = json.NewEncoder(o.Out)
		v.json.SetEscapeHTML(false)
	}
	return v
}

// show writes an event.
func (v *view) show(e event) {
	if v.err != nil {
		return
	}
	e = e.safe()
	e.At = time.Now()
	if v.json != nil {
		v.err = v.json.Encode(e)
		return
	}
	if line := e.line(); line != "" {
		_, v.err = fmt.Fprintf(v.out, "%8.3fs  %s\n", e.At.Sub(v.began).Seconds(), line)
	}
}

// note writes something for people: a line like those of events, or several as they
// stand.
func (v *view) note(text string) {
	switch {
	case v.err != nil:
	case strings.Contains(text, "\n"):
		_, v.err = fmt.Fprintln(v.notes, text)
	default:
		_, v.err = fmt.Fprintf(v.notes, "%8.3fs  %s\n", time.Since(v.began).Seconds(), text)
	}
}

// line is the event for people.
func (e event) line() string {
	switch e.Event {
	case evPush:
		return e.pushLine()
	case evAck:
		return e.ackLine()
	case evFailed:
		return fmt.Sprintf("FAILED #%d %s; pushed %d time(s)", e.N, e.Reason, e.Tries)
	case evReply:
		return e.replyLine()
	case evSession:
		return e.sessionLine()
	case evRefused:
		return e.refusedLine()
	case evStats:
		s := e.Stats
		return fmt.Sprintf("stats  %d pushed (%d again), %d answered, %d unanswered, %d lost, "+
			"%d held, %d sent (%d refused), opens %d (%d refused), sockets %d (%d refused)",
			s.Pushed, s.Redelivered, s.Answered, s.Unanswered, s.Lost, s.Held, s.Sent,
			s.SendsFailed, s.Opens, s.OpensFailed, s.Dials, s.DialsFailed)
	case evEnd:
		t := e.Totals
		return fmt.Sprintf("end    %d pushed: %d acknowledged, %d refused, %d failed, %d open; "+
			"%d replies", t.Pushed, t.Acknowledged, t.Refused, t.Failed, t.Open, t.Replies)
	default:
		return "" // the listener is in the greeting
	}
}

func (e event) pushLine() string {
	line := fmt.Sprintf("push   #%d ", e.N)
	if e.Conversation != "" {
		line += printable(e.Conversation) + "  " + printable(e.Sender) + ": "
	}
	if e.Kind != "text" {
		line += "[" + e.Kind + "] "
	}
	line = strings.TrimSpace(line + printable(e.Text))
	if e.Held {
		line += "  (waits for a bot that takes it)"
	}
	return line
}

func (e event) ackLine() string {
	if e.Unknown {
		return fmt.Sprintf("ack    %d of a frame that was not pushed, on socket %d", e.Code, e.Socket)
	}
	line := fmt.Sprintf("ack    #%d %d in %.1fms on socket %d", e.N, e.Code, e.Latency, e.Socket)
	if e.N == 0 {
		line = fmt.Sprintf("ack    %d of an old message, on socket %d", e.Code, e.Socket)
	}
	if e.Tries > 1 {
		line += fmt.Sprintf(", try %d", e.Tries)
	}
	if e.Late {
		line += ", late"
	}
	if e.Duplicate {
		line += ", again"
	}
	for _, more := range []string{e.Reason, e.Text} {
		if more != "" {
			line += ": " + printable(more)
		}
	}
	return line
}

func (e event) replyLine() string {
	to := e.Conversation
	for _, u := range e.Users {
		to = strings.TrimSpace(to + " " + string(u))
	}
	if e.Track != "" {
		to = e.Track
	}
	said := e.Text
	if said == "" {
		said = e.Body
	}
	if e.Title != "" {
		said = e.Title + ": " + said
	}
	by := strings.TrimSpace(string(e.Route) + " " + e.Format)
	line := fmt.Sprintf("reply  %s  [%s] %s", printable(to), printable(by), printable(said))
	if e.Silent {
		line += "  (the bot was not told)"
	}
	return line
}

func (e event) sessionLine() string {
	line := fmt.Sprintf("socket %d ", e.Socket)
	if e.Done != "" {
		return line + "/" + string(e.Done)
	}
	line += string(e.State)
	if e.Reason != "" {
		line += ": " + e.Reason
	}
	if c := e.Counts; c != nil {
		line += fmt.Sprintf(" for %.1fs, %d pushed, %d answers, %d of %d pings answered",
			c.Age/1e3, c.Pushed, c.Answers, c.Pongs, c.Pings)
	}
	if e.Agent != "" && e.Reason == "" {
		line += " by " + printable(e.Agent)
	}
	return line
}

// shownLine bounds a text in a line for people.
const shownLine = 600

// printable makes one line of a text, without anything that a terminal obeys.
func printable(s string) string {
	var b strings.Builder
	for _, r := range clip(s, shownLine) {
		if r == ' ' || unicode.IsPrint(r) {
			b.WriteRune(r)
			continue
		}
		quoted := strconv.QuoteRune(r)
		b.WriteString(quoted[1 : len(quoted)-1])
	}
	return b.String()
}
