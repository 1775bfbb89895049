package dingtalktest_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/penstock-io/penstock/integrations/dingtalk/dingtalktest"
)

func TestRobotMessageIsPushedAndAnswered(t *testing.T) {
	t.Parallel()
	seen := make(chan dingtalktest.Ack, 1)
	c := serve(t, dingtalktest.Config{OnAck: func(a dingtalktest.Ack) { seen <- a }})
	k := c.connect()
	p := c.push(dingtalktest.Text("cid1", "hello"))
	f := k.read()
	require.Equal(t, "CALLBACK", f.Type)
	require.Equal(t, dingtalktest.TopicRobot, f.Headers["topic"])
	var data struct {
		ConversationID string `json:"conversationId"`
		MsgID          string `json:"msgId"`
		Text           struct{ Content string }
		RobotCode      string `json:"robotCode"`
	}
	require.NoError(t, json.Unmarshal([]byte(f.Data), &data))
	require.Equal(t, "cid1", data.ConversationID)
	require.Equal(t, "hello", data.Text.Content)
	require.EqualValues(t, p.ID(), data.MsgID)
	require.Equal(t, f.Data, p.Data())

	k.ack(f, 200, `{"response":null}`)
	ack, err := c.outcome(p)
	require.NoError(t, err)
	require.Equal(t, 200, ack.Code)
	require.Equal(t, `{"response":null}`, ack.Data)
	require.EqualValues(t, f.id(), ack.Frame)
	require.Equal(t, p.ID(), ack.Message)
	require.Equal(t, ack.Session, ack.PushedOn)
	require.False(t, ack.Unknown || ack.Duplicate || ack.Late)
	require.Equal(t, []dingtalktest.Ack{ack}, c.app().Acks())
	require.Equal(t, ack, <-seen)
}

func TestUnansweredRobotMessageComesOnceMore(t *testing.T) {
	t.Parallel()
	for _, school := range []dingtalktest.Redelivery{
		dingtalktest.RedeliverNew, dingtalktest.RedeliverSame, dingtalktest.RedeliverNever,
	} {
		t.Run(string(school), func(t *testing.T) {
			t.Parallel()
			bubble(t, dingtalktest.Config{Redelivery: school, PingEvery: -1}, func(c *client) {
				k := c.connect()
				start := time.Now()
				p := c.push(dingtalktest.Text("cid1", "hello"))
				first := k.read()
				if school != dingtalktest.RedeliverNever {
					second := k.read()
					require.Equal(c.t, time.Minute, time.Since(start))
					require.Equal(c.t, first.Data, second.Data)
					require.Equal(c.t, school == dingtalktest.RedeliverSame, first.id() == second.id())
				}
				_, err := c.outcome(p)
				require.ErrorIs(c.t, err, dingtalktest.ErrUnanswered)
				require.Equal(c.t, 1, c.app().Stats().Unanswered)
			})
		})
	}
}

func TestLateAndDuplicateAnswersAreMarked(t *testing.T) {
	t.Parallel()
	bubble(t, dingtalktest.Config{PingEvery: -1}, func(c *client) {
		k := c.connect()
		p := c.push(dingtalktest.Text("cid1", "hello"))
		first, second := k.read(), k.read()
		k.ack(first, 200, "")
		ack, err := c.outcome(p)
		require.NoError(c.t, err)
		require.False(c.t, ack.Late) // at the very instant
		require.Equal(c.t, time.Minute, ack.Latency)
		k.ack(second, 200, "")
		k.ack(envelope{Headers: map[string]string{"messageId": "nobody"}}, 200, "")
		synctest.Wait()
		acks := c.app().Acks()
		require.Len(c.t, acks, 3)
		require.True(c.t, acks[1].Duplicate)
		require.True(c.t, acks[2].Unknown)
	})
}

