package openapi

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/penstock-io/penstock/message"
)

func addressOf(t *testing.T, m *message.Inbound) Target {
	addr, err := newSender(t, 0).Address(m)
	require.NoError(t, err)
	var to Target
	require.NoError(t, json.Unmarshal(addr, &to))
	return to
}

func TestAddressOfAMessage(t *testing.T) {
	got := addressOf(t, &message.Inbound{
		Kind: message.KindMessage, RobotCode: "robot01",
		Conversation: message.Conversation{ID: "cid/+=", Type: message.ChatDirect},
		Sender:       message.Sender{ID: "$:LWCP_v1:$x", StaffID: "staff1"},
		Raw: `{"sessionWebhook":"https://oapi.dingtalk.com/robot/sendBySession?session=a&b=<c>",` +
			`"sessionWebhookExpiredTime":"1767231000000","robotCode":"robot01"}`,
	})
	require.Equal(t, Target{
		Webhook: "https://oapi.dingtalk.com/robot/sendBySession?session=a&b=<c>",
		Expires: 1767231000000, RobotCode: "robot01", Conversation: "cid/+=",
		Direct: true, StaffID: "staff1",
	}, got)
}

func TestAddressOfACard(t *testing.T) {
	press := func(userType, space string, who message.Sender) *message.Inbound {
		return &message.Inbound{
			Kind: message.KindCard, Sender: who,
			Conversation: message.Conversation{ID: "card:track1", Type: message.ChatNone},
			Raw: message.Raw(fmt.Sprintf(
				`{"outTrackId":"track1","userId":%q,"userIdType":%s,"spaceId":%q,"spaceType":"im"}`,
				who.ID, userType, space)),
		}
	}
	staff := message.Sender{ID: "staff1", StaffID: "staff1"}
	require.Equal(t,
		Target{Card: "track1", User: "staff1", UserType: 1, Conversation: "cid1", StaffID: "staff1"},
		addressOf(t, press("1", "cid1", staff)))
	require.Equal(t,
		Target{Card: "track1", User: "union1", UserType: 2, Conversation: "cid1"},
		addressOf(t, press("2", "cid1", message.Sender{ID: "union1", UnionID: "union1"})))
	got := addressOf(t, press("1", "staff1", staff))
	require.True(t, got.Direct)
	require.Equal(t, message.UserID("staff1"), got.StaffID)
}

func TestEventHasNoAddress(t *testing.T) {
	_, err := newSender(t, 0).Address(&message.Inbound{ID: "e1", Kind: message.KindEvent, Raw: `{}`})
	require.ErrorIs(t, err, ErrNoAddress)
	require.ErrorContains(t, err, "e1")
}

func TestAddressDoesNotPrint(t *testing.T) {
	to := Target{Webhook: "SENTINEL-C"}
	require.NotContains(t, fmt.Sprintf("%v %+v %#v %s", to, to, to, to), "SENTINEL")
	cfg := Config{ClientID: "id", ClientSecret: "SENTINEL-A"}
	require.NotContains(t, fmt.Sprintf("%v %+v %#v %s", cfg, cfg, cfg, cfg), "SENTINEL")
}

func FuzzTarget(f *testing.F) {
	f.Add([]byte(`{"webhook":"https://oapi.dingtalk.com/x","expires":1,"direct":true}`))
	f.Add([]byte(`[]`))
	s, err := New(Config{ClientID: "id", ClientSecret: "secret"})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		to, err := s.target(&message.Outbound{Target: b})
		if err != nil {
			return
		}
		if again, err := to.Encode(); err != nil || !json.Valid(again) {
			t.Fatalf("%s cannot be stored again: %v", again, err)
		}
		_ = s.hook(&to)
	})
}
