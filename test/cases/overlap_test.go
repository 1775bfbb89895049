package cases_test

import (
	"bytes"
	"encoding/json"
	"slices"
	"time"

	"github.com/penstock-io/penstock/integrations/dingtalk/dingtalktest"
)

// checkOverlap looks for a successor beside the old socket, sends one more message
// on the old one, and wants it to be closed in the end. It is asked for by several
// keys and runs once.
func (r *replay) checkOverlap() {
	old := r.session
	if r.bot.Stats().Dials > 2 || slices.ContainsFunc(r.frames, isExtra) {
		return
	}
	ctx, cancel := r.ctx()
	defer cancel()
	err := r.bot.AwaitSessions(ctx, 2)
	r.want(err == nil, "connection", "there is no successor: %v", err)
	r.want(!r.bubble || time.Since(r.frames[0].at) < time.Second, "connection",
		"the successor came after %v", time.Since(r.frames[0].at))
	r.push(wireItem{text: extraFrame})
	r.awaitAck(len(r.frames) - 1)
	got := r.acks(len(r.frames) - 1)
	r.want(len(got) == 1 && got[0].Session == old.Info().ID, "ack", "the old socket got %v", got)
	r.want(r.svc.Record.AwaitRun(ctx, extraText) == nil, "frames_on_old_after_notice", "not handled")
	if !r.bubble {
		return // it closes when the gateway does, after some ten seconds
	}
	r.pass(time.Minute)
	r.want(old.Info().State == dingtalktest.StateClosed, "connection", "the old one stays")
	r.want(len(r.bot.Sessions()) == 1, "connection", "%d sockets", len(r.bot.Sessions()))
}

const extraText = "on the old socket"

func isExtra(s sent) bool { return s.text == extraFrame }

var extraFrame = frameOf("frame-extra", map[string]any{
	"conversationId": "cidExtra", "msgId": "msgExtra", "conversationType": "1",
	"senderStaffId": "staff-example-0001", "msgtype": "text",
	"text": map[string]string{"content": extraText},
})

// frameOf makes the frame of a robot message.
func frameOf(id string, payload map[string]any) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	inner, err := json.Marshal(payload)
	if err != nil {
		panic(err)
	}
	err = enc.Encode(map[string]any{
		"specVersion": "1.0", "type": "CALLBACK", "data": string(inner),
		"headers": map[string]string{
			"messageId": id, "topic": dingtalktest.TopicRobot, "contentType": "application/json",
		},
	})
	if err != nil {
		panic(err)
	}
	return b.String()
}
