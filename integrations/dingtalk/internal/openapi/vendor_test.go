package openapi

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/penstock-io/penstock/message"
)

// vendor is a reply in the platform's own form.
func vendor(t *testing.T, to Target, body string) message.Outbound {
	t.Helper()
	o := text(t, to, "")
	o.Format, o.Card = message.FormatVendor, json.RawMessage(body)
	return o
}

func TestVendorBodyLeavesAsItIs(t *testing.T) {
	p := newPlatform(t)
	s := p.sender(t)
	body := `{"msgtype":"feedCard", "feedCard":{"links":[{"title":"a <b>"}]} }`
	o := vendor(t, p.group(), body)
	require.Equal(t, []message.Outbound{o}, func() []message.Outbound {
		parts := s.Split(o)
		parts[0].Part, parts[0].Parts, parts[0].Group = o.Part, o.Parts, o.Group
		return parts
	}())
	r, err := s.Send(t.Context(), o)
	require.NoError(t, err)
	require.Equal(t, "webhook", r.Route)
	require.Equal(t, body, p.requests(pathHook)[0].body)
}

func TestVendorBodyThatIsNoMessageIsRefused(t *testing.T) {
	p := newPlatform(t)
	for _, body := range []string{``, `[]`, `{}`, `{"msgtype":1}`, `{"msgtype":""}`, `x`} {
		_, err := p.sender(t).Send(t.Context(), vendor(t, p.group(), body))
		se := failed(t, err)
		require.Equal(t, message.NextNever, se.Next, body)
		require.Equal(t, "bad_body", se.Code, body)
	}
	require.Empty(t, p.requests(""))
}

func TestVendorBodyOverTheRobotAPI(t *testing.T) {
	button := func(n int) string {
		return strings.TrimSuffix(strings.Repeat(`{"title":"b","actionURL":"u"},`, n), ",")
	}
	card := func(fields string) string {
		return `{"msgtype":"actionCard","actionCard":{"title":"t","text":"x",` + fields + `}}`
	}
	for name, c := range map[string]struct{ body, key, param string }{
		"text": {`{"msgtype":"text","text":{"content":"a"}}`, "sampleText", `{"content":"a"}`},
		"markdown": {
			`{"msgtype":"markdown","markdown":{"title":"t","text":"x"}}`,
			"sampleMarkdown", `{"title":"t","text":"x"}`,
		},
		"link": {
			`{"msgtype":"link","link":{"title":"t","text":"x","messageUrl":"m","picUrl":"p"}}`,
			"sampleLink", `{"text":"x","title":"t","picUrl":"p","messageUrl":"m"}`,
		},
		"single": {
			card(`"singleTitle":"s","singleURL":"u"`),
			"sampleActionCard", `{"title":"t","text":"x","singleTitle":"s","singleURL":"u"}`,
		},
		"one button": {
			card(`"btns":[` + button(1) + `]`),
			"sampleActionCard", `{"title":"t","text":"x","singleTitle":"b","singleURL":"u"}`,
		},
		"two": {
			card(`"btnOrientation":"0","btns":[` + button(2) + `]`), "sampleActionCard2",
			`{"title":"t","text":"x","actionTitle1":"b","actionURL1":"u","actionTitle2":"b","actionURL2":"u"}`,
		},
		"side by side": {
			card(`"btnOrientation":"1","btns":[` + button(2) + `]`), "sampleActionCard6",
			`{"title":"t","text":"x","buttonTitle1":"b","buttonUrl1":"u","buttonTitle2":"b","buttonUrl2":"u"}`,
		},
		"five": {
			card(`"btnOrientation":1,"btns":[` + button(5) + `]`), "sampleActionCard5",
			`{"title":"t","text":"x","actionTitle1":"b","actionURL1":"u","actionTitle2":"b",` +
				`"actionURL2":"u","actionTitle3":"b","actionURL3":"u","actionTitle4":"b",` +
				`"actionURL4":"u","actionTitle5":"b","actionURL5":"u"}`,
		},
		"six":      {card(`"btns":[` + button(6) + `]`), "", "too_many_buttons"},
		"none":     {card(`"btns":[]`), "", "too_many_buttons"},
		"feedCard": {`{"msgtype":"feedCard","feedCard":{}}`, "", "feed_card_needs_webhook"},
		"unknown":  {`{"msgtype":"poem"}`, "", "unknown_type"},
		"misshapen": {
			`{"msgtype":"actionCard","actionCard":{"btns":7}}`, "", "bad_body",
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlatform(t)
			to := p.group()
			to.Webhook = ""
			r, err := p.sender(t).Send(t.Context(), vendor(t, to, c.body))
			if c.key == "" {
				se := failed(t, err)
				require.Equal(t, message.NextNever, se.Next)
				require.Equal(t, c.param, se.Code)
				return
			}
			require.NoError(t, err)
			require.Equal(t, "group", r.Route)
			got := jsonOf(t, p.requests(pathGroup)[0].body)
			require.Equal(t, c.key, got["msgKey"])
			require.Equal(t, c.param, got["msgParam"])
		})
	}
}
