package router_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/penstock-io/penstock/message"
	"github.com/penstock-io/penstock/router"
)

// says is a handler that replies with one text.
func says(text string) router.Handler {
	return router.HandlerFunc(func(context.Context, *message.Inbound) (router.Result, error) {
		return router.Result{Replies: []message.Reply{{Text: text}}, Route: "forged"}, nil
	})
}

// fails is a handler that returns err.
func fails(err error) router.Handler {
	return router.HandlerFunc(func(context.Context, *message.Inbound) (router.Result, error) {
		return router.Result{}, err
	})
}

func text(s string) *message.Inbound {
	return &message.Inbound{
		Schema: message.Schema, ID: "m1", Installation: "bot", Platform: "dingtalk",
		Kind: message.KindMessage, Type: message.TypeText, Text: s, Attempt: 1,
		Conversation: message.Conversation{ID: "c1", Type: message.ChatDirect},
	}
}

func TestFirstMatchWins(t *testing.T) {
	r, err := router.New([]router.Route{
		{Name: "deploy", Match: router.Match{Prefix: "/deploy"}, Handler: says("deployed")},
		{Name: "slash", Match: router.Match{Prefix: "/"}, Handler: says("command")},
		{Match: router.Match{Pattern: regexp.MustCompile(`\?$`)}, Handler: says("question")},
	})
	require.NoError(t, err)
	for in, want := range map[string][2]string{
		"/deploy now": {"deploy", "deployed"},
		"  /deploy":   {"deploy", "deployed"},
		"/Deploy":     {"slash", "command"},
		"why?":        {"route-3", "question"},
	} {
		res, err := r.Handle(t.Context(), text(in))
		require.NoError(t, err)
		require.Equal(t, want, [2]string{res.Route, res.Replies[0].Text}, "for %q", in)
	}
	res, err := r.Handle(t.Context(), text("hello"))
	require.ErrorIs(t, err, router.ErrNoRoute)
	require.Zero(t, res)
}

func TestRouteNamedBesideError(t *testing.T) {
	r, err := router.New([]router.Route{{Name: "bad", Handler: fails(errors.New("broken"))}})
	require.NoError(t, err)
	res, err := r.Handle(t.Context(), text("x"))
	require.EqualError(t, err, "broken")
	require.Equal(t, router.Result{Route: "bad"}, res)
}

func TestRouteByName(t *testing.T) {
	r, err := router.New([]router.Route{
		{Name: "deploy", Match: router.Match{Prefix: "/deploy"}, Handler: says("deployed")},
		{Handler: says("anything")},
	})
	require.NoError(t, err)
	res, err := r.Route("deploy").Handle(t.Context(), text("no command"))
	require.NoError(t, err, "what the route matches does not matter")
	require.Equal(t, "deploy", res.Route)
	require.Equal(t, "deployed", res.Replies[0].Text)
	require.NotNil(t, r.Route("route-2"))
	require.Nil(t, r.Route("none"))
}

func TestNewRefuses(t *testing.T) {
	catchAll := router.Route{Name: "all", Handler: router.Echo{}}
	prefix := router.Match{Prefix: "x"}
	for name, c := range map[string]struct {
		routes []router.Route
		want   string
	}{
		"no handler": {
			[]router.Route{{Match: prefix}},
			`route "route-1": handler: not set`,
		},
		"nil function": {
			[]router.Route{{Match: prefix, Handler: router.HandlerFunc(nil)}},
			`route "route-1": handler: not set`,
		},
		"negative timeout": {
			[]router.Route{{Match: prefix, Handler: router.Echo{}, Timeout: -1}},
			`route "route-1": timeout: -1ns is negative`,
		},
		"same name": {
			[]router.Route{
				{Name: "a", Match: prefix, Handler: router.Echo{}},
				{Name: "a", Handler: router.Echo{}},
			},
			`route "a": name: an earlier route has the same`,
		},
		"unreachable": {
			[]router.Route{catchAll, {Match: prefix, Handler: router.Echo{}}},
			`route "route-2": match: never reached, route "all" before it takes everything`,
		},
		"empty installation": {
			[]router.Route{{
				Match:   router.Match{Installations: []message.InstallationID{"a", ""}},
				Handler: router.Echo{},
			}},
			`route "route-1": match.installations: value 2 is empty`,
		},
		"empty platform": {
			[]router.Route{{
				Match: router.Match{Platforms: []message.Platform{""}}, Handler: router.Echo{},
			}},
			`route "route-1": match.platforms: value 1 is empty`,
		},
		"misspelt kind": {
			[]router.Route{{
				Match: router.Match{Kinds: []message.Kind{"mesage"}}, Handler: router.Echo{},
			}},
			`route "route-1": match.kinds: "mesage" is none of ` +
				`["message" "delegate" "card" "query" "plugin" "event"]`,
		},
		"misspelt chat": {
			[]router.Route{{
				Match: router.Match{Chats: []message.ChatType{"dm"}}, Handler: router.Echo{},
			}},
			`route "route-1": match.chats: "dm" is none of ["direct" "group" "none"]`,
		},
		"prefix with space": {
			[]router.Route{{Match: router.Match{Prefix: " /x"}, Handler: router.Echo{}}},
			`route "route-1": match.prefix: begins with white space, which no text does here`,
		},
		"two at once": {
			[]router.Route{{Name: "a"}, {Name: "b", Timeout: -1, Handler: router.Echo{}}},
			"route \"a\": handler: not set\nroute \"b\": timeout: -1ns is negative",
		},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := router.New(c.routes)
			require.EqualError(t, err, c.want)
			require.Nil(t, r)
		})
	}
}

