package payload_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/penstock-io/penstock/integrations/dingtalk/internal/payload"
	"github.com/penstock-io/penstock/message"
)

// robot reads a robot message of the given members.
func robot(t *testing.T, members string) *message.Inbound {
	f := payload.Frame{
		Type: payload.TypeCallback, Topic: payload.TopicRobot, MessageID: "frame1",
		Data: `{"conversationId":"cid1","msgId":"m1",` + members + `}`,
	}
	m, defect := payload.Inbound(&f, "main", now)
	require.Empty(t, defect)
	require.Equal(t, message.KindMessage, m.Kind)
	return m
}

func image(code, alt string) message.Media {
	return message.Media{Kind: message.TypeImage, Code: code, AltCode: alt}
}

func TestBodies(t *testing.T) {
	for members, want := range map[string]struct {
		kind  message.Type
		text  string
		media []message.Media
	}{
		`"msgtype":"text","text":{"content":" kept "}`:       {message.TypeText, " kept ", nil},
		`"msgtype":"text","text":"plain"`:                    {message.TypeText, "plain", nil},
		`"msgtype":"text","text":{"content":42}`:             {message.TypeText, "42", nil},
		`"msgtype":"text","text":{"content":["a"]}`:          {message.TypeText, "", nil},
		`"msgtype":"text","text":null`:                       {message.TypeText, "", nil},
		`"msgtype":"text","text":{"content":"a\nb 数\u6570"}`: {message.TypeText, "a\nb 数数", nil},
		`"text":{"content":"no type"}`:                       {message.TypeText, "no type", nil},
		`"msgtype":7,"text":{"content":"odd type"}`:          {message.TypeUnknown, "odd type", nil},
		`"msgtype":"reply","text":{"content":"old client"}`:  {message.TypeUnknown, "old client", nil},
		`"isAdmin":true`: {message.TypeUnknown, "", nil},
		`"msgtype":"text","text":{"content":"1"},"text":{"content":"2"}`: {
			message.TypeText, "2", nil,
		},
		`"msgtype":"markdown","text":{"content":"*here*"}`: {
			message.TypeMarkdown, "*here*", nil,
		},
		`"msgtype":"markdown","content":"{\"text\":\"*x*\"}"`: {
			message.TypeMarkdown, "*x*", nil,
		},
		`"msgtype":"markdown","content":{"text":"*y*"},"text":{"content":""}`: {
			message.TypeMarkdown, "*y*", nil,
		},
		`"msgtype":"picture","content":{"downloadCode":"d","pictureDownloadCode":"p"}`: {
			message.TypeImage, "", []message.Media{image("d", "p")},
		},
		`"msgtype":"picture","content":"{\"pictureDownloadCode\":\"p\"}"`: {
			message.TypeImage, "", []message.Media{image("p", "")},
		},
		`"msgtype":"picture","content":{}`:   {message.TypeImage, "", nil},
		`"msgtype":"picture","content":"{["`: {message.TypeImage, "", nil},
		`"msgtype":"richText","content":{"richText":[{"text":"a"},3,"x",[],
			{"type":"at","atName":"Bo","atUserId":"u2"},
			{"msgType":"picture","downloadCode":"d"},
			{"type":"skill","downloadCode":"no"},
			{"text":"b","type":"new"}]}`: {
			message.TypeRich, "a@Bob", []message.Media{image("d", "")},
		},
		`"content":{"richText":[{"text":"no type"}]}`:       {message.TypeRich, "no type", nil},
		`"msgtype":"richText","content":{"richText":"odd"}`: {message.TypeRich, "", nil},
		`"msgtype":"richText","content":{"richText":[{"type":"video","downloadCode":"v"}]}`: {
			message.TypeRich, "", []message.Media{{Kind: message.TypeVideo, Code: "v"}},
		},
		`"msgtype":"chatRecord","content":{"summary":"s","chatRecord":[
			{"senderNick":"A","msgType":"text","content":"hi"},
			{"senderNick":"B","msgType":"text","content":{"text":"inner"}},
			{"msgType":"text","content":"{\"user\":\"json\"}"},
			{"msgType":"picture","downloadCode":"d"},
			{"senderNick":"C","msgType":"audio","downloadCode":"a","recognition":"said"},
			{"msgType":"unknownMsgType"},null,
			{"senderNick":"D","msgType":"chatRecord","content":{"summary":"inside","chatRecord":"[]"}}]}`: {
			message.TypeRecord, "A: hi\nB: inner\n{\"user\":\"json\"}\nC: said\nD: inside",
			[]message.Media{image("d", ""), {Kind: message.TypeAudio, Code: "a"}},
		},
		`"msgtype":"chatRecord","content":{"summary":"s","chatRecord":"broken["}`: {
			message.TypeRecord, "s", nil,
		},
		`"msgtype":"chatRecord","content":{"title":"t"}`: {
			message.TypeRecord, "t", nil,
		},
		`"msgtype":"interactiveCard","content":{"cardContent":"{\"children\":[{\"value\":\"v\"}]}"}`: {
			message.TypeCard, "v", nil,
		},
		`"msgtype":"interactiveCard","content":{"cardContent":[{"value":"one"},
			{"elementType":"RICHTEXT","children":[{"value":"a"},{"value":"b"}]},{"value":"two"}]}`: {
			message.TypeCard, "one\nab\ntwo", nil,
		},
		`"msgtype":"actionCard","content":{"title":"T","markdown":"M","hidden":"no"}`: {
			message.TypeCard, "T\nM", nil,
		},
	} {
		m := robot(t, members)
		require.Equal(t, want.kind, m.Type, members)
		require.Equal(t, want.text, m.Text, members)
		require.Equal(t, want.media, m.Media, members)
		require.False(t, m.Unreadable, members)
	}
}

