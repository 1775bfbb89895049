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
