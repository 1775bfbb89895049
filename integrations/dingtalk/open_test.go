package dingtalk_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/penstock-io/penstock/integrations"
	"github.com/penstock-io/penstock/integrations/dingtalk"
)

func TestOpenRequest(t *testing.T) {
	g := tcpGateway(t)
	var header http.Header
	g.open = func(w http.ResponseWriter, r *http.Request) {
		header = r.Header
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	<-run(t, g.config()).end
	require.Equal(t, "application/json", header.Get("Content-Type"))
	require.Equal(t, "application/json", header.Get("Accept"))
	var got map[string]any
	require.NoError(t, json.Unmarshal([]byte(<-g.opens), &got))
	delete(got, "localIp") // depends on the machine
	require.Equal(t, map[string]any{
		"clientId": "client", "clientSecret": secret, "ua": "penstock-go/1",
		"subscriptions": []any{
			map[string]any{"type": "SYSTEM", "topic": "ping"},
			map[string]any{"type": "SYSTEM", "topic": "disconnect"},
			map[string]any{"type": "CALLBACK", "topic": topicRobot},
			map[string]any{"type": "CALLBACK", "topic": topicCard},
			map[string]any{"type": "EVENT", "topic": "*"},
		},
	}, got)
}

// reject answers every open request with the same.
func reject(status int, contentType, body string, header ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", contentType)
		for i := 0; i < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
	}
}

func TestWhatARefusalMeans(t *testing.T) {
	const js = "application/json;charset=utf-8"
	denied := func(code string) string {
		return fmt.Sprintf(`{"requestid":"req-1","code":%q,"message":"says so"}`, code)
	}
	for _, c := range []struct {
		name   string
		answer http.HandlerFunc
		why    integrations.Why
		code   string
		after  time.Duration
		text   string
	}{
		{"wrong secret", reject(401, js, denied("authFailed")), integrations.Refused, "auth_failed", 0, "req-1"},
		{"401 of a middlebox", reject(401, "text/html", "<b>who?</b>"), integrations.Lost, "open_http_401", 0, "text/html"},
		{"system error", reject(400, js, denied("systemError")), integrations.Lost, "open_http_400", 0, "systemError"},
		{
			"request at fault", reject(400, js, denied("invalidParameter")),
			integrations.Refused, "open_bad_request", 0, "invalidParameter",
		},
		{
			"page of a proxy", reject(400, "text/html", "<center>sent in clear</center>"+strings.Repeat("x", 999)),
			integrations.Lost, "open_http_400", 0, "status 400 with text/html",
		},
		{"throttled", reject(429, js, denied("Throttling"), "Retry-After", "17"), integrations.Limited, "throttled", 17 * time.Second, ""},
		{"throttled, no time", reject(429, js, "{}"), integrations.Limited, "throttled", time.Minute, ""},
		{"throttled for ever", reject(429, js, "{}", "Retry-After", "99999999999"), integrations.Limited, "throttled", time.Hour, ""},
		{"qps", reject(403, js, denied("Forbidden.AccessDenied.QpsLimitForApi")), integrations.Limited, "qps", time.Second, ""},
		{"qpm", reject(403, js, denied("Forbidden.AccessDenied.QpmLimitForApi")), integrations.Limited, "qpm", time.Minute, ""},
		{"forbidden", reject(403, js, denied("Forbidden.AccessDenied.IpNotInWhiteList")), integrations.Refused, "forbidden", 0, "IpNotInWhiteList"},
		{
			"banned address", reject(403, js, `{"status":1111,"wait":5,"source":"x5","punish":"deny"}`),
			integrations.Limited, "ip_banned", 5 * time.Minute, "",
		},
		{"down", reject(503, "text/html", "<h1>503</h1>", "Retry-After", "3"), integrations.Lost, "open_http_503", 3 * time.Second, ""},
		{"redirect", reject(302, "", "", "Location", "https://192.0.2.1/"), integrations.Lost, "open_http_302", 0, "status 302"},
		{"no endpoint", reject(200, js, `{"endpoint":"","ticket":"t"}`), integrations.Lost, "open_incomplete", 0, "endpoint"},
		{"no ticket", reject(200, js, `{"endpoint":"wss://h/c"}`), integrations.Lost, "open_incomplete", 0, "ticket"},
		{"no JSON", reject(200, "text/html", "<html>"), integrations.Lost, "open_not_json", 0, "<html>"},
		{"endless", reject(200, js, strings.Repeat("[", 100_000)), integrations.Lost, "open_not_json", 0, ""},
		{
			"clear endpoint", reject(200, js, `{"endpoint":"ws://192.0.2.1/c","ticket":"t"}`),
			integrations.Refused, "bad_endpoint", 0, `"ws"`,
		},
		{
			"http endpoint", reject(200, js, `{"endpoint":"http://127.0.0.1/c","ticket":"t"}`),
			integrations.Refused, "bad_endpoint", 0, `"http"`,
		},
		{"no URL", reject(200, js, `{"endpoint":"://","ticket":"t"}`), integrations.Refused, "bad_endpoint", 0, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := tcpGateway(t)
			g.open = c.answer
			end := <-run(t, g.config()).end
			require.Equal(t, c.why, end.Why, "%v", end.Err)
			require.Equal(t, c.code, end.Code)
			require.Equal(t, c.after, end.After)
			require.ErrorContains(t, end.Err, c.text)
			require.Less(t, len(end.Err.Error()), 400)
		})
	}
}

