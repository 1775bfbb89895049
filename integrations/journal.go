package integrations

import (
	"errors"
	"log/slog"
	"math/bits"
	"time"
	"unicode/utf8"
)

const (
	// journalEvery is the longest time that a repeated failure goes unmentioned.
	journalEvery = 10 * time.Minute
	// maxErrorText bounds what a connector may put into a status or a log line.
	maxErrorText = 512
)

// journal writes what happens to the sessions of one installation. Repeated
// failures are told at the 1st, 2nd, 4th, 8th and so on, when they are of another
// kind than all before them, and at least every journalEvery, with the number of
// those left out. It is owned by the goroutine of Run.
type journal struct {
	log    *slog.Logger
	last   time.Time // of the last line about a failure
	told   uint8     // the kinds of failures that had a line, one bit for each Why
	quiet  bool      // the last failure was left out
	hidden int       // failures left out since last
}

// journalEntry is what surrounds the end of a session.
type journalEntry struct {
	failures int
	wait     time.Duration
	now      time.Time
}

// live tells that a session went live, unless it follows a failure that was left
// out: then it is likely to be dropped again.
func (j *journal) live(x *session, now time.Time) {
	if j.quiet && now.Sub(j.last) < journalEvery {
		return
	}
	j.log.Info("session is live", "session", x.number,
		"opened_in", x.seen.liveAt.Sub(x.seen.begunAt).Round(time.Millisecond))
}

// proved tells that a series of failures is over.
func (j *journal) proved(failures int) {
	if failures > 0 {
		j.log.Info("connection holds again", "failures", failures)
	}
	j.quiet, j.hidden, j.told = false, 0, 0
}

// aged tells that a session is replaced for its age.
func (j *journal) aged(x *session) {
	j.log.Info("session has reached its age limit, opening its successor", "session", x.number)
}

// left tells that a session ended that was to end.
func (j *journal) left(x *session, end End) {
	j.log.Debug("retired session has ended", "session", x.number, "why", end.Why.String())
}

// asked tells that the platform asked for a new session.
func (j *journal) asked(x *session, e journalEntry) {
	if e.failures == 0 || j.worthALine(Asked, e) {
		j.log.Info("platform asks for a new session", "session", x.number,
			"redial_in", e.wait.Round(time.Millisecond), "left_out", j.hidden)
		j.written(e.now)
	}
}

// ended tells of an end that nobody had announced.
func (j *journal) ended(x *session, end End, e journalEntry) {
	if !j.worthALine(end.Why, e) {
		return
	}
	attrs := []any{
		"session", x.number, "why", end.Why.String(), "error", describe(end),
		"failures", e.failures, "left_out", j.hidden,
	}
	if end.Code != "" {
		attrs = append(attrs, "code", end.Code)
	}
	var crash *crashError
	if errors.As(end.Err, &crash) {
		attrs = append(attrs, "stack", string(crash.stack))
	}
	j.written(e.now)
	wait := e.wait.Round(time.Millisecond)
	switch end.Why {
	case Displaced:
		j.log.Error("another client took the session, nothing is tried until resumed", attrs...)
	case Refused:
		j.log.Error("platform refuses the installation", append(attrs, "probe_in", wait)...)
	default:
		j.log.Warn("session has ended", append(attrs, "redial_in", wait)...)
	}
}

// worthALine tells whether a failure is written, and notes it if not.
func (j *journal) worthALine(why Why, e journalEntry) bool {
	kind := uint8(1) << min(why, 7)
	first := j.told&kind == 0
	j.told |= kind
	if first || bits.OnesCount(uint(e.failures)) <= 1 || e.now.Sub(j.last) >= journalEvery {
		return true
	}
	j.quiet = true
	j.hidden++
	return false
}

func (j *journal) written(now time.Time) {
	j.quiet, j.hidden, j.last = false, 0, now
}

// describe is the text of an end's error, cut if it is long.
func describe(end End) string {
	if end.Err == nil {
		return end.Why.String()
	}
	text := end.Err.Error()
	if len(text) <= maxErrorText {
		return text
	}
	cut := maxErrorText
	for cut > 0 && !utf8.RuneStart(text[cut]) {
		cut--
	}
	return text[:cut] + "..."
}
