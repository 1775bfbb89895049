package main

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/penstock-io/penstock/integrations/dingtalk"
	"github.com/penstock-io/penstock/integrations/dingtalk/dingtalktest"
	"github.com/penstock-io/penstock/internal/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

func TestTheBotAnswers(t *testing.T) {
	gw, err := dingtalktest.New(dingtalktest.Config{})
	require.NoError(t, err)
	require.NoError(t, gw.Listen())
	gctx, closeGateway := context.WithCancel(context.Background())
	closed := make(chan error, 1)
	go func() { closed <- gw.Run(gctx) }()

	ctx, stop := context.WithTimeout(context.Background(), time.Minute)
	ended := make(chan error, 1)
	cred := gw.App("").Credentials()
	go func() {
		ended <- serve(ctx, dingtalk.Config{
			ClientID: cred.ClientID, ClientSecret: cred.Secret,
			APIBase: gw.URL(), OAPIBase: gw.URL(), AllowInsecure: true,
		})
	}()
	require.NoError(t, gw.App("").AwaitSessions(ctx, 1))
	_, err = gw.App("").Push(dingtalktest.Text("cid1", "hello"))
	require.NoError(t, err)
	sent, err := gw.App("").AwaitSent(ctx, 1)
	require.NoError(t, err)
	require.Equal(t, "you said: hello", sent[0].Text)

	stop()
	require.NoError(t, <-ended)
	closeGateway()
	require.NoError(t, <-closed)
}