func TestFailedEventIsPushedOnScheduleAndKept(t *testing.T) {
	t.Parallel()
	for name, reply := range map[string]func(k *conn, f envelope){
		"no answer": func(*conn, envelope) {},
		"later":     func(k *conn, f envelope) { k.ack(f, 200, `{"status":"LATER"}`) },
		"error":     func(k *conn, f envelope) { k.ack(f, 500, "") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, dingtalktest.Config{PingEvery: -1}, func(c *client) {
				k := c.connect()
				wait := 3 * time.Second
				if name != "no answer" {
					wait = 0
				}
				start := time.Now()
				p := c.push(dingtalktest.Event{ID: "ev1", Type: "user_add_org"})
				for _, due := range []time.Duration{0, wait + 10*time.Second, 2*wait + 40*time.Second} {
					f := k.read()
					require.Equal(c.t, due, time.Since(start))
					require.Equal(c.t, "ev1", f.Headers["eventId"])
					reply(k, f)
				}
				_, err := c.outcome(p)
				require.ErrorIs(c.t, err, dingtalktest.ErrUnanswered)
				require.Len(c.t, p.Tries(), 3)

				list := c.failedEvents()
				require.Len(c.t, list, 1)
				require.Equal(c.t, "user_add_org", list[0].(map[string]any)["call_back_tag"])
				require.Empty(c.t, c.failedEvents())
			})
		})
	}
}

func (c *client) failedEvents() []any {
	c.t.Helper()
	token := c.token().Get(tokenHeader)
	a := c.must("GET", c.gw.URL()+"/call_back/get_call_back_failed_result?access_token="+token, nil, "")
	require.EqualValues(c.t, 0, a.json["errcode"], a.body)
	return a.json["failed_list"].([]any)
}

func TestEventAnswers(t *testing.T) {
	t.Parallel()
	c := serve(t, dingtalktest.Config{})
	k := c.connect()
	for _, data := range []string{`{"status":"SUCCESS"}`, `{"timeStamp":"1"}`, ""} {
		p := c.push(dingtalktest.Event{})
		k.ack(k.read(), 200, data)
		ack, err := c.outcome(p)
		require.NoError(t, err)
		require.Equal(t, data, ack.Data)
	}
}

func TestLaterThenSuccess(t *testing.T) {
	t.Parallel()
	bubble(t, dingtalktest.Config{PingEvery: -1}, func(c *client) {
		k := c.connect()
		p := c.push(dingtalktest.Event{})
		first := k.read()
		k.ack(first, 200, `{"status":"LATER"}`)
		k.ack(first, 200, `{"status":"LATER"}`) // counts once
		k.ack(k.read(), 200, `{"status":"SUCCESS"}`)
		_, err := c.outcome(p)
		require.NoError(c.t, err)
		require.Len(c.t, p.Tries(), 2)
		require.Equal(c.t, 1, c.app().Stats().Redelivered)
	})
}

func TestCallbacksWaitTwoSecondsOnce(t *testing.T) {
	t.Parallel()
	for topic, m := range map[string]dingtalktest.Message{
		dingtalktest.TopicCard:   dingtalktest.Card{Actions: []string{"ok"}, Params: map[string]any{"n": 1}},
		dingtalktest.TopicQuery:  dingtalktest.Query{},
		dingtalktest.TopicPlugin: dingtalktest.Plugin{},
	} {
		t.Run(topic, func(t *testing.T) {
			t.Parallel()
			bubble(t, dingtalktest.Config{PingEvery: -1}, func(c *client) {
				k := c.connect()
				start := time.Now()
				p := c.push(m)
				f := k.read()
				require.Equal(c.t, topic, f.Headers["topic"])
				require.True(c.t, json.Valid([]byte(f.Data)))
				_, err := c.outcome(p)
				require.ErrorIs(c.t, err, dingtalktest.ErrUnanswered)
				require.Equal(c.t, 2*time.Second, time.Since(start))
				k.ack(f, 200, `{"response":{}}`)
				synctest.Wait()
				require.True(c.t, c.app().Acks()[0].Duplicate)

				p = c.push(m)
				k.ack(k.read(), 200, `{"response":{"a":1}}`)
				ack, err := c.outcome(p)
				require.NoError(c.t, err)
				require.Equal(c.t, `{"response":{"a":1}}`, ack.Data)
			})
		})
	}
}

