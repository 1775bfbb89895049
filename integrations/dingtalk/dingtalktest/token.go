package dingtalktest

import (
	"fmt"
	"net/http"
	"time"
)

// token is an access token; both APIs take it.
type token struct {
	app     *App
	expires time.Time
}

// serveToken is the new way to get a token; a wrong secret is HTTP 400.
func (g *Gateway) serveToken(w http.ResponseWriter, r *http.Request) {
	var ask struct {
		AppKey    string `json:"appKey"`
		AppSecret string `json:"appSecret"`
	}
	err := readJSON(r, &ask)
	key, ok := g.issueToken(ask.AppKey, ask.AppSecret)
	if err != nil || !ok {
		answer(w, http.StatusBadRequest, apiError("invalidClientIdOrSecret"))
		return
	}
	answer(w, http.StatusOK, fmt.Sprintf(`{"accessToken":%s,"expireIn":%d}`,
		quote(key), int(g.cfg.TokenLife/time.Second)))
}

// serveGetToken is the old way; a wrong secret is HTTP 200 with an errcode.
func (g *Gateway) serveGetToken(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	key, ok := g.issueToken(q.Get("appkey"), q.Get("appsecret"))
	if !ok {
		answer(w, http.StatusOK, errcode(40089, "test: wrong appkey or appsecret"))
		return
	}
	answer(w, http.StatusOK, fmt.Sprintf(
		`{"errcode":0,"access_token":%s,"errmsg":"ok","expires_in":%d}`,
		quote(key), int(g.cfg.TokenLife/time.Second)))
}

// issueToken gives the app's token. One that is still good is renewed, as on the
// platform.
func (g *Gateway) issueToken(clientID, secret string) (string, bool) {
	if clientID == "" {
		return "", false
	}
	a := g.App(clientID)
	if a == nil || a.cred.Secret != secret {
		return "", false
	}
	now := time.Now()
	g.mu.Lock()
	defer g.mu.Unlock()
	for key, t := range g.tokens {
		if t.app == a && now.Before(t.expires) {
			t.expires = now.Add(g.cfg.TokenLife)
			g.tokens[key] = t
			return key, true
		}
	}
	key := fmt.Sprintf("testtoken%023d", g.nextSerial())
	g.tokens[key] = token{app: a, expires: now.Add(g.cfg.TokenLife)}
	return key, true
}

// tokenOwner tells whose token it is; nil when it is not good any more.
func (g *Gateway) tokenOwner(key string) *App {
	g.mu.Lock()
	defer g.mu.Unlock()
	t, ok := g.tokens[key]
	if ok && time.Now().After(t.expires) {
		delete(g.tokens, key)
		return nil
	}
	return t.app
}

// ExpireTokens ends the app's access token before its time.
func (a *App) ExpireTokens() {
	a.gw.mu.Lock()
	defer a.gw.mu.Unlock()
	for key, t := range a.gw.tokens {
		if t.app == a {
			delete(a.gw.tokens, key)
		}
	}
}

// authorized finds the app whose token a call to api.dingtalk.com brings; nil
// after it has refused the call.
func (g *Gateway) authorized(w http.ResponseWriter, r *http.Request) *App {
	a := g.tokenOwner(r.Header.Get(tokenHeader))
	if a == nil {
		answer(w, http.StatusBadRequest, apiError("InvalidAuthentication"))
	}
	return a
}

const tokenHeader = "x-acs-dingtalk-access-token"