func TestTextOfAGroup(t *testing.T) {
	const group = `"conversationType":"2","msgtype":"text","text":{"content":"%s"}`
	for content, want := range map[string]string{
		`  hi `: "hi ", `\n/cmd x`: "/cmd x", ` \u00a0hi`: "hi", ` @bot hi`: "@bot hi", `   `: "",
		`a  b`: "a  b",
	} {
		require.Equal(t, want, robot(t, fmt.Sprintf(group, content)).Text)
	}
}

func TestMentions(t *testing.T) {
	m := robot(t, `"chatbotUserId":"bot","atUsers":[
		{"dingtalkId":"bot"},{"dingtalkId":"x","staffId":"s1"},{"dingtalkId":"out"},{},7,null,
		{"staffId":"s2"}]`)
	require.True(t, m.MentionsBot)
	require.Equal(t, []message.UserID{"s1", "out", "s2"}, m.Mentions)
	require.Equal(t, message.ChatGroup, m.Conversation.Type, "only a group has mentions")
	require.True(t, robot(t, `"isInAtList":"true"`).MentionsBot)
	require.False(t, robot(t, `"atUsers":[{"dingtalkId":""}],"chatbotUserId":""`).MentionsBot)

	const card = `"msgtype":"interactiveCard","conversationType":2,
		"chatbotUserId":"bot","atUsers":[%s],
		"content":{"cardContent":[{"value":"@Somebody"},{"value":"do it"}]}`
	require.Equal(t, "do it", robot(t, fmt.Sprintf(card, `{"dingtalkId":"bot"}`)).Text)
	require.Equal(t, "@Somebody\ndo it",
		robot(t, fmt.Sprintf(card, `{"dingtalkId":"bot"},{"dingtalkId":"x"}`)).Text,
		"the mention may be the other's")
}

func TestChatTypes(t *testing.T) {
	for members, want := range map[string]message.ChatType{
		`"conversationType":"1"`: message.ChatDirect, `"conversationType":1`: message.ChatDirect,
		`"conversationType":"2"`: message.ChatGroup, `"conversationType":2`: message.ChatGroup,
		`"conversationTitle":"T"`: message.ChatGroup, `"conversationType":"9"`: message.ChatDirect,
	} {
		require.Equal(t, want, robot(t, members).Conversation.Type, members)
	}
}

func TestQuotes(t *testing.T) {
	for members, want := range map[string]*message.Quote{
		`"text":{"content":"x"}`:                           nil,
		`"originalMsgId":"o1"`:                             {ID: "o1"},
		`"text":{"repliedMsg":"odd"},"originalMsgId":"o1"`: {ID: "o1"},
		`"text":{"repliedMsg":{"msgType":"text","content":{"content":"other key"}}}`: {
			Type: "text", Text: "other key",
		},
		`"text":{"repliedMsg":{"msgType":"text","content":"not a document"}}`: {
			Type: "text", Text: "not a document",
		},
		`"text":{"repliedMsg":{"content":{"text":"untyped"}}},"originalMsgId":"o2"`: {
			ID: "o2", Type: "unknown",
		},
		`"text":{"repliedMsg":"{\"msgType\":\"text\",\"content\":{\"text\":\"str\"}}"}`: {
			Type: "text", Text: "str",
		},
		`"content":{"repliedMsg":{"msgType":"file","content":{"fileName":"f","downloadCode":"d"}}}`: {
			Type: "file", Media: []message.Media{{Kind: "file", Code: "d", Name: "f"}},
		},
		`"quoteMessage":{"msgId":"q","msgtype":"text","text":{"content":" as is "},"senderId":"s"}`: {
			ID: "q", Type: "text", Text: " as is ", Sender: "s",
		},
	} {
		require.Equal(t, want, robot(t, members).Quote, members)
	}
}