func TestDowntime(t *testing.T) {
	t.Parallel()
	t.Run("lost", func(t *testing.T) {
		t.Parallel()
		c := serve(t, dingtalktest.Config{})
		_, err := c.outcome(c.push(dingtalktest.Text("cid1", "hello")))
		require.ErrorIs(t, err, dingtalktest.ErrLost)
		require.Equal(t, 1, c.app().Stats().Lost)
	})
	t.Run("held", func(t *testing.T) {
		t.Parallel()
		c := serve(t, dingtalktest.Config{Down: dingtalktest.DownHold, HoldLimit: 2})
		for i := range 2 {
			c.push(dingtalktest.Text("cid1", fmt.Sprint(i)))
		}
		_, err := c.outcome(c.push(dingtalktest.Text("cid1", "too many")))
		require.ErrorIs(t, err, dingtalktest.ErrLost)
		require.Equal(t, 2, c.app().Stats().Held)
		k := c.connect()
		for i := range 2 {
			require.Contains(t, k.read().Data, fmt.Sprintf(`{"content":"%d"}`, i))
		}
		require.Zero(t, c.app().Stats().Held)
	})
	t.Run("event waits for its schedule", func(t *testing.T) {
		t.Parallel()
		bubble(t, dingtalktest.Config{PingEvery: -1}, func(c *client) {
			start := time.Now()
			c.push(dingtalktest.Event{})
			k := c.connect()
			k.read()
			require.Equal(c.t, 10*time.Second, time.Since(start))
		})
	})
}

func TestOnlySubscribedTopicsArePushed(t *testing.T) {
	t.Parallel()
	c := serve(t, dingtalktest.Config{})
	k := c.connect()
	_, err := c.outcome(c.push(dingtalktest.Robot{Host: "staff7"}))
	require.ErrorIs(t, err, dingtalktest.ErrLost)
	c.push(dingtalktest.Frame{Topic: "/v1.0/unknown", Data: "not json"})
	f := k.read()
	require.Equal(t, "not json", f.Data)
	require.Equal(t, "/v1.0/unknown", f.Headers["topic"])
}

func TestOddFrames(t *testing.T) {
	t.Parallel()
	c := serve(t, dingtalktest.Config{})
	k := c.connect()
	c.push(dingtalktest.Frame{
		Type: "ODD", RawData: json.RawMessage(`{"a":1}`),
		Headers: map[string]string{"messageId": "", "extra": "<&>"},
	})
	f := k.read()
	require.Empty(t, f.id())
	require.Contains(t, f.raw, `"data":{"a":1}`)
	require.Contains(t, f.raw, `"extra":"<&>"`)
	s := c.app().Sessions()[0]
	require.True(t, s.PushRaw([]byte("{")))
	require.Equal(t, "{", k.read().raw)
	require.True(t, s.PushBinary([]byte{1}))
	kind, _, err := k.ws.ReadMessage()
	require.NoError(t, err)
	require.Equal(t, 2, kind)
	big := make([]byte, 70000)
	require.True(t, s.PushRaw(big))
	require.Len(t, k.read().raw, len(big))
	_, err = c.app().Push(dingtalktest.Robot{Content: func() {}})
	require.Error(t, err)
}

func TestChoiceOfSocketsIsRandomAndRepeats(t *testing.T) {
	t.Parallel()
	run := func() (where []int) {
		c := serve(t, dingtalktest.Config{Seed: 7})
		c.connect()
		c.connect()
		for range 64 {
			where = append(where, c.push(dingtalktest.Text("cid1", "x")).Tries()[0].Session)
		}
		return where
	}
	first := run()
	require.Equal(t, first, run())
	require.Contains(t, first, 1)
	require.Contains(t, first, 2)
}

func TestRobotFields(t *testing.T) {
	t.Parallel()
	c := serve(t, dingtalktest.Config{})
	p := c.push(dingtalktest.Robot{
		Direct: true, Type: "picture", Content: map[string]any{"downloadCode": "d"},
		Fields: map[string]any{"senderStaffId": nil, "createAt": "12"},
	})
	var data map[string]any
	require.NoError(t, json.Unmarshal([]byte(p.Data()), &data))
	require.Equal(t, "1", data["conversationType"])
	require.Equal(t, "12", data["createAt"])
	require.NotContains(t, data, "senderStaffId")
	require.NotContains(t, data, "text")
	require.Equal(t, map[string]any{"downloadCode": "d"}, data["content"])
}
