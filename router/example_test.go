package router_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/penstock-io/penstock/message"
	"github.com/penstock-io/penstock/router"
)

func Example() {
	greet := router.HandlerFunc(
		func(_ context.Context, m *message.Inbound) (router.Result, error) {
			hello := message.Reply{Text: "hello " + m.Sender.Name}
			return router.Result{Replies: []message.Reply{hello}}, nil
		})
	r, err := router.New([]router.Route{
		{Name: "greet", Match: router.Match{Prefix: "/hello"}, Handler: greet},
		{Name: "rest", Handler: router.Echo{}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, text := range []string{"/hello", "anyone there?"} {
		m := &message.Inbound{Text: text, Sender: message.Sender{Name: "Li Lei"}}
		res, err := r.Handle(context.Background(), m)
		fmt.Println(res.Route, res.Replies[0].Text, err)
	}
	// Output:
	// greet hello Li Lei <nil>
	// rest anyone there? <nil>
}

func ExampleError() {
	err := fmt.Errorf("look up the order: %w", &router.Error{
		After: time.Minute, Err: errors.New("the shop is closed"),
	})
	fmt.Println(err)
	fmt.Println(router.IsPermanent(err), router.RetryAfter(err), router.ReasonOf(err))
	// Output:
	// look up the order: the shop is closed
	// false 1m0s handler
}

func ExampleNewHTTP() {
	bot := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"text": "got `+r.Header.Get("webhook-id")+`"}`)
	}))
	defer bot.Close()
	h, err := router.NewHTTP(router.HTTPConfig{URL: bot.URL, Secret: "whsec_c2VjcmV0"})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = h.Close() }()
	res, err := h.Handle(context.Background(), &message.Inbound{Installation: "bot", ID: "m1"})
	fmt.Println(res.Replies[0].Text, err)
	// Output: got bot:m1 <nil>
}

func ExampleObserve() {
	count := map[string]int{}
	hook := func(_ context.Context, _ *message.Inbound, o router.Outcome) {
		count[o.Result.Route]++
	}
	r, err := router.New([]router.Route{{Name: "echo", Handler: router.Echo{}}},
		router.Observe(hook))
	if err != nil {
		fmt.Println(err)
		return
	}
	_, _ = r.Handle(context.Background(), &message.Inbound{Text: "hi"})
	fmt.Println(count)
	// Output: map[echo:1]
}