func TestNewRefusesMiddleware(t *testing.T) {
	routes := []router.Route{{Handler: router.Echo{}}}
	_, err := router.New(routes, router.Recover, nil)
	require.EqualError(t, err, "middleware 2 is nil")
	_, err = router.New(routes, func(router.Handler) router.Handler { return nil })
	require.EqualError(t, err, `route "route-1": middleware 1 returned nil`)
}

func TestNewSharesNothing(t *testing.T) {
	yes := true
	routes := []router.Route{{
		Match:   router.Match{Platforms: []message.Platform{"dingtalk"}, Mention: &yes},
		Handler: router.Echo{},
	}}
	r, err := router.New(routes)
	require.NoError(t, err)
	routes[0].Match.Platforms[0] = "other"
	routes[0].Name = "changed"
	yes = false
	m := text("x")
	m.MentionsBot = true
	res, err := r.Handle(t.Context(), m)
	require.NoError(t, err)
	require.Equal(t, "route-1", res.Route)
}

func TestPanicIsContained(t *testing.T) {
	inner := errors.New("cause")
	for name, value := range map[string]any{
		"text": "boom", "error": inner, "long": strings.Repeat("x", 10_000), "nil func": nil,
	} {
		t.Run(name, func(t *testing.T) {
			r, err := router.New([]router.Route{{
				Name: "poison",
				Handler: router.HandlerFunc(
					func(context.Context, *message.Inbound) (router.Result, error) { panic(value) }),
			}})
			require.NoError(t, err)
			res, err := r.Handle(t.Context(), text("x"))
			require.Equal(t, router.Result{Route: "poison"}, res)
			require.Equal(t, router.ReasonPanic, router.ReasonOf(err))
			require.False(t, router.IsPermanent(err))
			p, ok := errors.AsType[*router.PanicError](err)
			require.True(t, ok)
			require.Contains(t, string(p.Stack), "router_test")
			require.Less(t, len(err.Error()), 600)
			require.Equal(t, name == "error", errors.Is(err, inner))
		})
	}
}

func TestMiddlewarePanicIsContained(t *testing.T) {
	r, err := router.New([]router.Route{{Handler: router.Echo{}}},
		func(router.Handler) router.Handler {
			return router.HandlerFunc(
				func(context.Context, *message.Inbound) (router.Result, error) { panic("mw") })
		})
	require.NoError(t, err)
	res, err := r.Handle(t.Context(), text("x"))
	require.EqualError(t, err, "handler panicked: mw")
	require.Equal(t, "route-1", res.Route)
}

func TestRecoverAlone(t *testing.T) {
	h := router.Recover(router.HandlerFunc(
		func(context.Context, *message.Inbound) (router.Result, error) { panic("alone") }))
	_, err := h.Handle(t.Context(), text("x"))
	require.EqualError(t, err, "handler panicked: alone")
}

func TestMiddlewareOrder(t *testing.T) {
	var order []string
	tag := func(name string) router.Middleware {
		return func(next router.Handler) router.Handler {
			return router.HandlerFunc(
				func(ctx context.Context, m *message.Inbound) (router.Result, error) {
					order = append(order, name)
					res, err := next.Handle(ctx, m)
					order = append(order, name+" saw "+res.Route)
					return res, err
				})
		}
	}
	r, err := router.New([]router.Route{{Name: "r", Handler: says("x")}}, tag("a"), tag("b"))
	require.NoError(t, err)
	_, err = r.Handle(t.Context(), text("x"))
	require.NoError(t, err)
	require.Equal(t, []string{"a", "b", "b saw r", "a saw r"}, order)
}

