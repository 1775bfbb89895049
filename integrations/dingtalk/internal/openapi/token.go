package openapi

import (
	"context"
	"errors"
	"math"
	"net/http"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/penstock-io/penstock/message"
)

const (
	// tokenMargin is how long before its end a token is renewed.
	tokenMargin = 5 * time.Minute
	// tokenFloor is how long a token is kept at least, whatever life it claims:
	// fetching too often is throttled.
	tokenFloor = time.Minute
	// tokenCeiling bounds a claimed life against nonsense.
	tokenCeiling = 24 * time.Hour
	// tokenTimeout bounds one fetch.
	tokenTimeout = 10 * time.Second
)

// token is an access token. gen tells two fetches apart, also when both got the
// same value, which is what the platform gives within a token's life.
type token struct {
	value string
	gen   uint64
	until time.Time
}

// tokens keeps one access token for all sends.
type tokens struct {
	// fetch is immutable. Its error is a *message.SendError or a context's.
	fetch func(context.Context) (value string, life time.Duration, err error)

	// flight collapses concurrent fetches.
	flight singleflight.Group

	mu      sync.Mutex
	current token // guarded by mu
}

// get gives a token that is still good, fetching one if need be. Callers that
// come during a fetch share it. It runs apart from any caller's context, so that
// one who gives up does not fail the others, and ends by itself within
// tokenTimeout.
func (t *tokens) get(ctx context.Context) (token, error) {
	if cur := t.load(); cur.value != "" && time.Now().Before(cur.until) {
		return cur, nil
	}
	done := t.flight.DoChan("", func() (any, error) {
		if cur := t.load(); cur.value != "" && time.Now().Before(cur.until) {
			return cur, nil // fetched between our look and our turn
		}
		ctx, cancel := context.WithTimeoutCause(
			context.WithoutCancel(ctx), tokenTimeout, errTimeout)
		defer cancel()
		value, life, err := t.fetch(ctx)
		if err != nil {
			return token{}, err
		}
		return t.store(value, life), nil
	})
	select {
	case r := <-done:
		if r.Err != nil {
			return token{}, r.Err
		}
		return r.Val.(token), nil
	case <-ctx.Done():
		return token{}, ctx.Err()
	}
}

// renew gives a token that is not bad, the one the platform refused. Of many
// callers with the same bad token one fetches.
func (t *tokens) renew(ctx context.Context, bad token) (token, error) {
	t.mu.Lock()
	if t.current.gen == bad.gen {
		t.current.value = ""
	}
	t.mu.Unlock()
	return t.get(ctx)
}

func (t *tokens) load() token {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.current
}

func (t *tokens) store(value string, life time.Duration) token {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.current = token{
		value: value,
		gen:   t.current.gen + 1,
		until: time.Now().Add(max(life-tokenMargin, tokenFloor)),
	}
	return t.current
}

// parseLife reads expireIn: seconds, as a number or a string. What is odd is 0.
func parseLife(s string) time.Duration {
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || math.IsNaN(f) || f < 0 {
		return 0
	}
	return time.Duration(min(f, tokenCeiling.Seconds()) * float64(time.Second))
}

// fetchToken makes one request for a token. No failure of it is the fault of a
// reply, and none can have landed one: what would be final for a reply parks the
// installation.
func (s *Sender) fetchToken(ctx context.Context) (string, time.Duration, error) {
	value, life, err := s.requestToken(ctx)
	s.counters.count(routeToken, message.Receipt{}, err)
	return value, life, err
}

func (s *Sender) requestToken(ctx context.Context) (string, time.Duration, error) {
	body := appendField([]byte{'{'}, "appKey", s.cfg.ClientID)
	body = append(appendField(body, "appSecret", s.cfg.ClientSecret), '}')
	c := &call{
		route: routeToken, method: http.MethodPost,
		url: s.cfg.APIBase + "/v1.0/oauth2/accessToken", body: body,
	}
	a, _, err := s.exchange(ctx, c, "")
	if err != nil {
		return "", 0, broken(ctx, c, false, err)
	}
	v := classify(a)
	if v.outcome == outcomeSent && a.token != "" && plain(a.token) {
		s.problems.clear(routeToken)
		return a.token, parseLife(a.life), nil
	}
	e := v.tokenError(c, a, s.secrets(c, ""))
	if e.Next == message.NextPark {
		s.problems.note(routeToken, e.Code, e.Err.Error())
	}
	return "", 0, e
}

// tokenError judges an answer without a token.
func (v verdict) tokenError(c *call, a *answer, secrets []string) *message.SendError {
	switch {
	case v.outcome == outcomeSent:
		return &message.SendError{
			Next: message.NextAgain, Code: codeOdd, Err: errors.New("the answer holds no token"),
		}
	case v.outcome != outcomeFailed, v.next == message.NextNever:
		v.next = message.NextPark
	}
	v.landed = message.LandedNo
	return v.sendError(c, a, secrets)
}
