package edge_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/penstock-io/penstock/edge"
	"github.com/penstock-io/penstock/message"
	"github.com/penstock-io/penstock/router"
)

func TestAMessageIsDoneWhenItIsAnswered(t *testing.T) {
	t.Parallel()
	b := serve(t, edge.Config{})
	c := b.dial()
	r := b.give(robot("m1", "c1"))
	f := c.read()
	require.Equal(t, "1.0", f.SpecVersion)
	require.Equal(t, "CALLBACK", f.Type)
	require.Equal(t, topicRobot, f.Headers["topic"])
	require.Equal(t, "application/json", f.Headers["contentType"])
	require.NotEmpty(t, f.Headers["connectionId"])
	require.InDelta(t, time.Now().UnixMilli(), number(f.Headers["time"]), 60_000)
	before, after, found := strings.Cut(f.Data, b.srv.URL()+"/robot/sendBySession?session=")
	require.True(t, found, f.Data)
	require.Equal(t, `{"msgId":"m1", "text":{"content":"<hi> & \u4f60"},"sessionWebhook":"`, before)
	require.Contains(t, after, `" ,"sessionWebhookExpiredTime":`)
	require.True(t, strings.HasSuffix(after, `,"n":1e2}`), after)
	require.NotContains(t, f.Data, "SENTINEL")
	require.True(t, r.pending())
	c.ok(f)
	res, err := r.wait()
	require.NoError(t, err)
	require.Equal(t, router.Result{}, res)
	require.EqualValues(t, 1, b.srv.Stats().Outcomes["answered"])
	require.EqualValues(t, 1, b.srv.Stats().Pushes)
}

func TestTheAppIsNamedAsTheVendorDoes(t *testing.T) {
	t.Parallel()
	b := serve(t, edge.Config{})
	c := b.dial()
	for kind, name := range map[message.Kind]string{
		message.KindMessage: "appId", message.KindEvent: "eventUnifiedAppId",
	} {
		m := robot("m", "c")
		m.Kind, m.AppID = kind, "0a1b2c3d-1111"
		r := b.give(m)
		f := c.read()
		require.Equal(t, "0a1b2c3d-1111", f.Headers[name])
		c.ok(f)
		_, err := r.wait()
		require.NoError(t, err)
	}
}

func TestEventsHaveTheirHeaders(t *testing.T) {
	t.Parallel()
	b := serve(t, edge.Config{})
	c := b.dial()
	at := time.UnixMilli(1785000000123)
	m := &message.Inbound{
		ID: "event-1", Installation: "bot", Kind: message.KindEvent, Topic: "user_add_org",
		Conversation: message.Conversation{ID: "events:corp1"}, SentAt: at, Raw: `{"userId":["a"]}`,
	}
	r := b.give(m)
	f := c.read()
	require.Equal(t, "EVENT", f.Type)
	require.Equal(t, `{"userId":["a"]}`, f.Data)
	for name, want := range map[string]string{
		"topic": "*", "eventId": "event-1", "eventType": "user_add_org",
		"eventCorpId": "corp1", "eventBornTime": "1785000000123",
	} {
		require.Equal(t, want, f.Headers[name], name)
	}
	c.answer(f.Headers["messageId"], 200, `{"status":"LATER"}`)
	_, err := r.wait()
	require.ErrorContains(t, err, "later")
	require.False(t, router.IsPermanent(err))

	r = b.give(m)
	f = c.read()
	c.answer(f.Headers["messageId"], 200, f.Data) // one SDK answers with the event itself
	_, err = r.wait()
	require.NoError(t, err)
}

