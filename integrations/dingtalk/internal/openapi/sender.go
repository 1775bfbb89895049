package openapi

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/penstock-io/penstock/integrations"
	"github.com/penstock-io/penstock/message"
)

var _ integrations.Sender = (*Sender)(nil)

// errSessionGone means that DingTalk does not know the webhook's session any
// more; it did not take the reply.
var errSessionGone = errors.New("the webhook's session is gone")

// Sender sends the replies of one installation. All methods may be called from
// any number of goroutines; only Send blocks.
type Sender struct {
	// Immutable.
	cfg  Config
	http *http.Client

	// Each guards itself.
	tokens   tokens
	gone     goneHooks
	counters counters
	problems problems
}

// New checks cfg and makes a Sender. It starts nothing and sends nothing. The
// error is under ErrConfig and names the field.
func New(cfg Config) (*Sender, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	s := &Sender{cfg: cfg, http: withoutRedirects(cfg.HTTP)}
	s.tokens.fetch = s.fetchToken
	return s, nil
}

// Send makes one attempt, within Config.Timeout. Every error is a
// *message.SendError, except ctx's own when it ended before anything was
// written. The webhook goes first while it lives; when DingTalk says that it is
// gone, the robot API follows within the same attempt.
func (s *Sender) Send(ctx context.Context, o message.Outbound) (message.Receipt, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, s.cfg.Timeout, errTimeout)
	defer cancel()
	t, err := s.target(&o)
	if err != nil {
		return message.Receipt{}, err
	}
	if o.Format == message.FormatCard {
		c, err := s.cardCall(&t, &o)
		if err != nil {
			return message.Receipt{}, err
		}
		return s.perform(ctx, &c)
	}
	return s.sendText(ctx, &t, &o)
}

// content refuses what no route can carry.
func content(o *message.Outbound) error {
	switch {
	case o.Format == message.FormatVendor:
		return checkVendor(o.Card)
	case strings.TrimSpace(o.Text) == "":
		return never("empty_text", errors.New("the reply has no text"))
	}
	return nil
}

func (s *Sender) sendText(
	ctx context.Context, t *Target, o *message.Outbound,
) (message.Receipt, error) {
	if err := content(o); err != nil {
		return message.Receipt{}, err
	}
	hook := s.hook(t)
	if hook == hookUsable {
		r, err := s.perform(ctx, &call{
			route: routeWebhook, method: http.MethodPost,
			url: t.Webhook, body: s.webhookBody(o),
		})
		if !errors.Is(err, errSessionGone) {
			return r, err
		}
		s.gone.add(t.Webhook, time.Now())
	}
	c, err := s.robotCall(t, o, hook)
	if err != nil {
		return message.Receipt{}, err
	}
	r, err := s.perform(ctx, &c)
	if err == nil && (len(o.Mentions) > 0 || o.MentionAll) && r.Warning == "" {
		r.Warning = "nobody was mentioned: the robot API cannot"
	}
	return r, err
}

// hookState tells what may be done with a target's webhook.
type hookState uint8

const (
	hookUsable  hookState = iota
	hookOver              // none came, or it has expired
	hookRefused           // it names a host that is not listed
)

// hook judges the webhook. One that is refused is counted and logged with its
// host alone, and never contacted.
func (s *Sender) hook(t *Target) hookState {
	now := time.Now()
	if !t.alive(now) || s.gone.has(t.Webhook, now) {
		return hookOver
	}
	u, err := url.Parse(t.Webhook)
	if err == nil && u.User == nil && s.cfg.secure(u) && s.cfg.lists(u) {
		return hookUsable
	}
	host := "unreadable"
	if err == nil {
		host = u.Hostname()
	}
	s.counters.hostsRefused.Add(1)
	s.cfg.Logger.Warn("webhook host refused", "reason", codeHostRefused, "host", host)
	return hookRefused
}

const codeHostRefused = "webhook_host_refused"