func TestObserve(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got router.Outcome
		hook := func(_ context.Context, m *message.Inbound, o router.Outcome) {
			require.Equal(t, message.ID("m1"), m.ID)
			got = o
		}
		slow := router.HandlerFunc(
			func(context.Context, *message.Inbound) (router.Result, error) {
				<-time.After(3 * time.Second)
				return router.Result{}, router.ErrNoRoute
			})
		r, err := router.New([]router.Route{{Name: "slow", Handler: slow}}, router.Observe(hook))
		require.NoError(t, err)
		_, err = r.Handle(t.Context(), text("x"))
		require.ErrorIs(t, err, router.ErrNoRoute)
		require.Equal(t, router.Outcome{
			Result: router.Result{Route: "slow"}, Err: router.ErrNoRoute, Took: 3 * time.Second,
		}, got)
	})
}

func TestObserveHookIsHarmless(t *testing.T) {
	var log bytes.Buffer
	before := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(&log, nil)))
	t.Cleanup(func() { slog.SetDefault(before) })
	panics := func(context.Context, *message.Inbound, router.Outcome) { panic("hook") }
	for name, hook := range map[string]router.Hook{"nil": nil, "panics": panics} {
		t.Run(name, func(t *testing.T) {
			res, err := router.Observe(hook)(says("x")).Handle(t.Context(), text("x"))
			require.NoError(t, err)
			require.Len(t, res.Replies, 1)
			require.Equal(t, name == "panics", strings.Contains(log.String(), "panic=hook"))
			log.Reset()
		})
	}
}

func TestTimeoutNamesItsLimit(t *testing.T) {
	waits := router.HandlerFunc(
		func(ctx context.Context, _ *message.Inbound) (router.Result, error) {
			<-ctx.Done()
			return router.Result{}, ctx.Err()
		})
	synctest.Test(t, func(t *testing.T) {
		r, err := router.New([]router.Route{{Handler: waits, Timeout: 5 * time.Second}})
		require.NoError(t, err)
		start := time.Now()
		_, err = r.Handle(t.Context(), text("x"))
		require.Equal(t, 5*time.Second, time.Since(start))
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorContains(t, err, "handler took longer than 5s")
		require.Equal(t, router.ReasonTimeout, router.ReasonOf(err))
		require.False(t, router.IsPermanent(err))
	})
}

func TestTimeoutLeavesOtherErrors(t *testing.T) {
	own := &router.Error{Permanent: true, Err: context.DeadlineExceeded}
	synctest.Test(t, func(t *testing.T) {
		for _, want := range []error{errors.New("late, and about something else"), own} {
			h := router.Timeout(time.Second)(router.HandlerFunc(
				func(ctx context.Context, _ *message.Inbound) (router.Result, error) {
					<-ctx.Done()
					return router.Result{}, want
				}))
			_, err := h.Handle(t.Context(), text("x"))
			require.Equal(t, want, err)
		}
	})
}

func TestTimeoutKeepsALateSuccess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := router.Timeout(time.Second)(router.HandlerFunc(
			func(context.Context, *message.Inbound) (router.Result, error) {
				<-time.After(time.Minute)
				return router.Result{Route: "late"}, nil
			}))
		res, err := h.Handle(t.Context(), text("x"))
		require.NoError(t, err)
		require.Equal(t, "late", res.Route)
	})
}

func TestTimeoutIsNotTheCallers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		h := router.Timeout(time.Hour)(router.HandlerFunc(
			func(ctx context.Context, _ *message.Inbound) (router.Result, error) {
				<-ctx.Done()
				return router.Result{}, ctx.Err()
			}))
		_, err := h.Handle(ctx, text("x"))
		require.Equal(t, context.DeadlineExceeded, err)
	})
}

func TestTimeoutZeroIsNone(t *testing.T) {
	h := router.Timeout(0)(router.HandlerFunc(
		func(ctx context.Context, _ *message.Inbound) (router.Result, error) {
			_, limited := ctx.Deadline()
			require.False(t, limited)
			return router.Result{}, nil
		}))
	_, err := h.Handle(t.Context(), text("x"))
	require.NoError(t, err)
}

func TestEcho(t *testing.T) {
	for name, c := range map[string]struct {
		typ  message.Type
		text string
		want []message.Reply
	}{
		"text":     {message.TypeText, " hi ", replied("text", " hi ").Replies},
		"markdown": {message.TypeMarkdown, "**hi**", replied("markdown", "**hi**").Replies},
		"empty":    {message.TypeImage, "", nil},
		"blank":    {message.TypeText, " \n", nil},
	} {
		t.Run(name, func(t *testing.T) {
			m := text(c.text)
			m.Type = c.typ
			res, err := router.Echo{}.Handle(t.Context(), m)
			require.NoError(t, err)
			require.Equal(t, router.Result{Replies: c.want}, res)
		})
	}
}