func TestTheAnswerToACardComesBack(t *testing.T) {
	t.Parallel()
	b := serve(t, edge.Config{})
	c := b.dial()
	m := &message.Inbound{
		ID: "card-1", Installation: "bot", Kind: message.KindCard,
		Topic: "/v1.0/card/instances/callback", Raw: `{"outTrackId":"x"}`,
		Conversation: message.Conversation{ID: "card:x"},
	}
	for data, want := range map[string]string{
		`{"response":{"cardData":{}}}`: `{"response":{"cardData":{}}}`,
		"":                             "",
		"nonsense":                     "",
	} {
		r := b.give(m)
		f := c.read()
		require.Equal(t, `{"outTrackId":"x"}`, f.Data)
		c.answer(f.Headers["messageId"], 200, data)
		res, err := r.wait()
		require.NoError(t, err)
		require.Equal(t, want, string(res.Answer))
	}
	r := b.give(m)
	f := c.read()
	c.write(`{"code":"200","headers":{"messageId":"` + f.Headers["messageId"] + `"},"data":{"response":1}}`)
	res, err := r.wait()
	require.NoError(t, err)
	require.JSONEq(t, `{"response":1}`, string(res.Answer), "numbers may be strings, and data an object")
	require.EqualValues(t, 1, b.srv.Stats().Strays["bad_answer"])
}

func TestBadAnswers(t *testing.T) {
	t.Parallel()
	b := serve(t, edge.Config{})
	c := b.dial()
	for code, permanent := range map[int]bool{400: false, 404: true, 500: false, 0: false} {
		r := b.give(robot("m", "c"))
		f := c.read()
		c.answer(f.Headers["messageId"], code, "")
		_, err := r.wait()
		require.Error(t, err)
		require.Equal(t, permanent, router.IsPermanent(err), code)
		require.False(t, router.IsUnreached(err))
		require.Equal(t, router.ReasonStatus, router.ReasonOf(err))
	}
}

func TestTheBotsWordsAreQuotedWithoutSecrets(t *testing.T) {
	t.Parallel()
	b := serve(t, edge.Config{})
	c := b.dial()
	for _, said := range []struct{ text, quoted string }{
		{"out of \x1b[31m tea\nand coffee", "answered 500: out of ?[31m tea and coffee"},
		{
			`Post "https://x/robot/sendBySession?session=SENTINEL": refused`,
			`answered 500: Post "https://x/robot/sendBySession?…": refused`,
		},
		{
			"bad session=SENTINEL1 https%3A%2F%2Fx%3Fsession%3DSENTINEL2 \\u003fsession=SENTINEL3 " + secretOfOne,
			"answered 500: bad ?… https%3A%2F%2Fx?… ?… [hidden]",
		},
		{"x?" + strings.Repeat("y", 4000) + " " + strings.Repeat("SENTINEL", 100), "answered 500: x?…"},
		{strings.Repeat("é", 300), strings.Repeat("é", 100) + "…"},
		{"", "answered 500"},
	} {
		r := b.give(robot("m", "c"))
		id := c.read().Headers["messageId"]
		text, _ := json.Marshal(said.text) //nolint:errchkjson // a string
		c.write(`{"code":500,"headers":{"messageId":"` + id + `"},"message":` + string(text) + `,"data":""}`)
		_, err := r.wait()
		require.ErrorContains(t, err, said.quoted)
		require.NotContains(t, err.Error(), "SENTINEL")
	}
}

func TestWithoutAnAnswerItComesAgainElsewhere(t *testing.T) {
	t.Parallel()
	b := serve(t, edge.Config{AckWithin: 100 * time.Millisecond})
	c1, c2 := b.dial(), b.dial()
	got := make(chan frame, 10)
	for _, c := range []*client{c1, c2} {
		go func() {
			for {
				f, err := c.next()
				if err != nil {
					return
				}
				got <- f
			}
		}()
	}
	m := robot("m", "c")
	var frames []frame
	for range 3 {
		_, err := b.give(m).wait()
		require.ErrorContains(t, err, "in time")
		require.Equal(t, router.ReasonTimeout, router.ReasonOf(err))
		frames = append(frames, <-got)
	}
	require.NotEqual(t, frames[0].Headers["messageId"], frames[1].Headers["messageId"])
	require.NotEqual(t, frames[0].Headers["connectionId"], frames[1].Headers["connectionId"])
	require.NotEqual(t, frames[1].Headers["connectionId"], frames[2].Headers["connectionId"])

	// An answer to any of the frames, on any connection, settles the message.
	c2.ok(frames[0])
	b.eventually(func() bool {
		_, err := b.give(m).wait()
		return err == nil
	})
	b.counts(1, func(s edge.Stats) int64 { return s.Outcomes["answered_late"] })
}

