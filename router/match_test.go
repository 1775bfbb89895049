package router_test

import (
	"context"
	"fmt"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/penstock-io/penstock/message"
	"github.com/penstock-io/penstock/router"
)

// taken tells whether a route with this match takes m.
func taken(t require.TestingT, match router.Match, m *message.Inbound) bool {
	r, err := router.New([]router.Route{{Match: match, Handler: says("x")}})
	require.NoError(t, err)
	_, err = r.Handle(context.Background(), m)
	if err != nil {
		require.ErrorIs(t, err, router.ErrNoRoute)
	}
	return err == nil
}

func TestMatch(t *testing.T) {
	yes, no := true, false
	in := text("  /ask why")
	in.MentionsBot = true
	for name, c := range map[string]struct {
		match router.Match
		want  bool
	}{
		"zero":               {router.Match{}, true},
		"installation":       {router.Match{Installations: []message.InstallationID{"x", "bot"}}, true},
		"other installation": {router.Match{Installations: []message.InstallationID{"bo"}}, false},
		"platform":           {router.Match{Platforms: []message.Platform{"dingtalk"}}, true},
		"other platform":     {router.Match{Platforms: []message.Platform{"lark"}}, false},
		"kind":               {router.Match{Kinds: []message.Kind{message.KindMessage}}, true},
		"other kind":         {router.Match{Kinds: []message.Kind{message.KindCard}}, false},
		"chat":               {router.Match{Chats: []message.ChatType{message.ChatDirect}}, true},
		"other chat":         {router.Match{Chats: []message.ChatType{message.ChatGroup}}, false},
		"mentioned":          {router.Match{Mention: &yes}, true},
		"not mentioned":      {router.Match{Mention: &no}, false},
		"prefix":             {router.Match{Prefix: "/ask"}, true},
		"prefix inside":      {router.Match{Prefix: "ask"}, false},
		"pattern":            {router.Match{Pattern: regexp.MustCompile(`^\s+/ask\b`)}, true},
		"other pattern":      {router.Match{Pattern: regexp.MustCompile(`^/ask`)}, false},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, c.want, taken(t, c.match, in))
		})
	}
}

// A match with several fields takes what each of its fields alone takes.
func TestMatchIsConjunction(t *testing.T) {
	yes, no := true, false
	installations := make([]message.InstallationID, 12)
	for i := range installations {
		installations[i] = message.InstallationID(fmt.Sprint("bot", i))
	}
	rapid.Check(t, func(t *rapid.T) {
		full := router.Match{
			Installations: rapid.SliceOf(rapid.SampledFrom(installations)).Draw(t, "installations"),
			Kinds: rapid.SliceOf(rapid.SampledFrom(
				[]message.Kind{message.KindMessage, message.KindEvent})).Draw(t, "kinds"),
			Chats: rapid.SliceOf(rapid.SampledFrom(
				[]message.ChatType{message.ChatDirect, message.ChatGroup})).Draw(t, "chats"),
			Mention: rapid.SampledFrom([]*bool{nil, &yes, &no}).Draw(t, "mention"),
			Prefix:  rapid.SampledFrom([]string{"", "a", "ab"}).Draw(t, "prefix"),
		}
		m := text(rapid.SampledFrom([]string{"", "a", " abc", "b"}).Draw(t, "text"))
		m.Installation = rapid.SampledFrom(installations).Draw(t, "installation")
		m.Kind = rapid.SampledFrom(
			[]message.Kind{message.KindMessage, message.KindEvent}).Draw(t, "kind")
		m.MentionsBot = rapid.Bool().Draw(t, "mentioned")
		want := taken(t, router.Match{Installations: full.Installations}, m) &&
			taken(t, router.Match{Kinds: full.Kinds}, m) &&
			taken(t, router.Match{Chats: full.Chats}, m) &&
			taken(t, router.Match{Mention: full.Mention}, m) &&
			taken(t, router.Match{Prefix: full.Prefix}, m)
		require.Equal(t, want, taken(t, full, m))
		if len(full.Installations) > 0 {
			found := false
			for _, id := range full.Installations {
				found = found || id == m.Installation
			}
			require.Equal(t, found, taken(t, router.Match{Installations: full.Installations}, m))
		}
	})
}

func TestHotPathAllocatesNothing(t *testing.T) {
	r, m := catchAll(t)
	require.Zero(t, testing.AllocsPerRun(100, func() {
		_, _ = r.Handle(t.Context(), m)
	}))
}

// catchAll is a router with one route that takes everything and does nothing.
func catchAll(t require.TestingT) (*router.Router, *message.Inbound) {
	r, err := router.New([]router.Route{{Handler: router.HandlerFunc(
		func(context.Context, *message.Inbound) (router.Result, error) {
			return router.Result{}, nil
		})}})
	require.NoError(t, err)
	return r, text("hello")
}

func BenchmarkCatchAll(b *testing.B) {
	r, m := catchAll(b)
	b.ReportAllocs()
	for b.Loop() {
		_, _ = r.Handle(b.Context(), m)
	}
}

// BenchmarkTenRoutes reaches the last of ten routes of several fields each.
func BenchmarkTenRoutes(b *testing.B) {
	var routes []router.Route
	for i := range 10 {
		routes = append(routes, router.Route{
			Match: router.Match{
				Installations: []message.InstallationID{"a", "b", "bot"},
				Kinds:         []message.Kind{message.KindMessage},
				Prefix:        fmt.Sprint("/", i),
			},
			Handler: says("x"),
		})
	}
	r, err := router.New(routes)
	require.NoError(b, err)
	m := text("/9 hello")
	b.ReportAllocs()
	for b.Loop() {
		_, _ = r.Handle(b.Context(), m)
	}
}
