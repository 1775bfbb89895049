package router_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/penstock-io/penstock/message"
	"github.com/penstock-io/penstock/router"
)

// The test vector that the Standard Webhooks libraries share; openssl gives the
// same signature.
const (
	vectorSecret    = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	vectorID        = "msg_p5jXN8AQM9LWM0D4loKWxJek"
	vectorTime      = 1614265330
	vectorBody      = `{"test": 2432232314}`
	vectorSignature = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
)

func TestSignVector(t *testing.T) {
	key, err := router.SigningKey(vectorSecret)
	require.NoError(t, err)
	require.Equal(t, vectorSignature,
		router.Sign([][]byte{key}, vectorID, vectorTime, []byte(vectorBody)))

	both := router.Sign([][]byte{[]byte("new"), key}, vectorID, vectorTime, []byte(vectorBody))
	require.Equal(t, vectorSignature, strings.Fields(both)[1])
	require.NotEqual(t, vectorSignature, strings.Fields(both)[0])
}

func TestVerifySnippet(t *testing.T) {
	key, err := router.SigningKey(vectorSecret)
	require.NoError(t, err)
	now := time.Unix(vectorTime, 0)
	h := http.Header{}
	h.Set("webhook-id", vectorID)
	h.Set("webhook-timestamp", "1614265330")
	h.Set("webhook-signature", "v1,bm9uZQ== "+vectorSignature)
	require.True(t, verify(key, h, []byte(vectorBody), now))
	require.False(t, verify(key, h, []byte(vectorBody+" "), now))
	require.False(t, verify([]byte("other"), h, []byte(vectorBody), now))
	require.False(t, verify(key, h, []byte(vectorBody), now.Add(6*time.Minute)))
	h.Set("webhook-timestamp", "1614265331")
	require.False(t, verify(key, h, []byte(vectorBody), now))
}

func TestSigningKey(t *testing.T) {
	for secret, want := range map[string]string{
		"whsec_aGVsbG8=": "hello", "whsec_aGVsbG8": "hello", "plain text": "plain text",
	} {
		key, err := router.SigningKey(secret)
		require.NoError(t, err)
		require.Equal(t, want, string(key))
	}
	for _, secret := range []string{"", "whsec_", "whsec_not base64!"} {
		_, err := router.SigningKey(secret)
		require.Error(t, err)
		require.NotContains(t, err.Error(), "not base64!")
	}
}

func TestDeliveryID(t *testing.T) {
	m := text("x")
	m.Installation, m.ID = "support.bot", "msg+/a=="
	require.Equal(t, "support%2Ebot:msg%2B%2Fa%3D%3D", router.DeliveryID(m))
	m.ID = message.ID(strings.Repeat("x", 200))
	long := router.DeliveryID(m)
	require.True(t, strings.HasPrefix(long, "sha256::"))
	m.Attempt, m.FrameID = 7, "another"
	require.Equal(t, long, router.DeliveryID(m), "it is the same at every try")
}

// What joins the two ids does not let one run into the other.
func TestDeliveryIDKeepsItsPartsApart(t *testing.T) {
	a, b := text(""), text("")
	a.Installation, a.ID = "bot:", "1"
	b.Installation, b.ID = "bot", ":1"
	require.NotEqual(t, router.DeliveryID(a), router.DeliveryID(b))
}

func TestDeliveryIDProperties(t *testing.T) {
	part := rapid.OneOf(rapid.String(), rapid.StringMatching(`[a:%.]{0,3}`), rapid.StringN(0, 300, -1))
	rapid.Check(t, func(t *rapid.T) {
		a, b := text(""), text("")
		a.Installation = message.InstallationID(part.Draw(t, "installation a"))
		a.ID = message.ID(part.Draw(t, "id a"))
		b.Installation = message.InstallationID(part.Draw(t, "installation b"))
		b.ID = message.ID(part.Draw(t, "id b"))
		id := router.DeliveryID(a)
		require.Regexp(t, `^[A-Za-z0-9%:_-]+$`, id)
		require.LessOrEqual(t, len(id), router.MaxDeliveryID)
		same := a.Installation == b.Installation && a.ID == b.ID
		require.Equal(t, same, id == router.DeliveryID(b))
	})
}