func TestALateAnswerEndsALaterTry(t *testing.T) {
	t.Parallel()
	b := serve(t, edge.Config{})
	c := b.dial()
	m := robot("m", "c")
	ctx, giveUp := context.WithCancel(t.Context())
	given := b.giveTo(ctx, "one", m)
	first := c.read()
	b.eventually(func() bool { return b.srv.Frames()[0].State == "written" })
	giveUp()
	_, err := given.wait()
	require.Error(t, err)
	r := b.give(m)
	second := c.read()
	require.NotEqual(t, first.Headers["messageId"], second.Headers["messageId"])
	c.answer(first.Headers["messageId"], 500, "") // speaks of its own frame only
	c.ok(first)
	_, err = r.wait()
	require.NoError(t, err)
	c.ok(second)
	c.ok(second)
	b.counts(3, func(s edge.Stats) int64 { return s.Strays["late"] })
	r = b.give(robot("m2", "c"))
	c.ok(c.read())
	_, err = r.wait()
	require.NoError(t, err, "second answers do no harm")
}

func TestWithoutAConsumerNobodyIsReached(t *testing.T) {
	t.Parallel()
	b := serve(t, edge.Config{})
	for _, name := range []string{"one", "unheard of"} {
		_, err := b.giveTo(t.Context(), name, robot("m", "c")).wait()
		require.True(t, router.IsUnreached(err), name)
	}
	require.Empty(t, b.connected)
	c := b.dial()
	<-b.connected // somebody was missed
	r := b.give(robot("m", "c"))
	c.ok(c.read())
	_, err := r.wait()
	require.NoError(t, err)
	b.dial()
	require.Empty(t, b.connected, "nobody was missed")
}

func TestWhatIsNotSubscribedIsNotPushed(t *testing.T) {
	t.Parallel()
	b := serve(t, edge.Config{AckWithin: 100 * time.Millisecond, AwayWithin: 200 * time.Millisecond})
	b.dial("/v1.0/card/instances/callback")
	_, err := b.give(robot("m", "c")).wait()
	require.True(t, router.IsUnreached(err), "another program of the bot may be on its way")
	b.eventually(func() bool {
		_, err := b.give(robot("m", "c")).wait()
		return errors.Is(err, router.ErrNoRoute)
	})
	require.Equal(t, 1, strings.Count(b.log.String(), "that subscribes to them"))
	c := b.dial(topicRobot)
	for i := range 5 {
		r := b.give(robot(fmt.Sprint(i), fmt.Sprint(i)))
		c.ok(c.read())
		_, err = r.wait()
		require.NoError(t, err)
	}
}

func TestTopicsThatNobodyAsksForAreLogged(t *testing.T) {
	t.Parallel()
	b := serve(t, edge.Config{Asked: func(topic string) bool { return topic == topicRobot }})
	b.dial(topicRobot)
	require.NotContains(t, b.log.String(), "no installation asks")
	b.dial(topicRobot, "/v1.0/card/instances/callback")
	require.Contains(t, b.log.String(), "topics=[/v1.0/card/instances/callback]")
}

// A bot may be two programs. What the one that is away takes is not lost because the
// other one is there.
func TestWhatAProgramTakesThatIsAwayWaits(t *testing.T) {
	t.Parallel()
	b := serve(t, edge.Config{})
	b.dial("/v1.0/card/instances/callback")
	chat := b.dial(topicRobot)
	_ = chat.ws.Close()
	b.counts(1, func(s edge.Stats) int64 { return int64(s.Connections["one"]) })
	for range 3 {
		_, err := b.give(robot("m", "c")).wait()
		require.True(t, router.IsUnreached(err))
	}
	chat = b.dial(topicRobot)
	<-b.connected
	chat.obey()
	_, err := b.give(robot("m", "c")).wait()
	require.NoError(t, err)
}

