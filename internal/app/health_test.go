package app_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/penstock-io/penstock/internal/admin"
)

func TestHealthOfABotThatStarts(t *testing.T) {
	b := serve(t)
	bot := b.installation("one", "a", "") + b.installation("two", "b", "")
	two := func(state string) (h admin.Health) {
		t.Helper()
		require.Eventually(t, func() bool {
			h = b.app.Health()[1]
			return h.State == state && h.Code+h.Note != ""
		}, 20*time.Second, 5*time.Millisecond)
		require.False(t, h.Ready)
		return h
	}
	b.reload(b.config(strings.Replace(bot, secret+"b", "wrong", 1), echo))
	h := two("parked")
	require.Equal(t, "auth_failed", h.Code)
	require.Empty(t, h.Note)

	b.reload(b.config(bot, echo))
	h = two("starting")
	require.Empty(t, h.Code+h.Error, "they were of the credentials before")
	require.Contains(t, h.Note, "connected")

	require.Equal(t, "hi", b.ask("b", "c1", "hi", 1))
	require.True(t, b.app.Health()[1].Ready)
	require.Empty(t, b.app.Health()[1].Note)
	require.NoError(t, b.stop())
}
