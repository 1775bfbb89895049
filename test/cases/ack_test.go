package cases_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// ackCheckers read an object, or one of the phrases.
func (r *replay) ackCheckers() []checker {
	return []checker{
		{`^\{`, r.checkAckObject},
		{`^only the`, r.checkAckOnly},
		{`^none needed|^optional`, r.checkAckOptional},
		{`^none`, r.checkAckNone},
		{`echo allowed, never an error`, r.checkAckOptional},
		{`still go to the old socket`, r.checkOverlap},
		{`^\d{3}( both| each| all)?$`, func() {
			r.checkCodes(slices.Repeat(codes(r.c.words("ack")), len(r.frames)))
		}},
		{`^second \d{3} on the new`, r.checkSecondOnNew},
		{`^(first|second|third) \d{3}`, r.checkAckOne},
		{`\d{3}.*[;,].*\d{3}`, func() { r.checkCodes(codes(r.c.words("ack"))) }},
	}
}

func codes(words string) []int {
	var out []int
	for _, s := range regexp.MustCompile(`\b\d{3}\b`).FindAllString(words, -1) {
		n, _ := strconv.Atoi(s) // it is three digits
		out = append(out, n)
	}
	return out
}

// checkAckOne wants one message to have got its code.
func (r *replay) checkAckOne() {
	i, code := ordinal(r.c.words("ack")), codes(r.c.words("ack"))[0]
	if i >= len(r.frames) {
		r.odd("ack", r.c.words("ack"))
		return
	}
	got := r.acks(i)
	r.want(len(got) == 1 && got[0].Code == code, "ack", "it got %v", got)
}

// checkCodes wants one answer to each message, with these codes.
func (r *replay) checkCodes(want []int) {
	if len(want) != len(r.frames) {
		r.odd("ack", r.c.words("ack"))
		return
	}
	for i := range r.frames {
		got := r.acks(i)
		r.want(len(got) == 1 && got[0].Code == want[i], "ack", "message %d got %v", i+1, got)
	}
}

// ackObject is an answer in detail.
type ackObject struct {
	Code     int               `json:"code"`
	Headers  map[string]string `json:"headers"`
	Message  string            `json:"message"`
	Data     string            `json:"data"`
	DataJSON json.RawMessage   `json:"data_json"`
}

func (r *replay) checkAckObject() {
	var want ackObject
	if err := strict(r.c.Expect["ack"], &want); err != nil {
		r.odd("ack", err.Error())
		return
	}
	for i := range r.frames {
		got := r.acks(i)
		if len(got) != 1 {
			r.fail("ack", "message %d got %d answers", i+1, len(got))
			continue
		}
		for _, why := range want.differs(got[0].Raw) {
			r.fail("ack", "message %d: %s", i+1, why)
		}
	}
}

func (want ackObject) differs(raw string) (whys []string) {
	var got ackObject
	if err := json.Unmarshal([]byte(raw), &got); err != nil {
		return []string{fmt.Sprintf("%q: %v", raw, err)}
	}
	add := func(ok bool, what string) {
		if !ok {
			whys = append(whys, what+" differs: "+raw)
		}
	}
	add(want.Code == 0 || got.Code == want.Code, "code")
	add(want.Message == "" || got.Message == want.Message, "message")
	add(want.Data == "" || got.Data == want.Data, "data")
	add(want.DataJSON == nil || sameJSON([]byte(got.Data), want.DataJSON), "data")
	for k, v := range want.Headers {
		add(got.Headers[k] == v, "header "+k)
	}
	return whys
}

// sameJSON compares documents; fields beyond those of want are allowed.
func sameJSON(got, want []byte) bool {
	var x, y any
	return json.Unmarshal(got, &x) == nil && json.Unmarshal(want, &y) == nil && covers(x, y)
}

// ordinals are how cases name one of several messages.
var ordinals = []string{"first", "second", "third", "fourth", "fifth"}

// ordinal finds the message that words speak of, -1 if of none.
func ordinal(words string) int {
	return slices.IndexFunc(ordinals, func(o string) bool { return strings.Contains(words, o) })
}

func (r *replay) checkAckOnly() {
	only := ordinal(r.c.words("ack"))
	if only < 0 || only >= len(r.frames) {
		r.odd("ack", r.c.words("ack"))
		return
	}
	got := r.acks(only)
	r.want(len(got) == 1 && got[0].Code == 200, "ack", "it got %v", got)
	for _, a := range r.bot.Acks() {
		r.want(!a.Unknown || a.Frame == r.frames[only].id(), "ack", "there is another: %s", a.Raw)
	}
}

func (r *replay) checkAckNone() {
	for _, a := range r.bot.Acks() {
		r.want(!a.Unknown, "ack", "there is one: %s", a.Raw)
	}
	if strings.Contains(r.c.words("ack"), "counted") {
		n, _ := r.svc.Metric("no_message_id")
		r.want(n == 1, "ack", "it was counted %v times", n)
	}
}

// checkAckOptional allows no answer, but no wrong one.
func (r *replay) checkAckOptional() {
	for i := range r.frames {
		for _, a := range r.acks(i) {
			r.want(a.Code == 200, "ack", "message %d got %s", i+1, a.Raw)
		}
	}
}

func (r *replay) checkSecondOnNew() {
	got := r.acks(1)
	r.want(len(got) == 1 && got[0].Code == codes(r.c.words("ack"))[0], "ack", "it got %v", got)
	r.want(len(got) == 1 && got[0].Session == r.frames[1].session &&
		got[0].Session != r.frames[0].session, "ack", "not on the new connection: %v", got)
}