func TestTheAnswerMayComeOnTheNextConnection(t *testing.T) {
	t.Parallel()
	b := serve(t, edge.Config{})
	c := b.dial()
	r := b.give(robot("m", "c"))
	f := c.read()
	_ = c.ws.Close()
	b.counts(0, func(s edge.Stats) int64 { return int64(s.Connections["one"]) })
	next := b.dial()
	next.ok(f)
	_, err := r.wait()
	require.NoError(t, err)
	require.EqualValues(t, 1, b.srv.Stats().Closed["lost"])
}

func TestALostConnectionLosesNothing(t *testing.T) {
	t.Parallel()
	b := serve(t, edge.Config{RejoinWithin: 20 * time.Millisecond})
	c := b.dial()
	m := robot("m", "c")
	r := b.give(m)
	c.read()
	_ = c.ws.Close()
	_, err := r.wait()
	require.ErrorContains(t, err, "connection ended")
	require.Equal(t, router.ReasonNetwork, router.ReasonOf(err))
	next := b.dial()
	r = b.give(m)
	next.ok(next.read())
	_, err = r.wait()
	require.NoError(t, err)
}

func TestTheCallersContextEndsTheWait(t *testing.T) {
	t.Parallel()
	b := serve(t, edge.Config{})
	c := b.dial()
	ctx, cancel := context.WithCancel(t.Context())
	r := b.giveTo(ctx, "one", robot("m", "c"))
	c.read()
	cancel()
	_, err := r.wait()
	require.ErrorIs(t, err, context.Canceled)
}

func TestConversationsStayOnTheirConnectionAndLoadIsShared(t *testing.T) {
	t.Parallel()
	b := serve(t, edge.Config{})
	homes := make(chan [2]string, 1000)
	for range 2 {
		c := b.dial()
		go func() {
			for {
				f, err := c.next()
				if err != nil {
					return
				}
				var m struct{ MsgID string }
				_ = json.Unmarshal([]byte(f.Data), &m)
				homes <- [2]string{m.MsgID, f.Headers["connectionId"]}
				c.ok(f)
			}
		}()
	}
	where, load := map[string]string{}, map[string]int{}
	for round := range 3 {
		for i := range 20 {
			id := fmt.Sprint(i)
			_, err := b.give(robot(id, id)).wait()
			require.NoError(t, err)
			h := <-homes
			require.Equal(t, id, h[0])
			if round == 0 {
				where[id] = h[1]
				load[h[1]]++
			}
			require.Equal(t, where[id], h[1], "round %d", round)
		}
	}
	require.Len(t, load, 2)
	for _, n := range load {
		require.Equal(t, 10, n)
	}
}

func TestOnlyAnswersOfTheConsumerCount(t *testing.T) {
	t.Parallel()
	b := serve(t, edge.Config{AckWithin: 300 * time.Millisecond})
	c, other := b.dial(), b.dialAs("client-two", secretOfTwo)
	c.answer("early", 200, "")
	other.answer("", 200, "")
	b.counts(2, func(s edge.Stats) int64 { return s.Strays["unknown_id"] })
	r := b.give(robot("m", "c"))
	f := c.read()
	other.ok(f)
	b.counts(3, func(s edge.Stats) int64 { return s.Strays["unknown_id"] })
	_, err := r.wait()
	require.ErrorContains(t, err, "in time")
}

func TestAStopAsksEverybodyToLeave(t *testing.T) {
	t.Parallel()
	b := serve(t, edge.Config{})
	c := b.dial()
	began := time.Now()
	b.stop()
	require.Less(t, time.Since(began), 5*time.Second)
	f := c.read()
	require.Equal(t, "SYSTEM", f.Type)
	require.Equal(t, "disconnect", f.Headers["topic"])
	require.Equal(t, 1012, c.ended())
	require.EqualValues(t, 1, b.srv.Stats().Closed["stopping"])
	require.ErrorIs(t, b.srv.Run(t.Context()), edge.ErrRan)
	_, err := b.give(robot("m", "c")).wait()
	require.True(t, router.IsUnreached(err))
}

