package cases_test

import (
	"context"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/penstock-io/penstock/integrations/dingtalk/dingtalktest"
	"github.com/penstock-io/penstock/message"
	"github.com/penstock-io/penstock/router"
)

// playHosts lets messages come with the webhooks of the case and looks at where the
// service goes.
func playHosts(w *world) {
	w.cfg.Outbound.Attempts = 1
	w.connect()
	w.record.Do(func(context.Context, *message.Inbound) (router.Result, error) {
		return router.Result{Replies: []message.Reply{{Text: "answer"}}}, nil
	})
	for verdict, hooks := range w.c.Input.Request.Cases {
		for i, hook := range hooks {
			before := len(w.net.Dials())
			m := dingtalktest.Text(message.ConversationID(verdict+strconv.Itoa(i)), verdict)
			m.Fields = map[string]any{"sessionWebhook": hook}
			_, err := w.bot.Push(m)
			require.NoError(w.t, err)
			w.pass(time.Second)
			dialled := w.net.Dials()[before:]
			w.want(allowed(verdict, hook, dialled), "rule", "%s %s: dialled %v", verdict, hook, dialled)
		}
	}
	judge(w.c, w.findings, map[string][]checker{
		"rule": {{`exact host list.*https`, func() {}}},
	})
	w.giveUp()
}

// allowed tells whether the dials fit the verdict: to the hook's own host, or to
// nothing but the gateway.
func allowed(verdict, hook string, dialled []string) bool {
	u, err := url.Parse(hook)
	if err != nil {
		return false
	}
	if verdict == "allow" {
		return slices.Contains(dialled, u.Hostname()+":443")
	}
	return !slices.ContainsFunc(dialled, func(a string) bool { return a != "127.0.0.1:1" })
}
