package relay_test

import (
	"bytes"
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/penstock-io/penstock/message"
	"github.com/penstock-io/penstock/relay"
	"github.com/penstock-io/penstock/router"
)

func TestTheLogTellsWhyAMessageWasGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		h := &recorder{handle: func(context.Context, *message.Inbound) (router.Result, error) {
			return router.Result{}, permanent("answer cannot be used")
		}}
		k := newKit(t, relay.Config{Handler: h, Logger: slog.New(slog.NewTextHandler(&log, nil))})
		k.offer("m1", "a")
		pass(time.Second)
		k.stop(time.Second)
		require.Contains(t, log.String(), `msg="message became a dead letter"`)
		require.Contains(t, log.String(), `attempt=1 reason=permanent`)
		require.Contains(t, log.String(), `error="answer cannot be used"`)
	})
}

func TestTheLogTellsWhereAHandlerPanicked(t *testing.T) {
	explode := router.HandlerFunc(func(context.Context, *message.Inbound) (router.Result, error) {
		panic("oh")
	})
	for name, h := range map[string]router.Handler{"bare": explode, "recovered": router.Recover(explode)} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var log bytes.Buffer
				k := newKit(t, relay.Config{
					Handler: h, Attempts: 1, Logger: slog.New(slog.NewTextHandler(&log, nil)),
				})
				k.offer("m1", "a")
				pass(time.Second)
				k.stop(time.Second)
				require.Contains(t, log.String(), `msg="a handler panicked"`)
				require.Contains(t, log.String(), "letter_test.go")
			})
		})
	}
}