func TestTimesAndDurations(t *testing.T) {
	at := time.UnixMilli(1785000000000).UTC()
	for members, want := range map[string]time.Time{
		`"createAt":1785000000000`: at, `"createAt":"1785000000000"`: at, `"createA":1785000000000`: at,
		`"createAt":1.785e12`: at, `"createAt":-5`: {}, `"createAt":0`: {}, `"createAt":9e18`: {},
		`"createAt":"soon"`:          {},
		`"createAt":253402300800000`: {}, `"createAt":null`: {}, `"createAt":1e400`: {},
	} {
		require.Equal(t, want, robot(t, members).SentAt, members)
	}
	const media = `"msgtype":"%s","content":{"downloadCode":"d","duration":%s}`
	for _, row := range []struct {
		kind, duration string
		want           time.Duration
	}{
		{"audio", `4000`, 4 * time.Second},
		{"audio", `"4000"`, 4 * time.Second},
		{"audio", `"12"`, 12 * time.Millisecond},
		{"video", `4000`, 4 * time.Second},
		{"video", `"4000"`, 4 * time.Second},
		{"video", `"4"`, 4 * time.Second},
		{"video", `"4.5"`, 4500 * time.Millisecond},
		{"video", `12`, 12 * time.Millisecond},
		{"video", `-1`, 0},
		{"video", `"-1"`, 0},
		{"video", `1e300`, 0},
		{"video", `null`, 0},
		{"video", `"long"`, 0},
	} {
		m := robot(t, fmt.Sprintf(media, row.kind, row.duration))
		require.Equal(t, row.want, m.Media[0].Duration, "%s %s", row.kind, row.duration)
	}
}

func TestOverQuota(t *testing.T) {
	for members, want := range map[string]struct {
		code       string
		unreadable bool
	}{
		`"msgtype":"text","errorCode":20001`:                            {"20001", true},
		`"msgtype":"text","errCode":"20001"`:                            {"20001", true},
		`"msgtype":"text","errorCode":20001,"text":null`:                {"20001", true},
		`"msgtype":"text","errorCode":20001,"text":{"content":"still"}`: {"20001", false},
		`"msgtype":"text","errorCode":0`:                                {"", false},
		`"msgtype":"text","errorCode":null`:                             {"", false},
	} {
		m := robot(t, members)
		require.Equal(t, want.code, m.PlatformError, members)
		require.Equal(t, want.unreadable, m.Unreadable, members)
	}
}

func TestHostileCardsAreCutShort(t *testing.T) {
	const card = `"msgtype":"interactiveCard","content":{"cardContent":%s}`
	deep := strings.Repeat(`{"children":[`, 300) + `{"value":"too deep"}` + strings.Repeat(`]}`, 300)
	require.Empty(t, robot(t, fmt.Sprintf(card, deep)).Text)
	require.Equal(t, "top", robot(t, fmt.Sprintf(card, `[{"value":"top"},`+deep+`]`)).Text)
	many := `[` + strings.Repeat(`{"value":"x"},`, 5000) + `{}]`
	require.Equal(t, 512, strings.Count(robot(t, fmt.Sprintf(card, many)).Text, "x"))
	huge := strconv.Quote(strings.Repeat("x", 300<<10))
	require.Empty(t, robot(t, fmt.Sprintf(card, `[{"value":`+huge+`}]`)).Text)
}

func TestDefects(t *testing.T) {
	deep := strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000)
	for data, want := range map[string]string{
		``: payload.DefectEmpty, `{`: payload.DefectNotJSON, `{"a":1}x`: payload.DefectNotJSON,
		`[1]`: payload.DefectNotObject, `"x"`: payload.DefectNotObject, `null`: payload.DefectNotObject,
		`{"conversationId":"c","x":` + deep + `}`: payload.DefectTooDeep, deep: payload.DefectTooDeep,
	} {
		for _, topic := range []string{
			payload.TopicRobot, payload.TopicDelegate, payload.TopicCard, payload.TopicDynamic,
			payload.TopicPlugin,
		} {
			f := payload.Frame{Type: payload.TypeCallback, Topic: topic, MessageID: "f1", Data: data}
			checkDefect(t, f, want)
		}
		checkDefect(t, payload.Frame{Type: payload.TypeEvent, MessageID: "f1", Data: data}, want)
	}
	checkDefect(t, payload.Frame{
		Type: payload.TypeCallback, Topic: payload.TopicRobot, MessageID: "f1", Data: `{}`,
	}, payload.DefectNoConversation)
}

func checkDefect(t *testing.T, f payload.Frame, want string) {
	m, defect := payload.Inbound(&f, "main", now)
	require.Equal(t, want, defect, f.Topic)
	kind, known := payload.KindOf(&f)
	require.True(t, known)
	require.Equal(t, kind, m.Kind)
	require.Equal(t, f.Data, string(m.Raw))
	require.Equal(t, message.ID("f1"), m.ID)
	require.Equal(t, message.FrameID("f1"), m.FrameID)
}

