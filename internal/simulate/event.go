package simulate

import (
	"math"
	"regexp"
	"time"

	"github.com/penstock-io/penstock/integrations/dingtalk/dingtalktest"
	"github.com/penstock-io/penstock/message"
)

// Kinds of events.
const (
	evListen  = "listen"
	evPush    = "push"
	evAck     = "ack"
	evFailed  = "failed"
	evReply   = "reply"
	evSession = "session"
	evRefused = "refused"
	evStats   = "stats"
	evEnd     = "end"
)

// event is one thing that happened, as JSON shows it.
type event struct {
	At    time.Time `json:"at"`
	Event string    `json:"event"`

	// of listen
	URL      string `json:"url,omitempty"`
	ClientID string `json:"client_id,omitempty"`

	// of push, ack, failed and reply
	N            int                `json:"n,omitempty"`
	ID           message.ID         `json:"id,omitempty"`
	Kind         string             `json:"kind,omitempty"`
	Conversation string             `json:"conversation,omitempty"`
	Direct       bool               `json:"direct,omitempty"`
	Sender       string             `json:"sender,omitempty"`
	Users        []message.UserID   `json:"users,omitempty"`
	Route        dingtalktest.Route `json:"route,omitempty"`
	Format       string             `json:"format,omitempty"`
	Title        string             `json:"title,omitempty"`
	Text         string             `json:"text,omitempty"`
	Body         string             `json:"body,omitempty"`
	Track        string             `json:"track,omitempty"`
	Held         bool               `json:"held,omitempty"`
	Silent       bool               `json:"silent,omitempty"`

	// of ack and failed
	Frame     message.FrameID `json:"frame,omitempty"`
	Code      int             `json:"code,omitempty"`
	Latency   float64         `json:"latency_ms,omitempty"`
	Tries     int             `json:"try,omitempty"`
	Late      bool            `json:"late,omitempty"`
	Duplicate bool            `json:"duplicate,omitempty"`
	Unknown   bool            `json:"unknown,omitempty"`
	Reason    string          `json:"reason,omitempty"`

	// of refused, with Route, Code and Reason
	Times int `json:"times,omitempty"` // since the last one that was shown

	// of session
	Socket int                       `json:"socket,omitempty"`
	State  dingtalktest.SessionState `json:"state,omitempty"`
	Done   Verb                      `json:"done,omitempty"` // to the socket, by a line
	Remote string                    `json:"remote,omitempty"`
	Agent  string                    `json:"agent,omitempty"`
	Counts *counts                   `json:"counts,omitempty"`

	Stats  *stats  `json:"stats,omitempty"`
	Totals *totals `json:"totals,omitempty"`
}

// counts are those of one socket.
type counts struct {
	Age     float64 `json:"age_ms"`
	Pushed  int     `json:"pushed"`
	Answers int     `json:"answers"`
	Pings   int     `json:"pings"`
	Pongs   int     `json:"pongs"`
}

// stats are the gateway's counters; their fields are those of dingtalktest.Stats.
type stats struct {
	Opens       int `json:"opens"`
	OpensFailed int `json:"opens_failed"`
	Dials       int `json:"dials"`
	DialsFailed int `json:"dials_failed"`
	Pushed      int `json:"pushed"`
	Redelivered int `json:"redelivered"`
	Answered    int `json:"answered"`
	Unanswered  int `json:"unanswered"`
	Lost        int `json:"lost"`
	Held        int `json:"held"`
	Acks        int `json:"acks"`
	Sent        int `json:"sent"`
	SendsFailed int `json:"sends_failed"`
}

// totals are what a run came to. Pushed is the sum of the next four.
type totals struct {
	Pushed       int `json:"pushed"`
	Acknowledged int `json:"acknowledged"`
	Refused      int `json:"refused"`
	Failed       int `json:"failed"`
	Open         int `json:"open"`
	Replies      int `json:"replies"`
}

func socketEvent(i dingtalktest.SessionInfo) event {
	return event{
		Event: evSession, Socket: i.ID, State: i.State, Reason: i.Reason,
		Remote: i.Remote, Agent: i.UserAgent,
	}
}

// ms is a duration as a number of milliseconds, to the microsecond.
func ms(d time.Duration) float64 { return math.Round(float64(d)/1e3) / 1e3 }

// sessionValue finds the secret of a sessionWebhook in anything that holds its URL.
var sessionValue = regexp.MustCompile(`(?i)(session(?:=|%3d))[^\s"'<>&\\)]+`)

// maxShown bounds each text of an event.
const maxShown = 4 << 10

// safe hides the secrets in what others have written, and bounds it.
func (e event) safe() event {
	for _, field := range []*string{&e.Title, &e.Text, &e.Body, &e.Reason, &e.Agent} {
		*field = clip(sessionValue.ReplaceAllString(*field, "${1}***"), maxShown)
	}
	return e
}