func TestManyRefusalsRaiseASuspicion(t *testing.T) {
	g := tcpGateway(t)
	g.open = reject(400, "application/json", `{"code":"systemError"}`)
	c, err := dingtalk.New(g.config())
	require.NoError(t, err)
	var codes []string
	for range 6 {
		end := c.Run(t.Context(), nil, newCore())
		require.Equal(t, integrations.Lost, end.Why)
		codes = append(codes, end.Code)
	}
	again := "open_http_400"
	require.Equal(t, []string{again, again, again, again, "open_400", "open_400"}, codes)
}

func TestEveryDialHasAFreshTicket(t *testing.T) {
	g := tcpGateway(t)
	n := 0
	g.open = func(w http.ResponseWriter, _ *http.Request) {
		n++
		_, _ = fmt.Fprintf(w, `{"endpoint":"ws://%s/connect","ticket":"t%d"}`, g.addr, n)
	}
	g.connect = reject(401, "text/plain", "ticket invalid")
	c, err := dingtalk.New(g.config())
	require.NoError(t, err)
	for i := range 3 {
		end := c.Run(t.Context(), nil, newCore())
		require.Equal(t, integrations.Lost, end.Why)
		require.Equal(t, "dial_http_401", end.Code)
		require.ErrorContains(t, end.Err, "ticket invalid")
		require.Equal(t, fmt.Sprintf("/connect?ticket=t%d", i+1), <-g.dials)
	}
}

func TestThrottledDial(t *testing.T) {
	g := tcpGateway(t)
	g.connect = reject(429, "text/plain", "", "Retry-After", "9")
	end := <-run(t, g.config()).end
	require.Equal(t, integrations.Limited, end.Why)
	require.Equal(t, 9*time.Second, end.After)
}

func TestTicketIsEscaped(t *testing.T) {
	g := tcpGateway(t)
	serve(t, g, nil)
	require.Equal(t, "/connect?region=a&ticket=tk%2Fex%2Bam%3Dple%260077", <-g.dials)
}

// TestNoSecretIsTold lets gateway and network quote our secrets at us in every
// way there is, and looks for them in all that is logged and returned.
func TestNoSecretIsTold(t *testing.T) {
	words := []string{
		secret, ticket, url.QueryEscape(secret), url.QueryEscape(ticket), "proxypassword",
	}
	quote := strings.Join(words[:4], " and ")
	quoteSecret := words[0] + " and " + words[2]
	var log bytes.Buffer
	for name, change := range map[string]func(*gateway, *dingtalk.Config){
		"open says it in JSON": func(g *gateway, _ *dingtalk.Config) {
			body, _ := json.Marshal(map[string]string{
				"code": quoteSecret, "message": quoteSecret, "requestid": quoteSecret,
			})
			g.open = reject(400, "application/json", string(body))
		},
		"open says it in a page": func(g *gateway, _ *dingtalk.Config) { g.open = reject(500, "text/html", quoteSecret) },
		"open is cut off": func(g *gateway, _ *dingtalk.Config) {
			g.open = reject(200, "text/plain", ` {"ticket":"`+ticket+`"`)
		},
		"open fails with a ticket": func(g *gateway, _ *dingtalk.Config) {
			g.open = reject(500, "application/json", `{"ticket":"`+ticket+`"}`)
		},
		"dial says it": func(g *gateway, _ *dingtalk.Config) { g.connect = reject(500, "text/html", quote) },
		"dial breaks": func(g *gateway, _ *dingtalk.Config) {
			g.connect = func(w http.ResponseWriter, r *http.Request) {
				c, _, _ := http.NewResponseController(w).Hijack()
				_, _ = fmt.Fprintf(c, "HTTP/1.1 %s\r\n\r\n", r.RequestURI)
				_ = c.Close()
			}
		},
		"nobody listens": func(g *gateway, c *dingtalk.Config) {
			c.APIBase = "http://127.0.0.1:1"
		},
		"endpoint is dead": func(g *gateway, _ *dingtalk.Config) {
			g.open = func(w http.ResponseWriter, _ *http.Request) {
				_ = json.NewEncoder(w).Encode(map[string]string{"endpoint": "ws://127.0.0.1:1/", "ticket": ticket})
			}
		},
		"proxy is dead": func(_ *gateway, c *dingtalk.Config) {
			c.Proxy = "http://user:proxypassword@127.0.0.1:1"
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := tcpGateway(t)
			cfg := g.config()
			cfg.Logger = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
			change(g, &cfg)
			end := <-run(t, cfg).end
			require.Error(t, end.Err)
			said := fmt.Sprintf("%v %+v %#v %s %s", end.Err, end.Err, end.Err, end.Code, log.String())
			for _, w := range words {
				require.NotContains(t, said, w)
			}
		})
	}
	t.Run("gateway says it on the socket", func(t *testing.T) {
		r := serve(t, tcpGateway(t), func(c *dingtalk.Config) {
			c.Logger = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
		})
		reason, _ := json.Marshal(map[string]string{"reason": secret})
		r.say(t, frame("SYSTEM", "disconnect", "", string(reason)))
		<-r.core.retired
		_ = r.sock.Close()
		<-r.end
		require.Contains(t, log.String(), "redial")
		require.NotContains(t, log.String(), secret)
	})
}

// TestProxyThatBreaksTheDialer covers a status line without words, at which the
// dialer's reading of a proxy panics.
func TestProxyThatBreaksTheDialer(t *testing.T) {
	g := tcpGateway(t)
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodConnect {
			g.serveOpen(w, r)
			return
		}
		c, _, _ := http.NewResponseController(w).Hijack()
		_, _ = c.Write([]byte("HTTP/1.1 407\r\n\r\n"))
		_ = c.Close()
	}))
	defer proxy.Close()
	cfg := g.config()
	cfg.Proxy = proxy.URL
	end := <-run(t, cfg).end
	require.Equal(t, integrations.Lost, end.Why)
	require.Equal(t, "panic", end.Code)
}