func TestKindOf(t *testing.T) {
	for _, f := range []payload.Frame{
		{Type: payload.TypeSystem, Topic: payload.TopicPing},
		{Type: payload.TypeCallback, Topic: "/v1.0/other"},
		{Type: "NOTICE", Topic: payload.TopicRobot},
		{},
	} {
		_, known := payload.KindOf(&f)
		require.False(t, known, f)
		_, defect := payload.Inbound(&f, "main", now)
		require.Equal(t, payload.DefectUnknownTopic, defect)
	}
}

func TestEventIDs(t *testing.T) {
	id := func(f payload.Frame) message.ID {
		f.Type = payload.TypeEvent
		m, defect := payload.Inbound(&f, "main", now)
		require.Empty(t, defect)
		return m.ID
	}
	base := payload.Frame{EventType: "a", BornTime: 5, Data: `{"x":1}`, MessageID: "f1"}
	again, later, other, changed := base, base, base, base
	again.MessageID, later.BornTime, other.EventType, changed.Data = "f2", 6, "b", `{"x":2}`
	require.Equal(t, id(base), id(again), "a second push has another frame id")
	require.NotContains(t, []message.ID{id(later), id(other), id(changed)}, id(base))
	require.Equal(t, message.ID("e1"), id(payload.Frame{EventID: "e1", Data: `{}`, MessageID: "f1"}))
	require.Equal(t, message.ID("f1"), id(payload.Frame{Data: `{}`, MessageID: "f1"}))
	require.Empty(t, id(payload.Frame{Data: `{}`}), "equal content is not the same event")
}

func TestEventTime(t *testing.T) {
	for data, want := range map[string]int64{
		`{"timeStamp":"1785000000000"}`: 1785000000000, `{"timestamp":1785000000001}`: 1785000000001,
		`{}`: 7,
	} {
		f := payload.Frame{Type: payload.TypeEvent, SentAt: 7, Data: data}
		m, _ := payload.Inbound(&f, "main", now)
		require.Equal(t, time.UnixMilli(want).UTC(), m.SentAt)
	}
}

func TestCardsWithoutIDsAreNotOneConversation(t *testing.T) {
	ids := map[message.ConversationID]bool{}
	for _, topic := range []string{payload.TopicCard, payload.TopicPlugin} {
		for _, frameID := range []string{"f1", "f2"} {
			f := payload.Frame{Type: payload.TypeCallback, Topic: topic, MessageID: frameID, Data: `{}`}
			m, defect := payload.Inbound(&f, "main", now)
			require.Empty(t, defect)
			require.True(t, m.Synchronous())
			ids[m.Conversation.ID] = true
		}
	}
	require.Len(t, ids, 4)
}

func TestCardOfAUnionID(t *testing.T) {
	f := payload.Frame{
		Type: payload.TypeCallback, Topic: payload.TopicCard,
		Data: `{"outTrackId":"t","userId":"u","userIdType":"2",
			"content":{"cardPrivateData":{"actionIds":["a",2,"",null]}}}`,
	}
	m, defect := payload.Inbound(&f, "main", now)
	require.Empty(t, defect)
	require.Equal(t, message.Sender{ID: "u", UnionID: "u"}, m.Sender)
	require.Equal(t, "a,2", m.Text)
}

func TestReplyAddressIsHidden(t *testing.T) {
	r := payload.ReplyAddress(robot(t, `"sessionWebhook":"https://example.invalid/?session=hidden"`))
	require.Equal(t, "https://example.invalid/?session=hidden", r.Webhook)
	var log bytes.Buffer
	slog.New(slog.NewJSONHandler(&log, nil)).Info("reply", "to", r)
	plus, sharp := fmt.Sprintf("%+v", r), fmt.Sprintf("%#v", r)
	for _, shown := range []string{fmt.Sprint(r), plus, sharp, log.String()} {
		require.NotContains(t, shown, "hidden")
		require.Contains(t, shown, "[reply address]")
	}
}

func TestDisconnectReason(t *testing.T) {
	for data, want := range map[string]string{
		`{"reason":"connection is expired"}`: "connection is expired", `{"reason":7}`: "7", `{}`: "",
		``: "", `x`: "",
		`[]`: "", `{"reason":{"a":1}}`: "", `{"reason":"first"`: "first",
	} {
		require.Equal(t, want, payload.DisconnectReason(data), data)
	}
	long := payload.DisconnectReason(`{"reason":"` + strings.Repeat("数", 1000) + `"}`)
	require.True(t, utf8.ValidString(long))
	require.Equal(t, strings.Repeat("数", 66), long)
}