func TestReloadRetiresWhatIsNotWanted(t *testing.T) {
	t.Parallel()
	b := serve(t, edge.Config{PingEvery: 20 * time.Millisecond})
	c, other := b.dial(), b.dialAs("client-two", secretOfTwo)
	r := b.give(robot("m", "c"))
	f := c.read()
	list := consumers()
	list[0].ClientSecret = "SENTINEL-changed"
	list = append(list, edge.Consumer{Name: "three", ClientID: "client-three", ClientSecret: "x"})
	require.NoError(t, b.srv.Reload(list))
	status, _ := b.post(b.openURL(), credentials("client-one", secretOfOne))
	require.Equal(t, 401, status)

	next := b.dialAs("client-one", "SENTINEL-changed")
	r2 := b.give(robot("m2", "c2"))
	next.ok(next.read())
	_, err := r2.wait()
	require.NoError(t, err, "the new connection gets what is new")
	require.True(t, r.pending(), "the old one may answer")
	c.ok(f)
	_, err = r.wait()
	require.NoError(t, err)
	require.Equal(t, "disconnect", c.read().Headers["topic"], "asked to leave once it owes nothing")
	b.dialAs("client-three", "x")

	r = b.giveTo(t.Context(), "two", robot("m", "c"))
	other.ok(other.read())
	_, err = r.wait()
	require.NoError(t, err, "the others do not notice")
	require.NoError(t, b.srv.Reload(list[:1]))
	require.Equal(t, "disconnect", other.read().Headers["topic"])
	_, err = b.giveTo(t.Context(), "two", robot("m", "c")).wait()
	require.True(t, router.IsUnreached(err))

	list[0].Name = ""
	require.ErrorContains(t, b.srv.Reload(list), "Consumers[0].Name")
}

func TestConfigIsRefusedByField(t *testing.T) {
	t.Parallel()
	for field, change := range map[string]func(*edge.Config){
		"Outbox":          func(c *edge.Config) { c.Outbox = nil },
		"MaxConnections":  func(c *edge.Config) { c.MaxConnections = -1 },
		"MaxFrame":        func(c *edge.Config) { c.MaxFrame = -1 },
		"AckWithin":       func(c *edge.Config) { c.AckWithin = -1 },
		"PingEvery":       func(c *edge.Config) { c.PingEvery = -1 },
		"CertFile":        func(c *edge.Config) { c.CertFile = "x" },
		"PublicURL":       func(c *edge.Config) { c.PublicURL = "ftp://x" },
		"PublicURL: ":     func(c *edge.Config) { c.PublicURL = `https://x/a"b` },
		".MaxInFlight":    func(c *edge.Config) { c.Consumers[0].MaxInFlight = -1 },
		"[1].Name":        func(c *edge.Config) { c.Consumers[1].Name = "one" },
		"[0].ClientID":    func(c *edge.Config) { c.Consumers[0].ClientID = "" },
		"[1].ClientID":    func(c *edge.Config) { c.Consumers[1].ClientID = "client-one" },
		"ClientSecret":    func(c *edge.Config) { c.Consumers[0].ClientSecret = "" },
		".MaxConnections": func(c *edge.Config) { c.Consumers[0].MaxConnections = -1 },
	} {
		cfg := edge.Config{Outbox: &outbox{}, Consumers: consumers()}
		change(&cfg)
		_, err := edge.New(cfg)
		require.ErrorContains(t, err, field)
		require.NotContains(t, err.Error(), "SENTINEL")
	}
	srv, err := edge.New(edge.Config{Outbox: &outbox{}, Listen: "256.0.0.1:x"})
	require.NoError(t, err)
	require.Error(t, srv.Run(t.Context()))
}