// robotCall is the reply over the robot API. hook tells why the webhook is not
// the way, for the error when the robot API is none either.
func (s *Sender) robotCall(t *Target, o *message.Outbound, hook hookState) (call, error) {
	c := call{route: routeGroup, method: http.MethodPost, token: true}
	path := "/v1.0/robot/groupMessages/send"
	code, missing := "no_conversation", string(t.Conversation)
	if t.Direct {
		c.route, path = routeDirect, "/v1.0/robot/oToMessages/batchSend"
		code, missing = "no_staff_id", string(t.StaffID)
	}
	if missing == "" {
		if hook == hookRefused {
			code = codeHostRefused
		}
		return c, never(code, robotErrors[t.Direct])
	}
	key, param, err := template(o)
	if err != nil {
		return c, err
	}
	c.url, c.body = s.cfg.APIBase+path, robotBody(t, key, param)
	return c, nil
}

// robotErrors tells by "is it a chat of two" what the robot API lacked.
var robotErrors = map[bool]error{
	false: errors.New("no usable webhook, and no conversation for the robot API"),
	true: errors.New("no usable webhook, and the robot API needs a staff id, " +
		"which people outside the organisation do not have"),
}

// perform makes a call, books it, and tells its error on the two axes, or as
// errSessionGone.
func (s *Sender) perform(ctx context.Context, c *call) (message.Receipt, error) {
	r, err := s.authorised(ctx, c)
	s.counters.count(c.route, r, err)
	return r, err
}

// authorised makes a call with a token if it needs one, and once more with a new
// token if the platform refuses the first.
func (s *Sender) authorised(ctx context.Context, c *call) (message.Receipt, error) {
	if !c.token {
		return s.settle(ctx, c, "", true)
	}
	tok, err := s.tokens.get(ctx)
	if err != nil {
		return message.Receipt{}, tokenFailure(ctx, c, err)
	}
	r, err := s.settle(ctx, c, tok.value, false)
	if !errors.Is(err, errBadToken) {
		return r, err
	}
	s.counters.renewals.Add(1)
	s.cfg.Logger.Info("access token refused, renewing it", "route", c.route.String())
	if tok, err = s.tokens.renew(ctx, tok); err != nil {
		return message.Receipt{}, tokenFailure(ctx, c, err)
	}
	return s.settle(ctx, c, tok.value, true)
}

// tokenFailure is the error of a call that got no token: the fetch's, which is
// classified, or that of a context that ended while waiting for it.
func tokenFailure(ctx context.Context, c *call, err error) error {
	var se *message.SendError
	if errors.As(err, &se) {
		return err
	}
	return broken(ctx, c, false, err)
}

// errBadToken means that the platform refused the token and nothing else.
var errBadToken = errors.New("the access token was refused")

// settle makes one request and reads its meaning. last tells that no renewed
// token follows: a refused token is then an error like others.
func (s *Sender) settle(
	ctx context.Context, c *call, token string, last bool,
) (message.Receipt, error) {
	a, wrote, err := s.exchange(ctx, c, token)
	if err != nil {
		return message.Receipt{}, broken(ctx, c, wrote, err)
	}
	v := classify(a)
	switch {
	case v.outcome == outcomeSent:
		s.problems.clear(c.route)
		return message.Receipt{ID: a.key, Route: c.route.String(), Warning: v.warning}, nil
	case c.route == routeWebhook && v.outcome != outcomeFailed:
		// A webhook has no token: what refuses one has forgotten the session.
		return message.Receipt{}, errSessionGone
	case v.outcome == outcomeBadToken && !last:
		return message.Receipt{}, errBadToken
	case v.outcome == outcomeBadToken:
		// A token just fetched was refused. That is nothing a reply can cause.
		v.next, v.after = message.NextWait, waitMinute
	}
	e := v.sendError(c, a, s.secrets(c, token))
	if v.next == message.NextPark || a.denied() {
		s.problems.note(c.route, e.Code, e.Err.Error())
	}
	return message.Receipt{}, e
}
