package dingtalk

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"

	"github.com/penstock-io/penstock/integrations"
	"github.com/penstock-io/penstock/integrations/dingtalk/internal/payload"
)

const openPath = "/v1.0/gateway/connections/open"

// maxOpenBody bounds what is read of an answer to the open request.
const maxOpenBody = 64 << 10

type subscription struct {
	Type  string `json:"type"`
	Topic string `json:"topic"`
}

type openRequest struct {
	ClientID      string         `json:"clientId"`
	ClientSecret  string         `json:"clientSecret"`
	Subscriptions []subscription `json:"subscriptions"`
	UA            string         `json:"ua,omitempty"`
	LocalIP       string         `json:"localIp,omitempty"`
}

// grant is what the gateway lets us dial with. The ticket is a secret, is good
// for one dial, and is never kept.
type grant struct {
	Endpoint string `json:"endpoint"`
	Ticket   string `json:"ticket"`
}

// answer is an answer to the open request.
type answer struct {
	status      int
	contentType string
	retryAfter  string
	body        []byte
}

// open asks the gateway for a grant. The end is nil if it gave one.
func (c *Connector) open(ctx context.Context) (grant, *integrations.End) {
	ctx, cancel := context.WithTimeout(ctx, c.cfg.OpenTimeout)
	defer cancel()
	a, err := c.post(ctx)
	if err != nil {
		return grant{}, lost(failure("open", err), fmt.Errorf("open: %w", c.hide.err(bare(err))))
	}
	var g grant
	if end := a.grant(&g, c.hide); end != nil {
		return grant{}, c.suspect(a, end)
	}
	c.badOpens.Store(0)
	return g, nil
}

// post makes the request. A client of its own lets the certificates be read anew,
// and leaves no idle connection behind: the next open is hours away.
func (c *Connector) post(ctx context.Context) (*answer, error) {
	tr, err := c.cfg.transport()
	if err != nil {
		return nil, err
	}
	tr.DisableKeepAlives = true
	defer tr.CloseIdleConnections()
	// A redirect would carry the client secret to another place.
	hc := &http.Client{Transport: tr, CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse
	}}
	req, err := c.openRequest(ctx)
	if err != nil {
		return nil, err
	}
	resp, err := hc.Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	return readAnswer(resp)
}

func (c *Connector) openRequest(ctx context.Context) (*http.Request, error) {
	body, err := json.Marshal(openRequest{
		ClientID:      c.cfg.ClientID,
		ClientSecret:  c.cfg.ClientSecret,
		Subscriptions: c.subscriptions(),
		UA:            c.cfg.UserAgent,
		LocalIP:       localIP(),
	})
	if err != nil {
		return nil, err
	}
	to := strings.TrimSuffix(c.cfg.APIBase, "/") + openPath
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, to, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	// Without it the answer may be XML.
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", c.cfg.UserAgent)
	return req, nil
}

func (c *Connector) subscriptions() []subscription {
	subs := []subscription{
		{payload.TypeSystem, payload.TopicPing},
		{payload.TypeSystem, payload.TopicDisconnect},
	}
	for _, t := range c.cfg.Topics {
		subs = append(subs, subscription{payload.TypeCallback, t})
	}
	if !c.cfg.NoEvents {
		subs = append(subs, subscription{payload.TypeEvent, "*"})
	}
	return subs
}

func readAnswer(resp *http.Response) (*answer, error) {
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxOpenBody))
	if err != nil {
		return nil, fmt.Errorf("read answer: %w", err)
	}
	mediaType, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	return &answer{
		status:      resp.StatusCode,
		contentType: mediaType,
		retryAfter:  resp.Header.Get("Retry-After"),
		body:        body,
	}, nil
}

// grant reads a grant out of a good answer and classifies every other.
func (a *answer) grant(g *grant, hide secrets) *integrations.End {
	if a.status != http.StatusOK {
		return a.refusal(hide)
	}
	if json.Unmarshal(a.body, g) != nil {
		return lost("open_not_json", a.describe(hide))
	}
	if g.Endpoint == "" {
		return lost("open_incomplete", errNoEndpoint)
	}
	if g.Ticket == "" {
		return lost("open_incomplete", errNoTicket)
	}
	return nil
}

var (
	errNoEndpoint = errors.New("open: the answer has an empty endpoint")
	errNoTicket   = errors.New("open: the answer has an empty ticket")
)
